// Package past stores the ended attempts of a job, for display, for the job's history and for the
// comparison of trackers. It knows tasks and trackers by number, and reads no clock.
//
// A job may have [MaxStored] ended attempts or more. So [Attempt] is small: it has no strings, but
// an index into a list of causes if it has a cause. Each attempt has the index of the attempt of
// the same task that ended before it. The task has a [Chain], the index of the last one.
//
// Package core calls [Attempts.Add] for each end that is reported, in the order of the reports. It
// reads [Attempts.OfTask] for displays, and [Attempts.Latest] to compare trackers. A history is
// written from a [View], by another goroutine. Attempts itself is not safe for concurrent use.
//
// Invariants
//
//	P1  A chain has each attempt number once, as first reported. Only an attempt that counted
//	    as lost is replaced by a later report.
//	P2  At most MaxStored attempts are stored. Later ones are counted, and Latest yields the
//	    last MaxOverflow of them. An attempt that is reported twice counts twice among them.
package past

import (
	"iter"
	"math"
	"time"

	"github.com/quernmr/quern/wire"
)

// MaxStored bounds the stored attempts of one job.
const MaxStored = 100_000

// MaxOverflow is how many of the last attempts Latest yields beyond these.
const MaxOverflow = 1000

// Attempts holds the ended attempts of a job.
type Attempts struct {
	stored                 chunks
	causes                 []string  // of some stored attempts
	omitted                int       // number of attempts that are not stored
	overflow               []Attempt // ring buffer of the last of these
	maxStored, maxOverflow int       // limits
}

// Attempt is an ended attempt.
type Attempt struct {
	Number      int // as in its AttemptID
	Bytes       int64
	Began       int64 // Unix milliseconds
	Took        int64 // milliseconds
	Reads       wire.Reads
	launchDelay int32 // milliseconds from launch to begin, or unknownLaunch
	Task        int32 // number of its TaskID
	Tracker     int32 // the caller's number for the tracker
	cause       int32 // 1 + index in causes; 0: none
	previous    Chain // the attempts of the task that ended before
	Kind        wire.Kind
	State       wire.AttemptState
	Level       wire.Level
	Lost        bool // its tracker was lost, and has not reported its end
	Second      bool // it was launched beside another attempt of the task
}

// Chain links the stored attempts of one task: it is 1 + the index of the last one, 0 if there
// is none.
type Chain int32

// unknownLaunch marks attempts that an earlier leader launched.
const unknownLaunch = -1

// New returns an empty Attempts.
func New() Attempts {
	return Attempts{stored: chunks{size: chunkSize}, maxStored: MaxStored, maxOverflow: MaxOverflow}
}

// Expect says how many attempts will be stored at least, so that memory for them is allocated only once.
func (x *Attempts) Expect(n int) { x.stored.expect = min(n, x.maxStored) }

// Stored counts the stored attempts.
func (x *Attempts) Stored() int { return x.stored.n }

// At returns stored attempt i, in the order of the reports. It must not be changed.
func (x *Attempts) At(i int) *Attempt { return x.stored.at(i) }

// SetLevel sets the locality of stored attempt i.
func (x *Attempts) SetLevel(i int, level wire.Level) { x.stored.change(i).Level = level }

// OfTask yields the stored attempts of a chain, the last reported one first.
func (x *Attempts) OfTask(chain Chain) iter.Seq[*Attempt] {
	return func(yield func(*Attempt) bool) {
		for at := chain; at != 0; at = x.stored.at(int(at) - 1).previous {
			if !yield(x.stored.at(int(at) - 1)) {
				return
			}
		}
	}
}

// Last returns the last reported attempt; there must be one.
func (x *Attempts) Last() *Attempt {
	if x.omitted > 0 {
		return &x.overflow[(x.omitted-1)%x.maxOverflow]
	}
	return x.stored.at(x.stored.n - 1)
}

