package wire

import "time"

// Message is one of the structs below. Their numbers never change.
type Message interface{ number() byte }

// Between a task tracker and the leading job tracker.
type (
	// Hello opens a tracker's stream.
	Hello struct {
		Version        int    `msgpack:"Version"` // [Version] of the sender
		Tracker        string `msgpack:"Tracker"`
		Process        uint64 `msgpack:"Process"`     // random number of this process: distinguishes a restart from a reconnection
		Incarnation    uint64 `msgpack:"Incarnation"` // the last one of this process; 0: none
		Host           string `msgpack:"Host"`        // name of this machine in the file system
		Addr           string `msgpack:"Addr"`        // host:port of its shuffle service
		MapSlots       int    `msgpack:"MapSlots"`
		ReduceSlots    int    `msgpack:"ReduceSlots"`
		Nonce          string `msgpack:"Nonce"`     // content of the file named in Staging; empty: not read yet
		Rack           string `msgpack:"Rack"`      // "/dc1/r7"; empty: unknown
		DisksAbandoned int    `msgpack:"DisksLeft"` // how many times this process has stopped using a disk

		Memory int64 `msgpack:"Memory,omitempty"` // bytes that it offers to attempts in slots; 0: slots alone count
		Cores  int   `msgpack:"Cores,omitempty"`  // cores that it offers to them; 0: slots alone count

		LostLeader string `msgpack:"LostLeader,omitempty"` // Leader of the last Welcome or Refuse, if it was not reached since

		NotIsolated string `msgpack:"NotIsolated,omitempty"` // why jobs are not isolated, unless the configuration says so
		Limits      string `msgpack:"Limits,omitempty"`      // what limits attempts, for users
		Isolation   string `msgpack:"Isolation,omitempty"`   // level of isolation of jobs, for users
	}

	// Staging answers a Hello that lacks the right Nonce. The tracker reads the nonce from File and
	// repeats Hello on the same stream, or it answers NoStaging.
	Staging struct {
		File string `msgpack:"File"` // URL
	}

	// NoStaging reports that the tracker could not read the file named in Staging.
	NoStaging struct {
		Reason string `msgpack:"Reason"`
	}

	// Welcome answers Hello once the registration is in the log.
	Welcome struct {
		Epoch       uint64        `msgpack:"Epoch"`
		Incarnation uint64        `msgpack:"Incarnation"`
		Lease       time.Duration `msgpack:"Lease"`            // silence after which each side treats the other as lost
		Cluster     string        `msgpack:"Cluster"`          // id of the cluster
		Leader      string        `msgpack:"Leader,omitempty"` // host:port of the sender, as others name it in Refuse
	}

	// Refuse answers Hello or ends a stream, with the reason.
	Refuse struct {
		Reason string `msgpack:"Reason"`
		Leader string `msgpack:"Leader"` // host:port of the known leader, if this job tracker is not it
	}

	// Inventory lists all attempts, homes and jobs of a tracker, in pages. The tracker sends it
	// after every Welcome. The homes of a job come before what it knows of the job, and before the job's
	// attempts: on an earlier page, or on the same one.
	Inventory struct {
		Attempts []Report     `msgpack:"Attempts"` // running attempts, and ended attempts of jobs that have not ended
		Homes    []HomeReport `msgpack:"Homes"`
		Jobs     []JobID      `msgpack:"Jobs"` // other jobs that have a worker or files on this tracker
		More     bool         `msgpack:"More"` // another page follows

		Known []KnownOutputs `msgpack:"Known,omitempty"` // of jobs with homes
	}

	// KnownOutputs tells which map outputs of a job a tracker knows, so that the leader sends only the
	// others. Sums[i] is the sum of [MapOutput.Sum] over the maps from i·[OutputsPage] on, without
	// outputs that the tracker reports lost.
	KnownOutputs struct {
		Job  JobID    `msgpack:"Job"`
		Sums []uint64 `msgpack:"Sums"`
	}

	// Heartbeat renews the lease, and has the progress of running attempts.
	Heartbeat struct {
		Attempts []Report `msgpack:"Attempts"`
		Rate     float64  `msgpack:"Rate"` // recent fetch rate of its homes in bytes a second, without idle times; 0: not measured

		Awaited []Awaited `msgpack:"AwaitedBy,omitempty"` // by its homes; at most MaxAwaitedJobs
		Machine *Machine  `msgpack:"Machine,omitempty"`   // nil: as before
	}

	// Awaited lists the trackers from which the homes of a job still have to fetch. A job is left out if
	// fetches from one of them fail, or if they are more than MaxAwaited.
	Awaited struct {
		Job      JobID    `msgpack:"Job"`
		Trackers []string `msgpack:"Trackers"`
	}

	// Ack answers a Heartbeat: the sender still leads.
	Ack struct{}

	// Capacity reports that the tracker's slots changed, as when a disk failed, or that it stops.
	Capacity struct {
		MapSlots       int    `msgpack:"MapSlots"`
		ReduceSlots    int    `msgpack:"ReduceSlots"`
		Reason         string `msgpack:"Reason"`
		DisksAbandoned int    `msgpack:"DisksLeft"` // as in Hello
		Unhealthy      string `msgpack:"Unhealthy"` // what the health script says; empty: the machine is healthy

		Stops bool `msgpack:"Stops,omitempty"` // the process ends, as it was told to
	}

	// Report reports a new state of an attempt. The tracker sends it at once.
	Report struct {
		Attempt AttemptID    `msgpack:"Attempt"`
		State   AttemptState `msgpack:"State"`
		Bytes   Progress     `msgpack:"Bytes"`
		Digest  uint64       `msgpack:"Digest"` // of a reduce: sum of MapOutput.Digest over its input; 0: not known
		Result  *Result      `msgpack:"Result"` // set if the state is final

		SkipChanges int `msgpack:"SkipChanges,omitempty"` // as in Skip

		Hot *Hot `msgpack:"Hot,omitempty"` // of a running reduce; nil: none, or as in an earlier report
	}

	// HomeReport reports how much a home has gathered.
	HomeReport struct {
		Job        JobID      `msgpack:"Job"`
		Partition  int        `msgpack:"Partition"`
		Generation Generation `msgpack:"Generation"`
		Maps       int        `msgpack:"Maps"`     // number of gathered map outputs
		Digest     uint64     `msgpack:"Digest"`   // sum of the digests of the gathered outputs
		Bytes      int64      `msgpack:"Bytes"`    // gathered bytes of this partition
		Complete   bool       `msgpack:"Complete"` // the outputs of all maps are gathered

		Hot *Hot `msgpack:"Hot,omitempty"` // of the outputs that are merged; nil: none
	}

	// OutputLost reports that a map's output cannot be read from its tracker.
	OutputLost struct {
		Job     JobID  `msgpack:"Job"`
		Map     int    `msgpack:"Map"`
		Attempt int    `msgpack:"Attempt"` // the AttemptID's N
		Corrupt bool   `msgpack:"Corrupt"` // the file is there, but its checksum is wrong
		Reason  string `msgpack:"Reason"`  // the observed error, with the addresses

		Unreachable bool     `msgpack:"Unreachable"` // all fetches from its tracker fail
		Reached     []string `msgpack:"Reached"`     // other trackers with a successful fetch since then, at most MaxReached
	}

	// Launch starts an attempt.
	Launch struct {
		Epoch       uint64        `msgpack:"Epoch"`
		Attempt     AttemptID     `msgpack:"Attempt"`
		Staging     string        `msgpack:"Staging"`    // the submission's
		Index       int           `msgpack:"Index"`      // of the job in the submission's Plan
		Generation  Generation    `msgpack:"Generation"` // of the home that a reduce reads
		Subject     AttemptID     `msgpack:"Subject"`    // the attempt that a fence settles
		Outcome     State         `msgpack:"Outcome"`    // for a cleanup: Failed or Killed
		Timeout     time.Duration `msgpack:"Timeout"`
		Memory      int64         `msgpack:"Memory"`                // maximum resident bytes of the attempt's processes; 0: no limit
		Processes   int           `msgpack:"Processes"`             // maximum number of processes of the attempt; 0: no limit
		LocalBytes  int64         `msgpack:"LocalBytes"`            // maximum bytes in the attempt's working directory; 0: no limit
		Rack        string        `msgpack:"Rack"`                  // of the tracker; empty: unknown
		Token       string        `msgpack:"Token"`                 // of the job
		GivenUp     []uint64      `msgpack:"GivenUp,omitempty"`     // for a commit: tasks without output, one bit each
		GivenUpMaps []uint64      `msgpack:"GivenUpMaps,omitempty"` // for a commit of a job with reduces: maps that were given up, one bit each
		Skip        *Skip         `msgpack:"Skip,omitempty"`        // for a map or reduce; nil: the job skips no records
		Digest      []byte        `msgpack:"Digest,omitempty"`      // the submission's
		Owner       string        `msgpack:"Owner,omitempty"`       // of the job, as the leader has authenticated it
		Cores       int           `msgpack:"Cores,omitempty"`       // cores that it requests; 0: none
	}

	// Kill ends an attempt.
	Kill struct {
		Epoch   uint64    `msgpack:"Epoch"`
		Attempt AttemptID `msgpack:"Attempt"`
		Reason  string    `msgpack:"Reason"`
	}

	// Grant lets an attempt commit its output.
	Grant struct {
		Epoch   uint64    `msgpack:"Epoch"`
		Attempt AttemptID `msgpack:"Attempt"`
	}

	// SetHome makes the tracker the home of a partition.
	SetHome struct {
		Epoch      uint64     `msgpack:"Epoch"`
		Job        JobID      `msgpack:"Job"`
		Partition  int        `msgpack:"Partition"`
		Generation Generation `msgpack:"Generation"`
		Maps       int        `msgpack:"Maps"`  // number of outputs to gather
		Token      string     `msgpack:"Token"` // of the job
	}

	// Outputs tells homes on this tracker where map outputs are. If a map is listed again, it has a
	// new output, which replaces the old one, or the old one must be tried again.
	Outputs struct {
		Epoch uint64       `msgpack:"Epoch"`
		Lists []OutputList `msgpack:"Lists"`
	}

	// OutputList has outputs of one job.
	OutputList struct {
		Job   JobID       `msgpack:"Job"`
		N     int         `msgpack:"N"`     // number of outputs in Block
		Block OutputBlock `msgpack:"Block"` // shared by the messages to all homes
	}

	// Shares sets the order in which a tracker fetches for its jobs. Listed jobs come first, in
	// this order. While others wait, a job gets only its share. Other jobs come last, with equal
	// rights. Each message replaces the previous one.
	Shares struct {
		Epoch  uint64     `msgpack:"Epoch"`
		Shares []JobShare `msgpack:"Shares"`
	}

	// Drained tells a draining tracker that no job needs it any more. The tracker then ends.
	Drained struct {
		Epoch uint64 `msgpack:"Epoch"`
	}

	// DropJob tells a tracker that a job has ended: it forgets the job and removes its data.
	DropJob struct {
		Epoch        uint64 `msgpack:"Epoch"`
		Job          JobID  `msgpack:"Job"`
		EndedStaging string `msgpack:"Done"` // staging directory of the submission, if its last job has ended; empty if not, or if the leader has forgotten the job
	}
)

