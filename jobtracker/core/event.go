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

// Stream identifies one connection of a tracker. The owner never reuses a number.
type Stream = handshake.Stream

// Token identifies a client's request until its [Reply].
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

	// Restored replaces Facts by a snapshot, of another job tracker or of an earlier run.
	Restored struct{ Snapshot []byte }

	// Elected says that this job tracker leads in a term. Entries of earlier terms come before
	// those of Term.
	Elected struct {
		Term uint64
		Wall int64 // Unix milliseconds: start of a new cluster, and for display
	}

	// Deposed ends the term. An entry of a later term ends it too, and may come first.
	Deposed struct{}

	// Undecided says that the outcome of a proposal is unknown.
	Undecided struct{ Key string }

	// Refused says that the log will not take a proposal, now or later.
	Refused struct {
		Key string
		Err error
	}

	// LogFailed says that the log does not work any more in this process.
	LogFailed struct{ Err error }
)

// Tick says that time has passed. The owner has handed in all messages that were read before
// Read; 0: before now.
type Tick struct{ ReadUntil time.Duration }

// Of trackers.
type (
	// FromTracker is a message of a tracker; the first on a stream is a Hello. The owner hands
	// messages in roughly in the order in which it read them, perhaps much later.
	FromTracker struct {
		Stream  Stream
		Message wire.Message
		ReadAt    time.Duration // when it was read; 0: now
	}

	// StreamClosed says that a stream has ended without a CloseStream.
	StreamClosed struct{ Stream Stream }
)

// Of clients; each is answered by one Reply.
type (
	// Submit submits a job or flow. The same key always gets the same answer.
	Submit struct {
		Token      Token
		By         Caller
		Wall       int64 // Unix milliseconds
		Submission *wire.Submission
		Secret     []byte // random, for the tokens of its jobs
	}

	// Change asks for other settings of a job's submission, or to suspend or resume it. Nil
	// fields stay. The Reply comes when the change is in the log.
	Change struct {
		Token Token
		By    Caller
		Job   wire.JobID
		wire.Change
	}

	// Schedule asks for another scheduler, metric or delay rule. Empty fields stay.
	Schedule struct {
		Token      Token
		Scheduling wire.Scheduling
	}

	// Drain drains a task tracker; with Undo it ends the drain.
	Drain struct {
		Token   Token
		Tracker string
		Undo    bool
	}

	// Kill stops a job. The Reply comes when the stop is in the log.
	Kill struct {
		Token  Token
		By     Caller
		Job    wire.JobID
		Reason string
	}
)

// Caller is the user or daemon that makes a request.
type Caller = admission.Caller

// request is an event with one Reply.
type request interface {
	Event
	token() Token
}

func (r Submit) token() Token   { return r.Token }
func (r Change) token() Token   { return r.Token }
func (r Schedule) token() Token { return r.Token }
func (r Drain) token() Token    { return r.Token }
func (r Kill) token() Token     { return r.Token }

// Pools is the content of the allocation file, or why it cannot be used. It has no answer.
// Followers ignore it.
type PoolsRead struct {
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

	// HistoryLoaded answers LoadHistory. After an error the job has no profile.
	HistoryLoaded struct {
		Epoch   uint64
		JobName    string
		Profile *history.Profile
		Err     error
	}

	// Tidied answers Tidy. After an error the next Tidy tries again.
	Tidied struct {
		Epoch uint64
		Err   error
	}

	// Allocated answers Allocate with a Plan that is valid for the command's Snapshot, or with
	// an error.
	Allocated struct {
		Epoch uint64
		Seq   uint64
		Phase wire.Kind
		Plan  scheduler.Plan
		Err   error
	}
)

// Split is what the leader needs of a map's input.
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
func (PoolsRead) event()          {}
func (SplitsLoaded) event()   {}
func (StagingRemoved) event() {}
func (HistoryWritten) event() {}
func (HistoryLoaded) event()  {}
func (Tidied) event()         {}
func (Allocated) event()      {}