// Omitted counts the ended attempts that are not stored.
func (x *Attempts) Omitted() int { return x.omitted }

// SetTimes sets when an attempt began and how long it took. since is when this leader launched
// it, or got the first report if an earlier leader did, in Unix milliseconds. If its tracker does
// not report took (0), the attempt counts as begun at since.
func (a *Attempt) SetTimes(since, ended int64, took time.Duration, launched bool) {
	a.Began, a.Took = since, took.Milliseconds()
	if a.Took > 0 {
		a.Began = ended - a.Took
	} else {
		a.Took = ended - since
	}
	a.launchDelay = unknownLaunch
	if launched {
		a.launchDelay = int32(min(max(a.Began-since, 0), math.MaxInt32))
	}
}

// Before returns the milliseconds from launch to begin, 0 if they are not known.
func (a *Attempt) Before() int64 { return int64(max(a.launchDelay, 0)) }

// Added says what Add did.
type Added int

// The results of Add.
const (
	Stored   Added = iota // the attempt is stored
	Replaced              // it is stored in place of its report that it was lost
	Omitted               // it is not stored, and may have been reported before
	Repeated              // it was reported before
)

// Add adds an attempt to the chain of its task, with the cause of its end, if any. If it replaces a lost
// attempt, it returns that.
func (x *Attempts) Add(chain *Chain, a Attempt, cause string) (did Added, lost Attempt) {
	a.previous = *chain
	at := *chain
	for at != 0 && x.stored.at(int(at)-1).Number != a.Number {
		at = x.stored.at(int(at) - 1).previous
	}
	var to *Attempt
	switch {
	case at != 0 && x.stored.at(int(at)-1).Lost:
		to = x.stored.change(int(at) - 1)
		did, lost = Replaced, *to
		a.previous = to.previous
	case at == 0 && x.stored.n == x.maxStored:
		x.addOverflow(a)
		return Omitted, lost
	case at == 0:
		x.stored.append(Attempt{})
		to = x.stored.at(x.stored.n - 1)
		*chain = Chain(x.stored.n)
	default:
		return Repeated, lost
	}
	if cause != "" {
		x.causes = append(x.causes, wire.Truncate(cause, wire.MaxTrouble))
		a.cause = int32(len(x.causes))
	}
	*to = a
	return did, lost
}

func (x *Attempts) addOverflow(a Attempt) {
	if len(x.overflow) < x.maxOverflow {
		x.overflow = append(x.overflow, Attempt{})
	}
	x.overflow[x.omitted%x.maxOverflow] = a
	x.omitted++
}

// Latest yields the ended attempts, the last one first. Beyond the stored ones it has the last
// MaxOverflow: attempts at the end of a large job count when trackers are compared.
func (x *Attempts) Latest() iter.Seq[*Attempt] {
	return func(yield func(*Attempt) bool) {
		for i := range x.overflow {
			if !yield(&x.overflow[(x.omitted-1-i)%x.maxOverflow]) {
				return
			}
		}
		for i := x.stored.n - 1; i >= 0; i-- {
			if !yield(x.stored.at(i)) {
				return
			}
		}
	}
}

// Status returns the status of a stored attempt, without job, tracker name and address.
func (x *Attempts) Status(a *Attempt) wire.AttemptStatus { return a.status(x.causes) }

func (a *Attempt) status(causes []string) wire.AttemptStatus {
	s := wire.AttemptStatus{
		Attempt: wire.AttemptID{Task: wire.TaskID{Kind: a.Kind, N: int(a.Task)}, N: a.Number}, State: a.State,
		Bytes: wire.Progress{Done: a.Bytes, Total: a.Bytes}, Began: a.Began, Took: a.Took, Level: a.Level, Reads: a.Reads, Speculative: a.Second,
	}
	if a.launchDelay != unknownLaunch {
		s.Launched = a.Began - int64(a.launchDelay)
	}
	if a.cause > 0 {
		s.Error = causes[a.cause-1]
	}
	return s
}