// Between a task tracker and its worker processes.
type (
	// WorkerHello is a worker's first message: the program is a Quern job and is ready.
	WorkerHello struct {
		Protocol int `msgpack:"Protocol"`
	}

	// Run tells a worker to run an attempt. A worker runs one attempt at a time.
	Run struct {
		Attempt     AttemptID `msgpack:"Attempt"`
		Staging     string    `msgpack:"Staging"`               // the submission's
		Index       int       `msgpack:"Index"`                 // of the job in the submission's Plan
		Dir         string    `msgpack:"Dir"`                   // the attempt's own local directory; the tracker creates it
		Logs        string    `msgpack:"Logs"`                  // directory for its stdout and stderr
		Runs        []Segment `msgpack:"Runs"`                  // for a reduce: its partition
		Subject     AttemptID `msgpack:"Subject"`               // the attempt that a fence settles
		Outcome     State     `msgpack:"Outcome"`               // for a cleanup: Failed or Killed
		Host        string    `msgpack:"Host"`                  // name of the tracker's machine in the file system
		Rack        string    `msgpack:"Rack"`                  // as in Launch
		GivenUp     []uint64  `msgpack:"GivenUp,omitempty"`     // as in Launch
		GivenUpMaps []uint64  `msgpack:"GivenUpMaps,omitempty"` // as in Launch
		Skip        *Skip     `msgpack:"Skip,omitempty"`        // as in Launch
		Digest      []byte    `msgpack:"Digest,omitempty"`      // as in Launch
		Network     *Network  `msgpack:"Network,omitempty"`     // for a map; nil: not known
	}

	// Network is what a task tracker knows of the network over which map output is fetched.
	Network struct {
		Rate   float64 `msgpack:"Rate"`   // bytes a second that all fetches of a task tracker get together
		Remote float64 `msgpack:"Remote"` // fraction of the map output that other task trackers fetch; 0: not known
		Slots  int     `msgpack:"Slots"`  // maps that the task tracker runs at a time
	}

	// WorkerProgress is sent while an attempt runs, about twice a second.
	WorkerProgress struct {
		Bytes    Progress `msgpack:"Bytes"`
		Activity uint64   `msgpack:"Activity"` // grows with every record, status or counter; if it stays the same for long, the attempt hangs

		Hot *Hot `msgpack:"Hot,omitempty"` // of a reduce; nil: none, or as in an earlier message
	}

	// CommitReady requests the grant: all output is written to its temporary place, and closed.
	CommitReady struct{}

	// CommitGranted answers CommitReady.
	CommitGranted struct{}

	// WorkerDone reports the end of an attempt.
	WorkerDone struct {
		Result Result `msgpack:"Result"`
	}
)

