package wire

import "time"

// Explanation says why a job has its slots, what it waits for, and when it will end. Times are Unix
// milliseconds on the leader's clock, 0 if unknown.
type Explanation struct {
	Job        JobID
	Name       string
	Owner      string
	Access     Access
	Pool       string
	State      State
	Suspended  bool
	Scheduling Scheduling // in force

	Phases  []PhaseExplanation // maps, then reduces if it has any
	Shuffle *ShuffleExplanation
	Holds   []Hold

	Submitted  int64
	End        int64      // of a job that has not ended, the likely one of Prediction
	Prediction Prediction // the same as in JobStatus
	Deadline   int64
	Settings   Settings
}

// PhaseExplanation explains one phase of a job.
type PhaseExplanation struct {
	Phase                         Kind
	Tasks, Done, Running          int
	Waiting                       int // ready to be launched
	Adopted                       int // running attempts that an earlier leader launched, at an unknown time
	Speculative                   int // running attempts beside another one of their task
	Place, Of                     int // rank in the order of the plan in force, from 1, and number of jobs in it; 0: not in the plan
	Target                        int // slots in that plan
	Min, Max                      int // guaranteed slots, and slots that the phase can use
	PoolMin                       int // guaranteed slots of its pool
	TaskSeconds, RemainingSeconds float64
	Source                        string // of TaskSeconds: "measured", "history of job_…", "other jobs", "default"
	End                           int64  // predicted
	Speeds                        []TrackerSpeed
	Wait                          time.Duration // maximum time that a map waits for a local slot under the delay rule; 0: none, or not known yet
	Oldest                        *OldestAttempt
	SpeculationOff                bool // the job's properties allow no speculative attempts
}

// OldestAttempt is the running attempt of a phase that began first.
type OldestAttempt struct {
	Attempt AttemptID
	Tracker string
	Age     time.Duration // since its launch
}

// TrackerSpeed is the speed of a job's tasks of one phase on one tracker.
type TrackerSpeed struct {
	Tracker     string
	Tasks       int     // number of tasks that succeeded there
	TaskSeconds float64 // average per task
}

// ShuffleExplanation is a job's part of the shuffle, in bytes.
type ShuffleExplanation struct {
	Ready, Remaining, Total int64
	Share                   float64 // of the homes' fetches in the plan in force; 0: not set
	Place, Of               int
	PerByte                 float64 // shuffle bytes per input byte so far; 0: not known
}

// Hold is a reason why tasks of a job get no free slots.
type Hold struct {
	Reason   string // "3 maps wait for a slot on a node with their input"
	Until    int64  // latest end, Unix milliseconds; 0: ends with the event in Reason
	Expected int64  // expected end; 0: not known
}
