package core

import (
	"time"

	"github.com/quernmr/quern/wire"
)

// Event is an input of the core. The set is closed.
type Event interface{ event() }

type (
	// Tick only reports the time.
	Tick struct{}

	// StreamUp reports a new stream to a job tracker.
	StreamUp struct {
		LostLeader string // see wire.Hello
	}

	// StreamDown reports that the stream ended. Messages sent on it may be lost.
	StreamDown struct{}

	// FromLeader is a message from the stream.
	FromLeader struct{ Message wire.Message }

	// NonceRead answers a [ReadNonce].
	NonceRead struct {
		Stream int
		Nonce  string
		Error  string // why the nonce could not be read; empty: it was read
	}

	// FromWorker is a message of a worker. NoLeftovers of a WorkerDone says that the
	// attempt left no other processes.
	FromWorker struct {
		Worker      int
		Message     wire.Message
		NoLeftovers bool
	}

	// WorkerExited reports that a worker's process group has ended, or that the worker
	// could not start. It is a worker's last event; every [StartWorker] leads to one.
	WorkerExited struct {
		Worker int
		Reason string // "exit status 3", "signal: killed", or why it did not start

		Overran time.Duration // it was killed so long after SIGTERM; 0: it ended before
		Fatal   bool          // it can start nowhere: a staged file was changed
	}

	// LogRead answers a [ReadLog]. Cause is Go's message for a crash, or empty. Limits
	// names the limits in force.
	LogRead struct {
		Attempt wire.AttemptID
		Text    string
		Cause   string
		Limits  string
		Record  int64 // 1 + the number in [ReadLog].Position; 0: none
		Full    *FullDisk
	}

	// FullDisk is a disk of [ReadLog].NoSpace that was full.
	FullDisk struct {
		Disk   int
		Filler wire.AttemptID // the attempt that has filled it; zero: none has
		Reason string
	}

	// FetchDone answers a [Fetch], once, even if it was cancelled. After an error the file
	// does not exist.
	FetchDone struct {
		Fetch      int
		Segment    wire.Segment
		Records    int64
		Error      string // empty: Segment is complete and verified
		Corrupt    bool   // a checksum failed
		Missing    bool   // the host has no such output
		Stalled    bool   // the host sent nothing, or too little, for a long time
		DiskFailed bool   // this tracker's own disk failed
		Exhausted  bool   // this tracker has no file descriptor or memory left
	}

	// MergeDone answers a [Merge], once, even if it was cancelled. After an error the file
	// does not exist.
	MergeDone struct {
		Merge      int
		Segment    wire.Segment
		Error      string        // empty: Segment has the records of all runs
		Corrupt    *wire.Segment // the run with a wrong checksum; nil: none
		DiskFailed bool          // this tracker's own disk failed
		Hot        *wire.Hot     // the largest groups of equal keys, also those that are not hot
	}

	// BatchDone ends a [FetchBatch], see shuffle.Gathered.
	BatchDone struct {
		Fetch      int
		Runs       []BatchRun
		Failed     []BatchFailure
		Large      []BatchPair // of outputs of this tracker: they are too large to be copied
		Ended      int         // the first outputs, for which Runs, Failed and Large are complete
		Error      string      // why Ended is less than all; empty: the answer was full
		Stalled    bool        // the peer made no progress for too long
		DiskFailed bool        // this tracker could not write a file: of the batch, then Ended is 0; or one of Failed
		Exhausted  bool        // this tracker has no file descriptor or memory left
	}

	// BatchRun is a run in a [BatchDone]: a partition of some outputs of the batch.
	BatchRun struct {
		Partition int
		Outputs   []int32 // in FetchBatch.Outputs
		Segment   wire.Segment
		Hot       *wire.Hot
	}

	// BatchPair is a partition of an output in FetchBatch.Outputs; -1: all partitions of the batch.
	BatchPair struct{ Output, Partition int }

	// BatchFailure is why a partition was not fetched.
	BatchFailure struct {
		BatchPair
		Error            string
		Corrupt, Missing bool
	}

	// Exceeded reports that a worker exceeded its last [Limit].
	Exceeded struct {
		Worker int
		Reason string // names the limit and the use
		Space  bool   // the limit is one of disk space: files of the attempt must be removed
	}

	// Recorded answers a [Record].
	Recorded struct {
		Attempt wire.AttemptID
		Error   string // why the report could not be written; empty: it was written
	}

	// Restored has the report of a verified map output of an earlier process.
	Restored struct {
		Disk   int
		Report wire.Report
	}

	// RestoreEnded reports that no more Restored follows.
	RestoreEnded struct{}

	// HealthChecked has the last result of the health script.
	HealthChecked struct {
		Unhealthy string // why this machine is unhealthy; empty: it is healthy
	}

	// MachineMeasured has the load of this machine, and the space on its disks.
	MachineMeasured struct {
		Load   float64 // 0: not known
		Spaces []Space
	}

	// Stop says that this process ends. Nothing follows.
	Stop struct{}

	// DiskProbed answers a [Probe], or reports a disk that was bad at start.
	DiskProbed struct {
		Disk  int
		Error string // empty: it can be written and read
	}
)

// Space is the space on a disk, in bytes.
type Space struct {
	Disk        int
	Free, Total int64
}

func (Tick) event()            {}
func (StreamUp) event()        {}
func (StreamDown) event()      {}
func (FromLeader) event()      {}
func (NonceRead) event()       {}
func (FromWorker) event()      {}
func (WorkerExited) event()    {}
func (LogRead) event()         {}
func (FetchDone) event()       {}
func (BatchDone) event()       {}
func (MergeDone) event()       {}
func (Exceeded) event()        {}
func (Recorded) event()        {}
func (Restored) event()        {}
func (RestoreEnded) event()    {}
func (DiskProbed) event()      {}
func (HealthChecked) event()   {}
func (MachineMeasured) event() {}
func (Stop) event()            {}

