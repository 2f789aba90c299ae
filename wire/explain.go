package wire

import "time"

// Explanation says why a job has the slots it has, what it waits for, and when it
// should end. Times are Unix milliseconds by the leader's clock, 0 where not known.
type Explanation struct {
	Job        JobID
	Name       string
	Pool       string
	State      State
	Suspended  bool
	Scheduling Scheduling // in force

	Phases  []PhaseExplanation // maps, then reduces if it has any
	Shuffle *ShuffleExplanation
	Holds   []Hold

	Submitted int64
	End       int64 // predicted
	Deadline  int64
}

// PhaseExplanation is the part of one phase.
type PhaseExplanation struct {
	Phase                Kind
	Tasks, Done, Running int
	Waiting              int // could be launched now
	Adopted              int // of those that run: launched by an earlier leader; since when they run is not known
	Place, Of            int // in the order of the plan in force, from 1; 0: not in it
	Target               int // slots by that plan
	Min, Max             int // slots guaranteed and useful
	PoolMin              int // slots guaranteed to all jobs of its pool together
	TaskSeconds, Left    float64
	Source               string // of TaskSeconds: "measured", "history of job_…", "other jobs", "default"
	End                  int64  // by the plan or the estimates
	Speeds               []TrackerSpeed
	Wait                 time.Duration // for a slot near its input a map waits no longer, by the delay rule; 0: not at all, or not known yet
}

// TrackerSpeed is how fast a job's tasks of a phase were on a tracker.
type TrackerSpeed struct {
	Tracker     string
	Tasks       int     // that succeeded there
	TaskSeconds float64 // of one, on average
}

// ShuffleExplanation is a job's part of the shuffle, in bytes.
type ShuffleExplanation struct {
	Ready, Left, Whole int64
	Share              float64 // by the plan in force; 0: none said
	Place, Of          int
	PerByte            float64 // bytes made of a byte of input so far; 0: not known
}

// Hold is something that keeps tasks of a job from free slots.
type Hold struct {
	What  string // "3 maps wait for a slot on a node with their input"
	Until int64  // when that ends at the latest; 0: when something happens that What says
	Due   int64  // when it should happen; 0: not known
}
