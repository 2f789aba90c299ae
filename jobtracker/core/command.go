package core

import (
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// Command is one of the structs below.
type Command interface{ command() }

type (
	// Propose asks for an entry to be committed. It returns as Entry, Undecided or Refused.
	Propose struct {
		Key  string // names the proposal in Undecided and Refused
		Data []byte
	}

	// Send sends a message to a tracker.
	Send struct {
		Stream  Stream
		Message wire.Message
	}

	// CloseStream ends a stream after the messages sent before.
	CloseStream struct{ Stream Stream }

	// Reply answers a request.
	Reply struct {
		Token Token
		Jobs  []wire.JobID // of a Submit
		Err   error
	}

	// Allocate asks the policy for a Plan. At most one per phase is awaited. After a change of
	// scheduling the next comes at once, and the answer to this one is ignored.
	Allocate struct {
		Epoch    uint64
		Seq      uint64
		Phase    wire.Kind
		Policy   string // its name, see scheduler/menu
		Snapshot scheduler.Snapshot
	}

	// LoadSplits reads a job's splits file.
	LoadSplits struct {
		Epoch   uint64
		Job     wire.JobID
		Staging string // URL of the submission's directory
		Maps    int    // number of splits that it must hold
		Hash    uint64
		Delay   time.Duration // delay before a retry
	}

	// RemoveStaging removes the directory of a submission whose jobs have all ended.
	RemoveStaging struct {
		Epoch uint64
		Key   string
		URL  string // URL of the directory
		Delay time.Duration
	}

	// WriteHistory writes the history of a job that is about to end, unless it exists.
	WriteHistory struct {
		Epoch  uint64
		Job    wire.JobID
		URL   string // URL
		Record *history.Record
		Delay  time.Duration
	}

	// LoadHistory reads the history of an ended job, for later jobs of the same name.
	LoadHistory struct {
		Epoch uint64
		JobName  string     // of the jobs
		Job   wire.JobID // the ended job
		URLs []string   // URLs, one of which exists
	}

	// Tidy removes old files below the staging directory that nothing uses.
	Tidy struct {
		Epoch       uint64
		Cluster     string          // id
		Submissions map[string]bool // keys of known submissions
		Programs    map[string]bool // hashes of executables in use
	}

	// RemoveNonce removes the staged nonce of a cluster that never began. It has no answer.
	RemoveNonce struct{ URL string } // URL

	// Note is a line for the job tracker's log. Only the leader emits it. It has no answer.
	LogLine struct {
		Warn bool // operators should see it
		Text string
		Args []any // names and values
	}

	// Halt says why this job tracker must stop. It is the last command.
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
func (LogLine) command()          {}
func (Halt) command()          {}
