package core

import (
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/handshake"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// Stream names one connection of a tracker. The owner never uses a number twice.
type Stream = handshake.Stream

// Token names a client's request until its [Reply].
type Token uint64

// Event is one of the structs below.
type Event interface{ event() }

// Of the log.
type (
	// Entry is a committed entry, the leader's own ones included.
	Entry struct {
		Index, Term uint64
		Data        []byte
	}

	// Restored replaces Facts by a snapshot of another job tracker or an earlier run.
	Restored struct{ Snapshot []byte }

	// Elected says that this job tracker leads in a term. All entries of earlier
	// terms that will ever be committed have come, or come before those of Term.
	Elected struct {
		Term uint64
		Wall int64 // Unix milliseconds: the start of a cluster not bootstrapped yet, and for display
	}

	// Deposed ends it. So does an entry of a later term, which may come first.
	Deposed struct{}

	// Undecided says that the outcome of a proposal is not known.
	Undecided struct{ Key string }

	// Refused says that the log will not take a proposal, now or later.
	Refused struct {
		Key string
		Err error
	}

	// LogFailed says that the log will never work again in this process.
	LogFailed struct{ Err error }
)

// Tick says that time has passed. All messages that were read before Read have been
// handed in; 0: all that were read by now.
type Tick struct{ Read time.Duration }

// Of trackers.
type (
	// FromTracker is a message of a tracker; the first on a stream is a Hello. Messages
	// are handed in about in the order in which they are read, perhaps much later.
	FromTracker struct {
		Stream  Stream
		Message wire.Message
		Read    time.Duration // when it was; 0: now
	}

	// StreamClosed says that a stream has ended without a CloseStream.
	StreamClosed struct{ Stream Stream }
)

// Of clients; each is answered by one Reply.
type (
	// Submit hands in a submission. The same key always gets the same answer.
	Submit struct {
		Token      Token
		By         Asker
		Wall       int64 // Unix milliseconds
		Submission *wire.Submission
		Secret     []byte // random, for the tokens of its jobs
	}

	// Change asks for other settings of the submission that a job is of, or for it to be
	// suspended or resumed. What is nil stays. It is answered when it is in the log.
	Change struct {
		Token Token
		By    Asker
		Job   wire.JobID
		wire.Change
	}

	// Schedule asks for another scheduler, metric or delay rule; what is empty stays.
	Schedule struct {
		Token      Token
		Scheduling wire.Scheduling
	}

	// Drain has a task tracker leave as soon as nobody needs it, or, undone, stay.
	Drain struct {
		Token   Token
		Tracker string
		Undo    bool
	}

	// Kill stops a job. It is answered when the stop is in the log.
	Kill struct {
		Token  Token
		By     Asker
		Job    wire.JobID
		Reason string
	}
)

// Asker is the user or daemon that makes a request.
type Asker = admission.Asker

// request is an event that is answered by one Reply.
type request interface {
	Event
	token() Token
}

func (r Submit) token() Token   { return r.Token }
func (r Change) token() Token   { return r.Token }
func (r Schedule) token() Token { return r.Token }
func (r Drain) token() Token    { return r.Token }
func (r Kill) token() Token     { return r.Token }

// Pools says what the allocation file holds, or why it cannot be used. It has no
// answer; who does not lead ignores it.
type Pools struct {
	Table pool.Table
	Err   error
}

// Results of effects. Epoch and Job are those of the command.
type (
	// SplitsLoaded answers LoadSplits.
	SplitsLoaded struct {
		Epoch  uint64
		Job    wire.JobID
		Splits []Split
		Err    error
	}

	// StagingRemoved answers RemoveStaging.
	StagingRemoved struct {
		Epoch uint64
		Key   string // of the submission
		Err   error
	}

	// HistoryWritten answers WriteHistory.
	HistoryWritten struct {
		Epoch uint64
		Job   wire.JobID
		Err   error
	}

	// HistoryLoaded answers LoadHistory. A failure means that there is none.
	HistoryLoaded struct {
		Epoch   uint64
		Name    string
		Profile *history.Profile
		Err     error
	}

	// Tidied answers Tidy. It failing is no matter: the next one tries again.
	Tidied struct {
		Epoch uint64
		Err   error
	}

	// Allocated answers Allocate: a Plan that is valid for the command's Snapshot, or why there is none.
	Allocated struct {
		Epoch uint64
		Seq   uint64
		Phase wire.Kind
		Plan  scheduler.Plan
		Err   error
	}
)

// Split is what the leader needs to know of a map's input.
type Split = assign.Split

func (Entry) event()          {}
func (Restored) event()       {}
func (Elected) event()        {}
func (Deposed) event()        {}
func (Undecided) event()      {}
func (Refused) event()        {}
func (LogFailed) event()      {}
func (Tick) event()           {}
func (FromTracker) event()    {}
func (StreamClosed) event()   {}
func (Submit) event()         {}
func (Kill) event()           {}
func (Change) event()         {}
func (Schedule) event()       {}
func (Drain) event()          {}
func (Pools) event()          {}
func (SplitsLoaded) event()   {}
func (StagingRemoved) event() {}
func (HistoryWritten) event() {}
func (HistoryLoaded) event()  {}
func (Tidied) event()         {}
func (Allocated) event()      {}
