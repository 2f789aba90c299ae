package wire

// AttemptStatus is what can be seen of an attempt.
type AttemptStatus struct {
	Attempt AttemptID    `msgpack:"Attempt"`
	Tracker string       `msgpack:"Tracker"`
	Addr    string       `msgpack:"Addr"` // host:port at which the tracker serves its logs
	State   AttemptState `msgpack:"State"`
	Bytes   Progress     `msgpack:"Bytes"`
	Began   int64        `msgpack:"Began"` // Unix milliseconds, by the leader's clock
	Took    int64        `msgpack:"Took"`  // milliseconds, when the state is final
	Error   string       `msgpack:"Error"` // why it failed or was killed
	Level   Level        `msgpack:"Level"` // of a map: how near to its input it was launched
	Reads   Reads        `msgpack:"Reads"` // as in Result, when the state is final

	// When it was given its slot, like Began; it has the slot until Took after Began.
	// 0: an earlier leader has given it. Then Began is worked out: Took before this leader
	// heard of the attempt's end, or when it first heard of the attempt.
	Launched int64 `msgpack:"Launched"`
}

// JobAttempts is a job's attempts and what it takes to read their logs.
type JobAttempts struct {
	Attempts []AttemptStatus // by task and number
	Owner    string          // of the job
	Token    string          // of the job; empty: it is not for whoever has asked, or the job is older than tokens
}

// TrackerStatus is what can be seen of a registered task tracker.
type TrackerStatus struct {
	Tracker     string
	Host        string
	Addr        string // host:port of its HTTP service
	Incarnation uint64
	MapSlots    int
	ReduceSlots int
	Maps        int    // running
	Reduces     int    // running
	Connected   bool   // it has a stream and its inventory is in
	Silent      int64  // milliseconds since it was heard of
	Excluded    string // why it is given no tasks for a time; empty: it is
	Trouble     string // what is wrong with it, by itself or by what is known of racks
	Rack        string // by the file system's topology, else as the tracker was told
}

// ClusterStatus is what can be seen of a cluster: its trackers only on the leader.
type ClusterStatus struct {
	Cluster string // id
	Start   int64  // Unix milliseconds of its bootstrap, part of every job's id
	Staging string // URL
	Epoch   uint64
	Leader  string // id of the job tracker that took office last
	Addr    string // host:port of its API
	Leads   bool   // the job tracker that answers is that one
	Jobs    int    // not ended

	Scheduling Scheduling // in force, on the leader
	NoPlan     string     // why the last attempt at a plan has failed, on the leader
	Pools      string     // whence the pool table came, and what is wrong with a newer one
	InPools    []PoolStatus
	PoolNotes  []string // what the pool table's file says and nobody obeys
	Trackers   []TrackerStatus
	Lost       []LostTracker // by name: those that the leader has lost, and that are not back
	Drains     []DrainStatus // by name
}

// LostTracker is a task tracker of which nothing was heard for a lease, and what was there.
type LostTracker struct {
	Tracker string
	Host    string
	Addr    string
	Rack    string
	Since   int64 // Unix milliseconds
	Maps    int   // attempts that ran
	Reduces int   // likewise
	Outputs int   // of maps, of jobs that had not ended
}

// DrainStatus is what can be seen of a task tracker that is to drain.
type DrainStatus struct {
	Tracker string
	Drained bool   // nothing there is needed any more
	Here    bool   // it is registered, perhaps again after it was drained
	Needs   string // what of it is still needed; empty: nothing, or nobody knows
}

// PoolStatus is what can be seen of a pool on the leader. Slots are by phase: maps,
// reduces.
type PoolStatus struct {
	Name    string
	Min     [2]int
	Max     [2]int // -1: any number
	Weight  float64
	MaxJobs int // that have slots at a time; -1: any number
	Jobs    int // that have not ended
	Running [2]int
	Gone    bool // the table does not name it any more
}
