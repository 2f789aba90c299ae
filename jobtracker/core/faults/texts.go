package faults

import (
	"fmt"
	"strings"

	"github.com/quernmr/quern/wire"
)

const (
	MaxReason = 8 << 10 // of a text that goes to the log, in bytes
)

// Failure is how an attempt failed.
type Failure struct {
	attempt wire.AttemptID
	tracker string
	cause   string
	log     string
}

// NewFailure keeps of a result what fits into a reason, its log whole as trackers
// bound it: a long cause must not push it out.
func NewFailure(tracker string, id wire.AttemptID, r *wire.Result) *Failure {
	f := &Failure{attempt: id, tracker: tracker, cause: wire.Truncate(r.Error, MaxReason*3/8), log: wire.Truncate(r.Log, MaxReason/2)}
	if f.cause == "" {
		f.cause = "failed without saying why"
	}
	return f
}

// Short is the failure without the attempt's log.
func (f *Failure) Short() string {
	return fmt.Sprintf("%v on tracker %s: %s", f.attempt, f.tracker, f.cause)
}

func (f *Failure) String() string {
	text := f.Short()
	if log := strings.TrimRight(f.log, "\n"); log != "" {
		text += "\n" + log
	}
	return text
}

// AttemptsUsedUp says whether as many attempts of a task have failed as may, and that in words.
func (x *Faults) AttemptsUsedUp(t Task, id wire.TaskID, attempts int) (why string, spent bool) {
	m := x.get(t)
	switch n := len(m.failed); {
	case n < attempts:
		return "", false
	case n == 1:
		return fmt.Sprintf("%v failed: %v", id, m.first), true
	default:
		return fmt.Sprintf("%v failed %d times, first %v", id, n, m.first), true
	}
}

// Trouble notes what went wrong and may yet be made good.
func (x *Faults) Trouble(text string) {
	if len(x.troubles)-x.losses < wire.MaxTroubles {
		x.troubles = append(x.troubles, wire.Truncate(text, wire.MaxTrouble))
	}
}

// LossTrouble notes what the loss of a tracker means for the job.
func (x *Faults) LossTrouble(text string) {
	if x.losses < wire.MaxTroubles {
		x.losses++
		x.troubles = append(x.troubles, wire.Truncate(text, wire.MaxTrouble))
	}
}

// Troubles is what was noted, in order.
func (x *Faults) Troubles() []string { return x.troubles }