// Command is an action for the caller. The set is closed.
type Command interface{ command() }

type (
	// Send sends a message to the leader.
	Send struct{ Message wire.Message }

	// Hangup closes the stream.
	Hangup struct {
		Reason     string
		NeedsAdmin bool // the next stream will fail too, until an administrator fixes the cause
	}

	// ReadNonce reads a file of the staging directory.
	ReadNonce struct {
		Stream int
		File   string // URL
	}

	// StoreCluster stores the id of the cluster that the tracker's directory belongs to.
	StoreCluster struct{ Cluster string }

	// StoreStaging stores the URL of the staging directory that the first leader named.
	StoreStaging struct{ Staging string }

	// Leave ends a drained tracker.
	Leave struct{}

	// Quit ends the tracker with an error.
	Quit struct{ Reason string }

	// StartWorker makes Dir and starts a worker of a submission there.
	StartWorker struct {
		Worker  int
		Staging string
		Digest  []byte // of the submission; nil: not known
		Owner   string // of the job, as the leader has authenticated it; empty: not known
		Root    string // the staging directory, which must have the program; empty: any directory
		Dir     string
		First   wire.JobID // first job of the submission
	}

	// SendWorker sends a message to a worker. For a wire.Run it first makes the
	// directories.
	SendWorker struct {
		Worker  int
		Message wire.Message
	}

	// Limit limits the memory and processes of a worker and its children together, from
	// the next wire.Run on; 0: no limit. Cores are those that the attempt requests; 0: none.
	Limit struct {
		Worker    int
		Kind      wire.Kind // of the attempt
		Memory    int64
		Processes int
		Cores     int
	}

	// KillWorker kills a worker's process group.
	KillWorker struct{ Worker int }

	// StopWorker asks a worker to end, and kills its process group some time later. With
	// Dump, the worker first writes its goroutines to its log.
	StopWorker struct {
		Worker int
		Dump   bool
	}

	// ReadLog reads the last lines of Output, and of the last of Files that is not empty. If Crashed is set,
	// it looks in Files for a crash message first. If Dumped is set, it looks for the goroutines first.
	ReadLog struct {
		Attempt  wire.AttemptID
		Output   string   // stdout
		Files    []string // stderr
		Reported string   // error that the worker has reported, and perhaps written to its log; empty: none
		Crashed  bool     // the worker ended like a crashed Go program
		Dumped   bool     // the worker was to write its goroutines
		Limit    Limit    // of the worker

		Position string // file with the record that the attempt was in, see runtime.ReadPosition; empty: none

		NoSpace []Place // disks that may have been full, according to the attempt's error
	}

	// Place is a disk with its path.
	Place struct {
		Disk int
		Path string
	}

	// Fetch fetches one partition of a map output into File, from the tracker that has the
	// output. With InPlace, it looks up the partition's position in File instead.
	Fetch struct {
		Fetch     int
		Output    wire.MapOutput
		Job       wire.JobID
		Partition int
		InPlace   bool
		File      string
	}

	// Share sets how jobs share a limited fetch rate. Jobs in Shares go first, in this
	// order, each up to its share. All other jobs share the rest. A share that its job does
	// not use is free for all.
	Share struct{ Shares []wire.JobShare }

	// FetchBatch fetches partitions of map outputs of one tracker, merges the outputs of each partition, and
	// writes the runs into File. The outputs are in the order of their maps.
	FetchBatch struct {
		Fetch      int
		Job        wire.JobID
		Outputs    []wire.MapOutput
		Partitions []int
		Local      []string // files of the outputs, if this tracker has them
		File       string
	}

	// CancelFetch ends a Fetch or FetchBatch soon.
	CancelFetch struct{ Fetch int }

	// Merge merges runs into one file.
	Merge struct {
		Merge int
		Runs  []wire.Segment
		File  string
	}

	// CancelMerge ends a Merge soon.
	CancelMerge struct{ Merge int }

	// Record writes a report into a file, completely or not at all.
	Record struct {
		File   string
		Report *wire.Report
	}

	// Probe checks that a disk can be written and read, after all earlier Removes.
	Probe struct {
		Disk int
		Path string
	}

	// Remove removes a file or a tree; a missing one is no error.
	Remove struct{ Path string }

	// AttemptEnded says how an attempt has ended, for the log of this process.
	AttemptEnded struct {
		Attempt wire.AttemptID
		State   wire.AttemptState
		Result  *wire.Result
	}

	// RemoveProgram removes a submission's program, and all else that its workers have got. The submission
	// has ended, or has had no job here for some seconds, and all its workers have exited.
	RemoveProgram struct{ Staging string }
)

func (Send) command()          {}
func (Hangup) command()        {}
func (ReadNonce) command()     {}
func (StoreCluster) command()  {}
func (StoreStaging) command()  {}
func (Leave) command()         {}
func (Quit) command()          {}
func (StartWorker) command()   {}
func (SendWorker) command()    {}
func (Limit) command()         {}
func (Record) command()        {}
func (Probe) command()         {}
func (KillWorker) command()    {}
func (StopWorker) command()    {}
func (ReadLog) command()       {}
func (Fetch) command()         {}
func (FetchBatch) command()    {}
func (Share) command()         {}
func (CancelFetch) command()   {}
func (Merge) command()         {}
func (CancelMerge) command()   {}
func (Remove) command()        {}
func (AttemptEnded) command()  {}
func (RemoveProgram) command() {}
