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
	// Propose asks for an entry to be committed. It comes back as Entry, as Undecided or as Refused.
	Propose struct {
		Key  string // says what it is; names it in Undecided
		Data []byte
	}

	// Send sends a message to a tracker.
	Send struct {
		Stream  Stream
		Message wire.Message
	}

	// CloseStream ends a stream after what was sent before.
	CloseStream struct{ Stream Stream }

	// Reply answers a request.
	Reply struct {
		Token Token
		Jobs  []wire.JobID // of a Submit
		Err   error
	}

	// Allocate asks the policy for a Plan. Of a phase one is waited for
	// at most; when another scheduling is in force the next is asked for at once, and the
	// answer to this one comes to nothing.
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
		Maps    int    // how many splits it must hold
		Hash    uint64
		After   time.Duration // how long to wait before, for it has failed before
	}

	// RemoveStaging removes the directory of a submission whose jobs have all ended.
	RemoveStaging struct {
		Epoch uint64
		Key   string
		Name  string // URL of the directory
		After time.Duration
	}

	// WriteHistory writes the history of a job that is about to end, unless it is there.
	WriteHistory struct {
		Epoch  uint64
		Job    wire.JobID
		Name   string // URL
		Record *history.Record
		After  time.Duration
	}

	// LoadHistory reads the history of a job that has ended, for those of the same name.
	LoadHistory struct {
		Epoch uint64
		Name  string     // of the jobs
		Job   wire.JobID // that has ended
		Files []string   // URLs: it is one of these
	}

	// Tidy removes what is old below the staging directory and belongs to nobody.
	Tidy struct {
		Epoch       uint64
		Cluster     string          // id
		Submissions map[string]bool // keys of those that are known
		Programs    map[string]bool // hashes of the executables that are in use
	}

	// RemoveNonce removes the staged nonce of a cluster that was never begun. It has
	// no answer.
	RemoveNonce struct{ Name string } // URL

	// Note is a line for the job tracker's log. The leader alone has any. It has no answer.
	Note struct {
		Warn bool // an operator should know
		Text string
		Args []any // names and values
	}

	// Halt says that this job tracker must not go on, and why. It is the last command.
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
func (Note) command()          {}
func (Halt) command()          {}