// AttemptState is the state of an attempt.
type AttemptState uint8

const (
	AttemptRunning   AttemptState = iota + 1
	AttemptReady                  // waits for the grant
	AttemptSucceeded              // any output is committed
	AttemptFailed
	AttemptKilled
)

func (s AttemptState) String() string {
	switch s {
	case AttemptRunning:
		return "running"
	case AttemptReady:
		return "ready"
	case AttemptSucceeded:
		return "succeeded"
	case AttemptFailed:
		return "failed"
	case AttemptKilled:
		return "killed"
	}
	return "unknown"
}

// Final reports whether an attempt in this state has ended.
func (s AttemptState) Final() bool { return s >= AttemptSucceeded }

// Result is the outcome of an attempt.
type Result struct {
	Error string `msgpack:"Error"` // empty: it succeeded
	Fatal bool   `msgpack:"Fatal"` // a retry would fail too, as with missing input
	Log   string `msgpack:"Log"`   // if it failed: last lines of its stdout and stderr

	// BadInput says that the input of this task alone is the cause of Fatal, such as a truncated
	// file: other tasks may succeed.
	BadInput bool `msgpack:"BadInput,omitempty"`

	Counters  Counters      `msgpack:"Counters"`
	Bytes     int64         `msgpack:"Bytes"`          // bytes that a map or reduce has read
	Took      time.Duration `msgpack:"Took"`           // from launch to end, measured by the tracker
	Output    *MapOutput    `msgpack:"Output"`         // of a map; nil if the job has no reduces
	Splits    *SplitsDone   `msgpack:"Splits"`         // of a setup
	Committed bool          `msgpack:"Committed"`      // of a fence: its subject has committed
	Lost      []OutputLost  `msgpack:"Lost"`           // segments that a reduce could not read, so that the reduce itself is not at fault
	Reads     Reads         `msgpack:"Reads"`          // of input, if the file system names the machines
	Died      *Position     `msgpack:"Died,omitempty"` // where it failed, if it has Launch.Skip and its code or process failed within a record

	Hot *Hot `msgpack:"Hot,omitempty"` // of a reduce; nil: none

	// Parts of Took, for SlotTime.
	Started   time.Duration `msgpack:"Started,omitempty"`   // from launch until a worker had it, measured by the tracker
	Shuffled  time.Duration `msgpack:"Shuffled,omitempty"`  // of a reduce: opening and reading its partition
	Completed time.Duration `msgpack:"Completed,omitempty"` // completing the output, with the wait for the grant
}

