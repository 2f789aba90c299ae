package core

import (
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/census"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// Command is one of the structs below.
type Command interface{ command() }

type (
	// Propose proposes an entry to the log. The answer is an Entry, Undecided or Refused.
	Propose struct {
		Key  string // names the proposal in Undecided and Refused
		Data []byte
	}

	// Send sends a message to a tracker.
	Send struct {
		Stream  Stream
		Message wire.Message
	}

	// CloseStream closes a stream after all earlier messages are sent.
	CloseStream struct{ Stream Stream }

	// Reply answers a request.
	Reply struct {
		Token    Token
		Jobs     []wire.JobID      // the submitted jobs, after a Submit
		Census   *census.Census    // after a TakeCensus
		OpenJobs *Later[*OpenJobs] // after a TakeOpenJobs
		Recent   *Later[*Recent]   // after a TakeRecent
		Err      error
	}

	// Allocate asks the scheduler for a Plan. The next one for the phase comes after the answer,
	// or after a change of scheduling. Then the answer to the earlier one is ignored.
	Allocate struct {
		Epoch    uint64
		Seq      uint64
		Phase    wire.Kind
		Policy   string // name of the scheduler, see scheduler/menu
		Snapshot scheduler.Snapshot
	}

	// LoadSplits reads a job's splits file.
	LoadSplits struct {
		Epoch   uint64
		Job     wire.JobID
		Staging string // URL of the submission's directory
		Owner   string // of the job
		Maps    int    // required number of splits
		Hash    uint64
		Delay   time.Duration // time to wait before reading
	}

	// RemoveStaging removes a submission's directory. All jobs of the submission have ended.
	RemoveStaging struct {
		Epoch uint64
		Key   string
		URL   string // of the directory
		Owner string // of the submission's jobs
		Delay time.Duration
	}

	// WriteHistory writes the history of a job that is about to end, unless it exists.
	WriteHistory struct {
		Epoch uint64
		Job   wire.JobID
		URL   string
		Delay time.Duration

		record   *history.Record // without Attempts, see Record
		attempts *AttemptsView
	}

	// LoadHistory reads the history of an ended job, for later jobs of the same name.
	LoadHistory struct {
		Epoch   uint64
		JobName string
		Job     wire.JobID // the ended job
		URLs    []string   // possible URLs of its history; one exists
	}

	// Tidy removes old files in the staging directory that no submission uses.
	Tidy struct {
		Epoch       uint64
		Cluster     string          // the cluster's id
		Submissions map[string]bool // keys of known submissions
		Programs    map[string]bool // hashes of executables in use
		Sessions    map[string]bool // names of sessions of drivers with a job that has not ended
	}

	// RemoveNonce removes the nonce file of a cluster that was not created. It has no answer.
	RemoveNonce struct{ URL string }

	// LogLine writes a line to this process's log. Only the leader emits it. It has no answer.
	LogLine struct {
		Warn bool // the line is a warning
		Text string
		Args []any // names and values, alternating
	}

	// Halt stops this job tracker, for the reason Err. It is the last command.
	Halt struct{ Err error }
)

func (Propose) command()       {}
func (Send) command()          {}
func (CloseStream) command()   {}
func (Reply) command()         {}
func (Allocate) command()      {}
func (LoadSplits) command()    {}
func (RemoveStaging) command() {}
func (WriteHistory) command()  {}
func (LoadHistory) command()   {}
func (Tidy) command()          {}
func (RemoveNonce) command()   {}
func (LogLine) command()       {}
func (Halt) command()          {}
