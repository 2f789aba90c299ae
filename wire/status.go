package wire

// AttemptStatus is the part of an attempt's state that users see.
type AttemptStatus struct {
	Attempt AttemptID    `msgpack:"Attempt"`
	Tracker string       `msgpack:"Tracker"`
	Addr    string       `msgpack:"Addr"` // host:port at which the tracker serves its logs
	State   AttemptState `msgpack:"State"`
	Bytes   Progress     `msgpack:"Bytes"`
	Began   int64        `msgpack:"Began"` // Unix milliseconds on the leader's clock
	Took    int64        `msgpack:"Took"`  // milliseconds, if the state is final
	Error   string       `msgpack:"Error"` // why it failed or was killed
	Level   Level        `msgpack:"Level"` // of a map: the distance to its input at launch
	Reads   Reads        `msgpack:"Reads"` // as in Result, if the state is final

	// Launched is the time at which the attempt got its slot, in the form of Began. It has the slot
	// until Began+Took. 0: an earlier leader launched it. Then this leader estimates Began from the
	// first report: Took before the end, or the time of the report.
	Launched int64 `msgpack:"Launched"`

	Speculative bool `msgpack:"Speculative,omitempty"` // launched while another attempt of the task ran
}

// JobAttempts has a page of a job's attempts, and the token to read their logs.
type JobAttempts struct {
	Attempts []AttemptStatus // by task and number
	Next     AttemptID       // the next page begins after it; zero: this is the last page
	Owner    string          // of the job
	Access   Access          // to the job
	Token    string          // of the job; empty: an older version ran it
}

// CurvePoint has the totals of a job at a time, in bytes.
type CurvePoint struct {
	At       int64 `msgpack:"At"`       // Unix milliseconds
	Read     int64 `msgpack:"Read"`     // of input, by maps
	Shuffled int64 `msgpack:"Shuffled"` // gathered by homes
	Reduced  int64 `msgpack:"Reduced"`  // read by reduces
}

// JobSubmission is what was submitted for a job. Its pointers lead to values that must not be changed.
type JobSubmission struct {
	Job      JobID
	Flow     FlowID // zero: it is alone
	FlowName string // empty: none, or not known any more
	Owner    string
	Access   Access
	At       int64  // Unix milliseconds
	View     string // ACLs, in Hadoop's syntax; empty: it has none
	Modify   string
	Plan     *JobPlan
	Program  *Program // nil: an older build has written its history
}

// Offer is how much of a resource a task tracker offers to attempts in slots. If it is 0, slots alone
// count.
type Offer struct {
	Total int64
	Used  int64 // by requests of running attempts
}

// TrackerStatus is the part of a task tracker's state that users see.
type TrackerStatus struct {
	Tracker     string
	Host        string
	Addr        string // host:port of its HTTP service
	Incarnation uint64
	MapSlots    int
	ReduceSlots int
	Maps        int   // running attempts
	Reduces     int   // running attempts
	Memory      Offer // bytes
	Cores       Offer
	Connected   bool   // it has a stream, and its inventory is complete
	Silent      int64  // milliseconds since its last message
	Excluded    string // why it gets no tasks for a time; empty: it gets tasks
	Trouble     string // a problem that it reports, or an inconsistent rack
	Rack        string // from the file system's topology, or else the tracker's flag
	Limits      string // as in Hello
	Isolation   string // as in Hello
	Machine     *Machine
	Faults      TrackerFaults
}

// Machine is the state of a task tracker's machine, for users.
type Machine struct {
	Load          float64 `msgpack:"Load"`          // processes that run or wait to, in the mean of a minute; 0: not known
	FailedFetches int64   `msgpack:"FailedFetches"` // of map outputs, since the task tracker's start
	Disks         []Disk  `msgpack:"Disks"`         // at most MaxDisks
}

// Disk is the state of a directory of a task tracker. Free and Total are 0 if they are not known.
type Disk struct {
	Path   string `msgpack:"Path"`
	Free   int64  `msgpack:"Free"`             // bytes
	Total  int64  `msgpack:"Total"`            // bytes
	Failed string `msgpack:"Failed,omitempty"` // why it is not used; empty: it is
}

// TrackerFaults counts faults of a task tracker under this leader, since it was registered.
type TrackerFaults struct {
	Attempts int   // that failed there
	Outputs  int   // map outputs of it that could not be read
	Fetches  int64 // of its homes that failed, since its start
	Disks    int   // how many times it has stopped using a disk, since its start
}

// ClusterStatus is a cluster's state as users see it. Only the leader knows the trackers.
type ClusterStatus struct {
	Cluster  string // id
	Start    int64  // Unix milliseconds of its bootstrap; part of every job's id
	Staging  string // URL
	Epoch    uint64
	Leader   string // id of the latest leader
	Addr     string // host:port of its API
	IsLeader bool   // the job tracker that answers is the leader
	Jobs     int    // number of jobs that have not ended

	Scheduling Scheduling // in force, on the leader
	NoPlan     string     // why the last attempt to plan failed, on the leader
	Pools      string     // URL of the pool table's file, and errors in a newer version of the file
	InPools    []PoolStatus
	PoolNotes  []string // settings in the pool table's file that Quern ignores
	Trackers   []TrackerStatus
	Lost       []LostTracker     // by name: lost trackers that have not registered again
	Drains     []DrainStatus     // by name
	Exclusions []ExclusionStatus // by tracker
	Limits     []LimitStatus
}

// LimitStatus says how much of an administrator's limit is used. For a limit of each user, pool or
// tracker, it is about the one that uses most.
type LimitStatus struct {
	Name string // such as "user-jobs"
	Of   string // such as "user ann"; empty: the cluster
	Used int
	Max  int
}

// LostTracker is a task tracker that was silent for a lease, and what was lost with it.
type LostTracker struct {
	Tracker string
	Host    string
	Addr    string
	Rack    string
	Since   int64 // Unix milliseconds
	Maps    int   // attempts that ran there
	Reduces int   // attempts that ran there
	Outputs int   // map outputs of jobs that had not ended
	Stopped bool  // it had said that it stops
}

// DrainStatus is the state of a draining task tracker.
type DrainStatus struct {
	Tracker    string
	Drained    bool   // no job needs it any more
	Registered bool   // it is registered, perhaps again after the drain
	Needs      string // what jobs still need of it; empty: nothing, or it is not known
}

// ExclusionStatus is an exclusion of a task tracker, which gets no new work. Operators and the leader
// may exclude the same one.
type ExclusionStatus struct {
	Tracker    string
	Operator   bool   // an operator excludes it, else the leader
	By         string // the operator
	Reason     string // may be empty if an operator excludes it
	Since      int64  // Unix milliseconds; 0: unknown
	Until      int64  // Unix milliseconds; 0: until an operator readmits it
	Registered bool   // the tracker is registered
}

// PoolStatus is the state of a pool. Pairs are for maps, then for reduces.
type PoolStatus struct {
	Name    string
	Min     [2]int
	Max     [2]int // -1: no limit
	Weight  float64
	MaxJobs int // maximum number of jobs with slots at a time; -1: no limit
	Jobs    int // number of jobs that have not ended
	Running [2]int
	Removed bool // removed from the pool table
}
