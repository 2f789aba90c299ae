package sim

import (
	"fmt"
	"path"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// With Options.BadRecords, every third task of a job that skips records has a record that ends each of
// its attempts: with an error, or with the death of the process. Jobs have enough attempts.
//
// Check V18: an attempt skips this record, or nothing.

// skipProperties lets a job skip bad records.
var skipProperties = map[string]string{
	"mapreduce.map.skip.maxrecords": "1", "mapreduce.reduce.skip.maxgroups": "1",
	"mapreduce.map.maxattempts": "30", "mapreduce.reduce.maxattempts": "30",
}

// badRecord returns the number of a task's bad record, or -1. It is beyond the real records of
// map-only jobs, which are few.
func badRecord(id wire.TaskID) int64 {
	n := digest(id.Job, id.N) + uint64(id.Kind)
	if !id.Kind.Slotted() || n%3 != 0 {
		return -1
	}
	return int64(1000 + n%1000)
}

// endsInBadRecord ends an attempt in the bad record of its task, unless it skips the record.
func (p *worker) endsInBadRecord(run *wire.Run) bool {
	bad := badRecord(run.Attempt.Task)
	if run.Skip == nil {
		return false
	}
	skips := false
	for _, r := range run.Skip.Ranges {
		if skips = r.From == bad && r.To == bad+1; !skips {
			p.w.fail("V18: %v skips %v, and the bad record is %d", run.Attempt, run.Skip.Ranges, bad)
		}
	}
	if bad < 0 || skips {
		p.w.skips += len(run.Skip.Ranges)
		return false
	}
	if p.w.chance(0.5) {
		p.report(&wire.WorkerDone{Result: wire.Result{Error: fmt.Sprintf("bad record %d", bad), Died: &wire.Position{Record: bad}}}, true)
		return true
	}
	p.tt.positions[path.Join(run.Dir, core.PositionFile)] = bad + 1
	p.exit("signal: killed")
	return true
}
