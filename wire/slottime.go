package wire

// SlotTime says what a job's slots did, as far as this leader knows. A slot is the job's from the launch of an
// attempt to its end, or while it is reserved for a partition that is gathered.
type SlotTime struct {
	Total int64      `msgpack:"Total"` // milliseconds; the sum of Uses
	Uses  []SlotTook `msgpack:"Uses"`  // in the order of SlotUses, without those that took no time

	// Deferred is the time of free map slots that the job left while its maps waited for local ones. It is
	// not part of Total: the slots were not the job's. Two jobs may leave the same slot.
	Deferred int64 `msgpack:"Deferred,omitempty"` // milliseconds
}

// SlotTook is the slot time of one use.
type SlotTook struct {
	Use      SlotUse `msgpack:"Use"`
	Attempts int     `msgpack:"Attempts"`
	Millis   int64   `msgpack:"Millis"`
}

// SlotUse is what a slot did.
type SlotUse string

// The uses. The first six are parts of attempts that have succeeded and that the job needed.
const (
	SlotStart       SlotUse = "start"       // until the attempt's code runs: messages, the start of a worker
	SlotRead        SlotUse = "read"        // a map reads its input, if the file system counts that
	SlotMap         SlotUse = "map"         // the rest of a map
	SlotShuffle     SlotUse = "shuffle"     // a reduce opens and reads its partition
	SlotReduce      SlotUse = "reduce"      // the rest of a reduce
	SlotCommit      SlotUse = "commit"      // the output is completed, and waits for the grant
	SlotFailed      SlotUse = "failed"      // attempts that failed
	SlotKilled      SlotUse = "killed"      // attempts that were killed, as for another pool
	SlotSpeculative SlotUse = "speculative" // attempts that another attempt of the task has outrun
	SlotRerun       SlotUse = "rerun"       // tasks that had succeeded before: their map output was lost
	SlotLost        SlotUse = "lost"        // attempts that were lost with their tracker
	SlotGathering   SlotUse = "gathering"   // slots that are reserved while a partition is gathered
	SlotRunning     SlotUse = "running"     // attempts that run now
)

// SlotUses has all uses in order.
var SlotUses = [...]SlotUse{
	SlotStart, SlotRead, SlotMap, SlotShuffle, SlotReduce, SlotCommit, SlotFailed, SlotKilled, SlotSpeculative, SlotRerun, SlotLost, SlotGathering, SlotRunning,
}

// Of returns the slot time of a use.
func (s *SlotTime) Of(use SlotUse) SlotTook {
	for _, x := range s.Uses {
		if x.Use == use {
			return x
		}
	}
	return SlotTook{Use: use}
}
