package wire

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxText is the maximum size of the error, the status and the log excerpt in an attempt's result,
// in bytes. A job tracker keeps less of each.
const MaxText = 8 << 10

// Truncate cuts a text to at most n bytes, between characters, and appends "…" if it cuts.
func Truncate(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// MaxLost is the maximum number of unreadable segments in one result. The worker loop reports one.
const MaxLost = 100

// Truncate makes the result of another process fit into a message. It cuts texts to twice
// [MaxText], because an error may include a status, Lost to [MaxLost], and Hot by [Hot.Bound].
func (r *Result) Truncate() {
	r.Error, r.Log = Truncate(r.Error, 2*MaxText), Truncate(r.Log, 2*MaxText)
	if r.Died != nil {
		r.Died.Where = Truncate(r.Died.Where, MaxText)
	}
	r.Hot = r.Hot.Bound()
	r.Lost = r.Lost[:min(len(r.Lost), MaxLost)]
	for i := range r.Lost {
		r.Lost[i].Reason = Truncate(r.Lost[i].Reason, MaxText)
	}
}

// Limits of a submission, far above any real flow. Without them, a few bytes could fill a job
// tracker's memory and log, and slow down every restart.
const (
	MaxJobs   = 1_000     // per submission
	MaxTasks  = 1_000_000 // maps per job, reduces per job, and reduces per submission
	MaxInputs = 100_000   // per submission: paths, and inputs that are other jobs
	MaxValues = 100_000   // per submission: properties, side files, outputs, and the program's flags and arguments
	MaxName   = 1_000     // bytes of a name of a job, flow, key, user, tracker, host, address or rack
)

// ErrTooLarge reports a submission that exceeds a limit.
var ErrTooLarge = errors.New("submission too large")

// CheckLimits returns an error that wraps [ErrTooLarge] if a submission exceeds a limit. Call it
// before sending and proposing. A replay does not check, since earlier builds accepted more.
func (s *Submission) CheckLimits() error {
	inputs, values, reduces := 0, len(s.Program.Args)+len(s.Program.Flags), 0
	names := []struct{ what, name string }{{"key", s.Key}, {"owner's name", s.Owner}, {"flow's name", s.Plan.Flow}}
	for i := range s.Plan.Jobs {
		j := &s.Plan.Jobs[i]
		names = append(names, struct{ what, name string }{"job's name", j.Name})
		values += len(j.Properties) + len(j.Files) + len(j.Outputs)
		reduces += min(max(j.Reduces, 0), MaxTasks+1)
		inputs += len(j.Inputs) + len(j.Results)
		for k := range j.Inputs {
			inputs += len(j.Inputs[k].Paths)
		}
	}
	for _, limit := range []struct {
		what   string
		n, max int
	}{
		{"jobs", len(s.Plan.Jobs), MaxJobs},
		{"inputs", inputs, MaxInputs},
		{"reduces in all its jobs", reduces, MaxTasks},
		{"properties, side files, outputs, flags and arguments", values, MaxValues},
	} {
		if limit.n > limit.max {
			return fmt.Errorf("%w: %d %s, at most %d", ErrTooLarge, limit.n, limit.what, limit.max)
		}
	}
	for _, x := range names {
		if len(x.name) > MaxName {
			return fmt.Errorf("%w: the %s %s has %d bytes, at most %d", ErrTooLarge, x.what, quote(x.name), len(x.name), MaxName)
		}
	}
	return nil
}
