package faults

import (
	"fmt"
	"strings"

	"github.com/quernmr/quern/wire"
)

const (
	MaxReason = 8 << 10 // bytes of a failure's text, which the replicated log keeps
)

// Failure describes a failed attempt.
type Failure struct {
	attempt wire.AttemptID
	tracker string
	cause   string
	log     string
}

// NewFailure makes a Failure of at most MaxReason. It bounds the cause separately, so that a long
// cause leaves room for the log.
func NewFailure(tracker string, id wire.AttemptID, r *wire.Result) *Failure {
	f := &Failure{attempt: id, tracker: tracker, cause: wire.Truncate(r.Error, MaxReason*3/8), log: wire.Truncate(r.Log, MaxReason/2)}
	if f.cause == "" {
		f.cause = "failed without saying why"
	}
	return f
}

// WithoutLog renders the failure without the attempt's log.
func (f *Failure) WithoutLog() string {
	return fmt.Sprintf("%v on tracker %s: %s", f.attempt, f.tracker, f.cause)
}

func (f *Failure) String() string {
	text := f.WithoutLog()
	if log := strings.TrimRight(f.log, "\n"); log != "" {
		text += "\n" + log
	}
	return text
}

// AttemptsUsedUp reports whether a task has failed maxAttempts times, and returns the reason.
func (x *Faults) AttemptsUsedUp(t Task, id wire.TaskID, maxAttempts int) (reason string, usedUp bool) {
	m := x.get(t)
	switch n := len(m.failed); {
	case n < maxAttempts:
		return "", false
	case n == 1:
		return fmt.Sprintf("%v failed: %v", id, m.first), true
	default:
		return fmt.Sprintf("%v failed %d times, first %v", id, n, m.first), true
	}
}

// AddTrouble notes a problem that does not end the job.
func (x *Faults) AddTrouble(text string) {
	if len(x.troubles)-x.losses < wire.MaxTroubles {
		x.troubles = append(x.troubles, wire.Truncate(text, wire.MaxTrouble))
	}
}

// AddLossTrouble notes what the loss of a tracker costs the job.
func (x *Faults) AddLossTrouble(text string) {
	if x.losses < wire.MaxTroubles {
		x.losses++
		x.troubles = append(x.troubles, wire.Truncate(text, wire.MaxTrouble))
	}
}

// Troubles returns all noted texts, in order.
func (x *Faults) Troubles() []string { return x.troubles }
