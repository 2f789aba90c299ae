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

// Events of the log.
type (
	// Entry is a committed entry of the log, also one that this leader proposed.
	Entry struct {
		Index, Term uint64
		Data        []byte
	}

	// Restored replaces Facts by a snapshot.
	Restored struct{ Snapshot []byte }

	// Elected says that this job tracker is elected for a term. Its term starts when all entries
	// of earlier terms are applied.
	Elected struct {
		Term uint64
		Wall int64 // current time in Unix milliseconds
	}

	// Deposed says that the term has ended. An entry of a later term may come first, and says
	// the same.
	Deposed struct{}

	// Undecided says that the outcome of a proposal is unknown.
	Undecided struct{ Key string }

	// Refused says that the log will not take a proposal, now or later.
	Refused struct {
		Key string
		Err error
	}

	// LogFailed says that the log has failed, until the process restarts.
	LogFailed struct{ Err error }
)

// Tick says that time has passed, and that the owner has passed all messages to Step that it
// read before ReadUntil; 0: before now.
type Tick struct{ ReadUntil time.Duration }

// Events of trackers.
type (
	// FromTracker is a message of a tracker. The first message on a stream is a Hello. Messages
	// come roughly in the order in which the owner read them, perhaps much later.
	FromTracker struct {
		Stream  Stream
		Message wire.Message
		ReadAt  time.Duration // when the owner read it; 0: now
	}

	// StreamClosed says that a stream has ended, but not after a CloseStream.
	StreamClosed struct{ Stream Stream }
)

// Requests of clients. Each gets one Reply.
type (
	// Submit submits a job or flow. Requests with the same submission key get the same answer.
	Submit struct {
		Token      Token
		By         Caller
		Wall       int64 // Unix milliseconds
		Submission *wire.Submission
		Secret     []byte // random bytes, for the tokens of the jobs
	}

	// Change changes the settings of a job's submission, or suspends or resumes it. Nil fields
	// change nothing. The Reply comes when the change is in the log.
	Change struct {
		Token Token
		By    Caller
		Job   wire.JobID
		wire.Change
	}

	// Schedule sets the scheduler, metric and delay rule. Empty fields change nothing.
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

	// Exclude excludes a task tracker from new work; with Undo it readmits the tracker.
	Exclude struct {
		Token   Token
		Tracker string
		Wall    int64         // Unix milliseconds
		By      string        // the operator
		Reason  string        // may be empty
		For     time.Duration // 0: until it is readmitted
		Undo    bool
	}

	// TakeCensus asks for a census of the cluster, for metrics. The Reply may come after later Steps.
	TakeCensus struct{ Token Token }

	// EndAttempt kills a running attempt of a map or reduce, or fails it. The Reply comes when the attempt
	// has ended, or a kill will reach its tracker when that connects.
	EndAttempt struct {
		Token   Token
		By      Caller
		Attempt wire.AttemptID
		Fail    bool // it counts as a failure of its task
		Reason  string
	}

	// TakeOpenJobs asks for a description of the jobs that have not ended. The Reply may come after later Steps.
	TakeOpenJobs struct{ Token Token }

	// TakeRecent asks for the attempts that run or have ended lately. The Reply may come after later Steps.
	TakeRecent struct{ Token Token }

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

func (r Submit) token() Token     { return r.Token }
func (r Change) token() Token     { return r.Token }
func (r Schedule) token() Token   { return r.Token }
func (r Drain) token() Token      { return r.Token }
func (r Exclude) token() Token    { return r.Token }
func (r TakeCensus) token() Token { return r.Token }
func (r EndAttempt) token() Token { return r.Token }
func (r Kill) token() Token       { return r.Token }

func (r TakeOpenJobs) token() Token { return r.Token }
func (r TakeRecent) token() Token   { return r.Token }

// PoolsRead is the content of the allocation file, or why it cannot be used. It has no answer.
// Followers ignore it.
type PoolsRead struct {
	Table pool.Table
	Err   error
}

// Results of effects. Epoch and Job repeat the command's fields.
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
		Key   string // the submission's key
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
		JobName string
		Profile *history.Profile
		Err     error
	}

	// Tidied answers Tidy. After an error the next Tidy tries again.
	Tidied struct {
		Epoch uint64
		Err   error
	}

	// Allocated answers Allocate with a valid Plan or an error.
	Allocated struct {
		Epoch uint64
		Seq   uint64
		Phase wire.Kind
		Plan  scheduler.Plan
		Err   error
	}
)

// Split says how large a map's input is and where it is.
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
func (EndAttempt) event()     {}
func (Change) event()         {}
func (Schedule) event()       {}
func (Drain) event()          {}
func (Exclude) event()        {}
func (TakeCensus) event()     {}
func (TakeRecent) event()     {}
func (TakeOpenJobs) event()   {}
func (PoolsRead) event()      {}
func (SplitsLoaded) event()   {}
func (StagingRemoved) event() {}
func (HistoryWritten) event() {}
func (HistoryLoaded) event()  {}
func (Tidied) event()         {}
func (Allocated) event()      {}
