package wire

import "time"

// Message is one of the structs below. The set is closed; numbers are append-only.
type Message interface{ number() byte }

// Between a task tracker and the leading job tracker.
type (
	// Hello opens a tracker's stream.
	Hello struct {
		Version        int    `msgpack:"Version"` // [Version] of the sender
		Tracker        string `msgpack:"Tracker"`
		Process        uint64 `msgpack:"Process"`     // random at process start: tells a restart from a reconnection
		Incarnation    uint64 `msgpack:"Incarnation"` // the last one granted to this process, 0 for none
		Host           string `msgpack:"Host"`        // as the file system names this machine
		Addr           string `msgpack:"Addr"`        // host:port of its shuffle service
		MapSlots       int    `msgpack:"MapSlots"`
		ReduceSlots    int    `msgpack:"ReduceSlots"`
		Nonce          string `msgpack:"Nonce"`     // from the file named in Staging; empty: not read yet
		Rack           string `msgpack:"Rack"`      // "/dc1/r7"; empty: unknown
		DisksAbandoned int    `msgpack:"DisksLeft"` // how often this process has stopped using a disk
	}

	// Staging answers a Hello without the right Nonce. The tracker reads the nonce from
	// File and repeats Hello on the same stream, or answers NoStaging.
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
		Lease       time.Duration `msgpack:"Lease"`   // silence after which each side treats the other as lost
		Cluster     string        `msgpack:"Cluster"` // id of the cluster
	}

	// Refuse answers Hello or ends a stream, with the reason.
	Refuse struct {
		Reason string `msgpack:"Reason"`
		Leader string `msgpack:"Leader"` // host:port of the known leader, if this job tracker is not it
	}

	// Inventory lists everything a tracker holds, in pages, after every Welcome.
	Inventory struct {
		Attempts []Report     `msgpack:"Attempts"` // running ones, and ended ones of live jobs
		Homes    []HomeReport `msgpack:"Homes"`
		Jobs     []JobID      `msgpack:"Jobs"` // other jobs with something here, if only a worker
		More     bool         `msgpack:"More"` // another page follows
	}

	// Heartbeat renews the lease and carries the running attempts' progress.
	Heartbeat struct {
		Attempts []Report `msgpack:"Attempts"`
		Rate     float64  `msgpack:"Rate"` // bytes per second that its homes fetched recently, while there was something to fetch; 0: not measured
	}

	// Ack answers a Heartbeat: the sender still leads.
	Ack struct{}

	// Capacity reports that the tracker's slots changed, for instance because a disk
	// failed.
	Capacity struct {
		MapSlots       int    `msgpack:"MapSlots"`
		ReduceSlots    int    `msgpack:"ReduceSlots"`
		Reason         string `msgpack:"Reason"`
		DisksAbandoned int    `msgpack:"DisksLeft"` // as in Hello
	}

	// Report reports an attempt's new state immediately.
	Report struct {
		Attempt AttemptID    `msgpack:"Attempt"`
		State   AttemptState `msgpack:"State"`
		Bytes   Progress     `msgpack:"Bytes"`
		Digest  uint64       `msgpack:"Digest"` // of a reduce: sum of the MapOutput.Digest of its input; 0: not known
		Result  *Result      `msgpack:"Result"` // when the state is final
	}

	// HomeReport reports how much a home has gathered.
	HomeReport struct {
		Job        JobID      `msgpack:"Job"`
		Partition  int        `msgpack:"Partition"`
		Generation Generation `msgpack:"Generation"`
		Maps       int        `msgpack:"Maps"`     // map outputs gathered
		Digest     uint64     `msgpack:"Digest"`   // sum of the digests of those outputs
		Bytes      int64      `msgpack:"Bytes"`    // gathered, of this partition
		Complete   bool       `msgpack:"Complete"` // all maps' outputs are gathered
	}

	// OutputLost reports that a map's output cannot be read from its tracker.
	OutputLost struct {
		Job     JobID  `msgpack:"Job"`
		Map     int    `msgpack:"Map"`
		Attempt int    `msgpack:"Attempt"` // the AttemptID's N
		Corrupt bool   `msgpack:"Corrupt"` // it was found, but its checksum is wrong
		Reason  string `msgpack:"Reason"`  // the observed error, with the addresses
	}

	// Launch starts an attempt.
	Launch struct {
		Epoch      uint64        `msgpack:"Epoch"`
		Attempt    AttemptID     `msgpack:"Attempt"`
		Staging    string        `msgpack:"Staging"`    // the submission's
		Index      int           `msgpack:"Index"`      // of the job in the submission's Plan
		Generation Generation    `msgpack:"Generation"` // of the home a reduce reads
		Subject    AttemptID     `msgpack:"Subject"`    // the attempt that a fence settles
		Outcome    State         `msgpack:"Outcome"`    // Failed or Killed, for a cleanup
		Timeout    time.Duration `msgpack:"Timeout"`
		Memory     int64         `msgpack:"Memory"`    // resident bytes that the attempt's processes may use, 0: any
		Processes  int           `msgpack:"Processes"` // most processes of the attempt, 0: any
		Rack       string        `msgpack:"Rack"`      // of the tracker, as far as the topology is known
		Token      string        `msgpack:"Token"`     // of the job
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
		Maps       int        `msgpack:"Maps"`  // outputs to gather
		Token      string     `msgpack:"Token"` // of the job
	}

	// Outputs tells the homes of a job on this tracker where map outputs are. A map named a
	// second time has a new output: the old one must not be used any more.
	Outputs struct {
		Epoch   uint64      `msgpack:"Epoch"`
		Job     JobID       `msgpack:"Job"`
		Outputs []MapOutput `msgpack:"Outputs"`
	}

	// Shares orders the jobs that a tracker fetches for. Listed jobs come first, in this
	// order, each limited to its share while other jobs have something to fetch. Unlisted
	// jobs come last, equally. Each Shares replaces the previous one.
	Shares struct {
		Epoch  uint64     `msgpack:"Epoch"`
		Shares []JobShare `msgpack:"Shares"`
	}

	// Drained tells a draining tracker that no job needs it any more. It then exits.
	Drained struct {
		Epoch uint64 `msgpack:"Epoch"`
	}

	// DropJob lets a tracker forget an ended job and remove its data.
	DropJob struct {
		Epoch        uint64 `msgpack:"Epoch"`
		Job          JobID  `msgpack:"Job"`
		EndedStaging string `msgpack:"Done"` // staging directory of its submission, if this was the submission's last job; empty also from a leader that does not know the job any more
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
		Attempt AttemptID `msgpack:"Attempt"`
		Staging string    `msgpack:"Staging"` // the submission's
		Index   int       `msgpack:"Index"`   // of the job in the submission's Plan
		Dir     string    `msgpack:"Dir"`     // the attempt's own local directory; the tracker creates it
		Logs    string    `msgpack:"Logs"`    // directory for its stdout and stderr
		Runs    []Segment `msgpack:"Runs"`    // the partition, for a reduce
		Subject AttemptID `msgpack:"Subject"` // the attempt that a fence settles
		Outcome State     `msgpack:"Outcome"` // Failed or Killed, for a cleanup
		Host    string    `msgpack:"Host"`    // the tracker's, as the file system names it
		Rack    string    `msgpack:"Rack"`    // as in Launch
	}

	// WorkerProgress is sent while an attempt runs, about twice a second.
	WorkerProgress struct {
		Bytes    Progress `msgpack:"Bytes"`
		Activity uint64   `msgpack:"Activity"` // grows with every record, status or counter; no growth for long means that the attempt hangs
	}

	// CommitReady asks for the grant: all output is written, closed and in its temporary
	// place.
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
	AttemptSucceeded              // with output: committed
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

