package wire

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxText bounds an error, a status and the end of a log in an attempt's result, in
// bytes. A job tracker keeps less of each.
const MaxText = 8 << 10

// Bounded cuts a text to at most n bytes, between characters, and marks the cut.
func Bounded(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// MaxLost bounds the segments of which one result says that they could not be read. The
// worker loop names one.
const MaxLost = 100

// Bound cuts the texts of a result to twice [MaxText], as an error has a status too, and
// drops what is more than [MaxLost]. It is for what another process says, which must fit into
// messages of ours.
func (r *Result) Bound() {
	r.Error, r.Log = Bounded(r.Error, 2*MaxText), Bounded(r.Log, 2*MaxText)
	r.Lost = r.Lost[:min(len(r.Lost), MaxLost)]
	for i := range r.Lost {
		r.Lost[i].Reason = Bounded(r.Lost[i].Reason, MaxText)
	}
}

// Bounds of a submission. No flow of ours comes near them; what they keep away is a few
// bytes that make a job tracker's memory, log and every restart large.
const (
	MaxJobs   = 1_000     // of a submission
	MaxTasks  = 1_000_000 // maps and reduces of a job, each; reduces of a submission
	MaxInputs = 100_000   // paths of a submission, and inputs that are other jobs
	MaxValues = 100_000   // properties, side files and outputs of a submission, flags and arguments of its program
	MaxName   = 1_000     // bytes of a name: of a job, a flow, a key, a user, a tracker, its host, address or rack
)

// ErrTooLarge reports a submission beyond one of its bounds.
var ErrTooLarge = errors.New("submission too large")

// Bound says why a submission is larger than a cluster takes. It is asked before one is
// sent and before one is proposed, never of what the log has: earlier builds took more.
func (s *Submission) Bound() error {
	inputs, values, reduces := 0, len(s.Program.Args)+len(s.Program.Flags), 0
	names := []struct{ what, name string }{{"key", s.Key}, {"owner's name", s.Owner}, {"flow's name", s.Plan.Flow}}
	for i := range s.Plan.Jobs {
		j := &s.Plan.Jobs[i]
		names = append(names, struct{ what, name string }{"job's name", j.Name})
		values += len(j.Properties) + len(j.Files) + len(j.Outputs)
		reduces += min(max(j.Reduces, 0), MaxTasks+1)
		inputs += len(j.Inputs)
		for k := range j.Inputs {
			inputs += len(j.Inputs[k].Paths)
		}
	}
	for _, bound := range []struct {
		what    string
		n, most int
	}{
		{"jobs", len(s.Plan.Jobs), MaxJobs},
		{"inputs", inputs, MaxInputs},
		{"reduces in all its jobs", reduces, MaxTasks},
		{"properties, side files, outputs, flags and arguments", values, MaxValues},
	} {
		if bound.n > bound.most {
			return fmt.Errorf("%w: %d %s, at most %d", ErrTooLarge, bound.n, bound.what, bound.most)
		}
	}
	for _, x := range names {
		if len(x.name) > MaxName {
			return fmt.Errorf("%w: the %s %s has %d bytes, at most %d", ErrTooLarge, x.what, quote(x.name), len(x.name), MaxName)
		}
	}
	return nil
}