// MapOutput is the segment file of a map attempt, with all partitions.
type MapOutput struct {
	Map     int    `msgpack:"Map"`
	Attempt int    `msgpack:"Attempt"`           // the AttemptID's N
	Tracker string `msgpack:"Tracker"`           // tracker that has the file
	Addr    string `msgpack:"Addr"`              // host:port of that tracker's shuffle service
	Bytes   int64  `msgpack:"Bytes"`             // total of its partitions
	Digest  uint64 `msgpack:"Digest"`            // of all partitions: equal digests mean equal records
	GivenUp bool   `msgpack:"GivenUp,omitempty"` // the map was given up: no tracker has an output, and Digest is GivenUpDigest
}

// GivenUpDigest is the digest of a map that was given up. It differs from that of a map without
// records, so that a reduce commits only if it knows which maps were given up.
const GivenUpDigest = 0x67697665_6e207570

// SplitsDone is the result of a setup attempt.
type SplitsDone struct {
	Maps int    `msgpack:"Maps"`
	Hash uint64 `msgpack:"Hash"` // of the staged splits file
}

// Segment is a sorted run that a reduce reads: one partition of one map output,
// or several merged.
type Segment struct {
	Map     int    `msgpack:"Map"`     // -1: merged from several maps
	Attempt int    `msgpack:"Attempt"` // the AttemptID's N
	File    string `msgpack:"File"`
	URL     string `msgpack:"URL"` // if File is empty: URL from which to stream it
	Offset  int64  `msgpack:"Offset"`
	Length  int64  `msgpack:"Length"`
}