// Final says whether an attempt in this state has ended.
func (s AttemptState) Final() bool { return s >= AttemptSucceeded }

// Result is the outcome of an attempt.
type Result struct {
	Error string `msgpack:"Error"` // empty: it succeeded
	Fatal bool   `msgpack:"Fatal"` // a retry would fail too: missing input, existing output
	Log   string `msgpack:"Log"`   // last lines of its stderr, when it failed

	Counters  Counters      `msgpack:"Counters"`
	Bytes     int64         `msgpack:"Bytes"`     // read, by a map or a reduce
	Took      time.Duration `msgpack:"Took"`      // from launch to end, measured by the tracker
	Output    *MapOutput    `msgpack:"Output"`    // of a map; nil if the job has no reduces
	Splits    *SplitsDone   `msgpack:"Splits"`    // of a setup
	Committed bool          `msgpack:"Committed"` // of a fence: its subject has committed
	Lost      []OutputLost  `msgpack:"Lost"`      // segments that a reduce could not read, through no fault of its own
	Reads     Reads         `msgpack:"Reads"`     // of input, as far as the file system says where it came from
}

// MapOutput is the segment file of a map attempt, with all partitions.
type MapOutput struct {
	Map     int    `msgpack:"Map"`
	Attempt int    `msgpack:"Attempt"` // the AttemptID's N
	Tracker string `msgpack:"Tracker"` // that has the file
	Addr    string `msgpack:"Addr"`    // host:port of that tracker's shuffle service
	Bytes   int64  `msgpack:"Bytes"`   // of its partitions, which homes gather
	Digest  uint64 `msgpack:"Digest"`  // over the partitions' digests: equal digests mean equal records
}

// SplitsDone is the result of a setup attempt.
type SplitsDone struct {
	Maps int    `msgpack:"Maps"`
	Hash uint64 `msgpack:"Hash"` // of the staged splits file
}

// Segment is a sorted run that a reduce reads: one partition of one map output,
// or several merged.
type Segment struct {
	Map     int    `msgpack:"Map"`     // -1: merged from several
	Attempt int    `msgpack:"Attempt"` // the AttemptID's N
	File    string `msgpack:"File"`
	URL     string `msgpack:"URL"` // where to stream it from when File is empty
	Offset  int64  `msgpack:"Offset"`
	Length  int64  `msgpack:"Length"`
}

// JobShare is a job's share of a tracker's fetch bandwidth.
type JobShare struct {
	Job   JobID   `msgpack:"Job"`
	Share float64 `msgpack:"Share"` // from 0 to 1
}

// Generation numbers a partition's homes; the highest is in force.
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

// blank makes the empty message of a number, nil for an unknown one.
func blank(number byte) Message {
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
	}
	return nil
}
