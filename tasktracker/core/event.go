package core

import "github.com/quernmr/quern/wire"

// Event is what happened. The set is closed.
type Event interface{ event() }

type (
	// Tick says only that time has passed.
	Tick struct{}

	// StreamUp says that a stream to a job tracker is open and empty.
	StreamUp struct{}

	// StreamDown says that the stream has ended; what was sent on it may be lost.
	StreamDown struct{}

	// FromLeader is a message that came over the stream.
	FromLeader struct{ Message wire.Message }

	// NonceRead answers a [ReadNonce].
	NonceRead struct {
		Stream int
		Nonce  string
		Error  string // why it could not be read; empty: it was
	}

	// FromWorker is a message of a worker. With a WorkerDone, Alone says that the
	// worker has left no processes behind.
	FromWorker struct {
		Worker  int
		Message wire.Message
		Alone   bool
	}

	// WorkerExited says that a worker's process group is gone, or could not be
	// started or reached at all. It comes once for every [StartWorker] and is the
	// worker's last event.
	WorkerExited struct {
		Worker int
		Reason string // "exit status 3", "signal: killed", why it did not start
	}

	// LogRead answers a [ReadLog]. Cause is why a worker has crashed, as Go says; empty:
	// it does not. Limits are those in force then.
	LogRead struct {
		Attempt wire.AttemptID
		Text    string
		Cause   string
		Limits  string
	}

	// FetchDone answers a [Fetch], once, also when it was cancelled. After an error
	// no file is left.
	FetchDone struct {
		Fetch   int
		Segment wire.Segment
		Records int64
		Error   string // empty: Segment is at hand and verified
		Corrupt bool   // a checksum failed
		Gone    bool   // the output is not where it should be, for certain
		Stalled bool   // the host has delivered nothing, or too little, for long
		Local   bool   // this tracker's own disk is at fault
	}

	// MergeDone answers a [Merge], once, also when it was cancelled. After an error
	// no file is left.
	MergeDone struct {
		Merge   int
		Segment wire.Segment
		Error   string        // empty: Segment holds all the runs
		Corrupt *wire.Segment // the run whose checksum failed
		Local   bool          // this tracker's own disk is at fault
	}

	// Exceeded says that a worker has taken more than the last [Limit] allows.
	Exceeded struct {
		Worker int
		Reason string // naming limit and use
	}

	// Recorded answers a [Record].
	Recorded struct {
		Attempt wire.AttemptID
		Error   string // the output will not outlive this process
	}

	// Restored is the report of a map output of an earlier process, which was
	// verified.
	Restored struct {
		Disk   int
		Report wire.Report
	}

	// RestoreEnded says that no Restored will come any more.
	RestoreEnded struct{}

	// DiskProbed answers a [Probe], or tells of a disk that was found bad at start.
	DiskProbed struct {
		Disk  int
		Error string // empty: it can be written and read
	}
)

func (Tick) event()         {}
func (StreamUp) event()     {}
func (StreamDown) event()   {}
func (FromLeader) event()   {}
func (NonceRead) event()    {}
func (FromWorker) event()   {}
func (WorkerExited) event() {}
func (LogRead) event()      {}
func (FetchDone) event()    {}
func (MergeDone) event()    {}
func (Exceeded) event()     {}
func (Recorded) event()     {}
func (Restored) event()     {}
func (RestoreEnded) event() {}
func (DiskProbed) event()   {}

// Command is what to do about it. The set is closed.
type Command interface{ command() }

type (
	// Send sends a message to the leader.
	Send struct{ Message wire.Message }

	// Hangup closes the stream.
	Hangup struct {
		Reason string
		Fault  bool // the same is to be expected of the next one, until somebody sees to it
	}

	// ReadNonce reads what is in a file of the staging directory.
	ReadNonce struct {
		Stream int
		File   string // URL
	}

	// KeepCluster keeps the id of the cluster that the tracker's directory belongs to.
	KeepCluster struct{ Cluster string }

	// KeepStaging keeps the URL of the staging directory that the first leader has named.
	KeepStaging struct{ Staging string }

	// Leave ends the tracker, which was to drain and is not needed any more.
	Leave struct{}

	// Quit ends the tracker with an error.
	Quit struct{ Reason string }

	// StartWorker starts a worker of a submission. Dir is made for it.
	StartWorker struct {
		Worker  int
		Staging string
		Root    string // the staging directory, in which its program is too; empty: anywhere
		Dir     string
	}

	// SendWorker sends a message to a worker. The directories that a wire.Run
	// names are made first.
	SendWorker struct {
		Worker  int
		Message wire.Message
	}

	// Limit bounds what a worker and all it has started may take together, from the
	// next [SendWorker] on; 0: any.
	Limit struct {
		Worker    int
		Kind      wire.Kind // of the attempt that it is for
		Memory    int64
		Processes int
	}

	// KillWorker kills a worker's process group.
	KillWorker struct{ Worker int }

	// ReadLog reads the last lines of the last of the files that has any, or of a crash
	// in them.
	ReadLog struct {
		Attempt wire.AttemptID
		Files   []string
		Crashed bool  // the worker ended by itself, as a Go program does that crashes
		Limit   Limit // that the worker was held to
	}

	// Fetch gets one partition of a map output: from the shuffle service at the
	// output's address into File, or, in place, by looking up where in File it lies.
	Fetch struct {
		Fetch     int
		Output    wire.MapOutput
		Job       wire.JobID
		Partition int
		InPlace   bool
		File      string
	}

	// Share says how jobs divide what fetches under way bring, where that is held to
	// a rate: those named first go first, each up to its share as long as others have
	// something to fetch; those not named come last, alike.
	Share struct{ Shares []wire.JobShare }

	// CancelFetch makes a Fetch end soon.
	CancelFetch struct{ Fetch int }

	// Merge merges runs into one file.
	Merge struct {
		Merge int
		Runs  []wire.Segment
		File  string
	}

	// CancelMerge makes a Merge end soon.
	CancelMerge struct{ Merge int }

	// Record writes a report into a file, whole or not at all.
	Record struct {
		File   string
		Report *wire.Report
	}

	// Probe tries whether a disk can be written and read, once what was to be removed
	// before is gone.
	Probe struct {
		Disk int
		Path string
	}

	// Remove removes a file or a tree; a missing one is no error.
	Remove struct{ Path string }

	// Forget says that a submission has no job here any more, and has ended or had none
	// here for the time that workers stay for the next job of a flow.
	Forget struct{ Staging string }
)

func (Send) command()        {}
func (Hangup) command()      {}
func (ReadNonce) command()   {}
func (KeepCluster) command() {}
func (KeepStaging) command() {}
func (Leave) command()       {}
func (Quit) command()        {}
func (StartWorker) command() {}
func (SendWorker) command()  {}
func (Limit) command()       {}
func (Record) command()      {}
func (Probe) command()       {}
func (KillWorker) command()  {}
func (ReadLog) command()     {}
func (Fetch) command()       {}
func (Share) command()       {}
func (CancelFetch) command() {}
func (Merge) command()       {}
func (CancelMerge) command() {}
func (Remove) command()      {}
func (Forget) command()      {}