// JobShare is a job's share of a tracker's fetch bandwidth.
type JobShare struct {
	Job   JobID   `msgpack:"Job"`
	Share float64 `msgpack:"Share"` // from 0 to 1
}

// Generation numbers the homes of a partition. The home with the highest generation is in use.
type Generation struct {
	Epoch uint64 `msgpack:"Epoch"`
	N     int    `msgpack:"N"`
}

// Less orders generations.
func (g Generation) Less(other Generation) bool {
	if g.Epoch != other.Epoch {
		return g.Epoch < other.Epoch
	}
	return g.N < other.N
}

func (*Hello) number() byte          { return 1 }
func (*Welcome) number() byte        { return 2 }
func (*Refuse) number() byte         { return 3 }
func (*Inventory) number() byte      { return 4 }
func (*Heartbeat) number() byte      { return 5 }
func (*Report) number() byte         { return 6 }
func (*HomeReport) number() byte     { return 7 }
func (*OutputLost) number() byte     { return 8 }
func (*Launch) number() byte         { return 9 }
func (*Kill) number() byte           { return 10 }
func (*Grant) number() byte          { return 11 }
func (*SetHome) number() byte        { return 12 }
func (*Outputs) number() byte        { return 13 }
func (*DropJob) number() byte        { return 14 }
func (*WorkerHello) number() byte    { return 15 }
func (*Run) number() byte            { return 16 }
func (*WorkerProgress) number() byte { return 17 }
func (*CommitReady) number() byte    { return 18 }
func (*CommitGranted) number() byte  { return 19 }
func (*WorkerDone) number() byte     { return 20 }
func (*Submission) number() byte     { return 21 }
func (*Plan) number() byte           { return 22 }
func (*Ack) number() byte            { return 23 }
func (*Staging) number() byte        { return 24 }
func (*NoStaging) number() byte      { return 25 }
func (*Capacity) number() byte       { return 26 }
func (*Shares) number() byte         { return 27 }
func (*Drained) number() byte        { return 28 }

// newMessage makes an empty message with this number, or nil if the number is unknown.
func newMessage(number byte) Message {
	switch number {
	case 1:
		return new(Hello)
	case 2:
		return new(Welcome)
	case 3:
		return new(Refuse)
	case 4:
		return new(Inventory)
	case 5:
		return new(Heartbeat)
	case 6:
		return new(Report)
	case 7:
		return new(HomeReport)
	case 8:
		return new(OutputLost)
	case 9:
		return new(Launch)
	case 10:
		return new(Kill)
	case 11:
		return new(Grant)
	case 12:
		return new(SetHome)
	case 13:
		return new(Outputs)
	case 14:
		return new(DropJob)
	case 15:
		return new(WorkerHello)
	case 16:
		return new(Run)
	case 17:
		return new(WorkerProgress)
	case 18:
		return new(CommitReady)
	case 19:
		return new(CommitGranted)
	case 20:
		return new(WorkerDone)
	case 21:
		return new(Submission)
	case 22:
		return new(Plan)
	case 23:
		return new(Ack)
	case 24:
		return new(Staging)
	case 25:
		return new(NoStaging)
	case 26:
		return new(Capacity)
	case 27:
		return new(Shares)
	case 28:
		return new(Drained)
	case 29:
		return new(DriveHello)
	case 30:
		return new(DriveBegin)
	case 31:
		return new(DriveRun)
	case 32:
		return new(DriveKill)
	case 33:
		return new(DriveEnded)
	case 34:
		return new(DriveFailed)
	}
	return nil
}
