// Package sim plays whole clusters in virtual time: three job trackers and some
// task trackers, as their cores, over a model of the replicated log, of the
// network and of local disks. One seed is one run, to the last message, so that a
// run that went wrong can be played again, shrunk and looked at.
//
// What runs is the code that runs elsewhere too: jobtracker/core and
// tasktracker/core decide, and every attempt that touches the job's output or
// staging directory is [runtime.Serve] itself over dfs/mem, stopped before each
// call to the file system until the simulation lets it happen, fail, be done and
// reported as failed, or be done after its process has died. Maps whose output
// goes to homes, fetches and merges are models.
//
// # What goes wrong
//
// A seed draws a workload and a list of [Fault]s, most of them at a time and for
// a while: streams break, nodes crash, stop and go on, are cut off from some or
// all others, the office moves, trackers drain or fail all that they run, disks
// lose and damage files, workers die. Some are chances that hold through the
// storm: slow networks, calls to the file
// system that fail or only seem to, proposals of which nobody knows the outcome,
// attempts that fail or hang. After the storm all is healed, and every job must
// end within a bound: a minute, and what the tasks that are left take in one slot.
//
// Clocks of job trackers are up to an hour apart: only durations may matter.
//
// # What is checked
//
// At every step, wherever it can be seen:
//
//	V1  Worker processes of a tracker never run more slotted attempts than it has
//	    slots, and no leader launches more there.
//	V2  An attempt is started at most once, anywhere.
//	V3  Of a task at most one attempt may rename its output into place at a time,
//	    and one does so once, ever.
//	V4  The log and the file system agree on which attempt of a task has committed;
//	    a committed task stays so. A grant is revoked only when it was not used and
//	    cannot be used any more.
//	V5  Epochs only rise: of offices, in every tracker's welcomes.
//	V6  Facts are equal on all job trackers at the same index of the log.
//	V7  A submission that was answered is known to every later leader, with the
//	    same jobs; the same key gets the same answer.
//	V8  Nothing reads a local file that was removed.
//	V13 No task of a suspended job is launched, and none that its pool has no slot for.
//	V14 Every policy answers every snapshot with a plan that is valid.
//	V15 A tracker that drains is launched nothing on and given no home by a leader that
//	    knows it, and is let go only when it runs nothing.
//	V16 A job begins when all jobs whose output it reads have succeeded, and reads
//	    all of it. One that fails or is killed takes its flow with it, but for
//	    what has ended or commits.
//
// In the end:
//
//	V9  Every job has ended. One that nobody has killed has succeeded if nothing
//	    happened that can fail an attempt, or nothing but that one tracker failed
//	    all that it ran.
//	V10 The output of a job that succeeded is what its input makes, all of it, once;
//	    of maps that give other records each time, one output of each.
//	V11 Nothing is left: no attempt, home or file on a tracker, no process, no
//	    staging, nothing in the outputs' file system that belongs to no job, but for
//	    an empty directory that a dead process's call has made after that.
//	V12 Terms, scheduling, pools and who drains are as they were last granted: a change that was
//	    asked for twice, or of an earlier leader, undoes none that came after it.
//	V17 The history of a job says how it ended; one without says why. By histories no
//	    leader has given away more slots of a tracker than it has, and no plan is known of
//	    before it is said that they are.
//
// A violation ends the run. [Run] tells it with the last of what happened;
// [Shrink] drops the faults without which it happens all the same.
//
// # Concurrency
//
// A run is one goroutine, and one for each worker process that takes turns with
// it: never do two of them run at once. Nothing depends on map order, on the wall
// clock or on the machine. Runs share nothing and may be parallel.
//
// # Where to look
//
//	virtual time, a run from its seed on  world.go
//	what seeds draw                       client.go and flow.go: jobs; faults.go; wishes.go:
//	                                      priorities, pools, scheduling
//	job trackers, their log               jobtracker.go, effects.go; raft.go
//	task trackers                         tasktracker.go; disk.go: map outputs, homes
//	workers and what they run             worker.go
//	a process that crashes or stops       process.go
//	network; calls to the file system     link.go; files.go, places.go
//	what is checked                       book.go; drain.go (V15), flow.go (V16), wishes.go (V12
//	                                      to V14), past.go (V17); in the end check.go
//	digests; mistakes made on purpose     decisions.go; sabotage.go
package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Options say what to play.
type Options struct {
	Seed uint64
	// Keep are the numbers of the faults to keep, of those that the seed draws; nil: all.
	Keep []int
	// Calm plays the seed's workload without any fault.
	Calm bool
	// Digest sums up the run in Result.Digest.
	Digest bool

	sabotage sabotage
}

// Result is what came of a run.
type Result struct {
	Options           Options
	Faults            []Fault // all that the seed draws
	Kept              []int   // the numbers of those that were played
	Violation         string  // empty: none
	Trace             []string
	Outcomes          map[wire.State]int
	NearMaps, FarMaps int64         // launched on a node with their input, and elsewhere
	Elapsed           time.Duration // of virtual time
	Recovered         time.Duration // of that, from the end of the faults to the end of all jobs
	Steps             int           // events that cores were given
	Leaders           int           // offices taken
	Digest            uint64        // of all commands of all cores, where Options ask for it
}

// Command is the command that plays this run again.
func (r *Result) Command() string {
	text := fmt.Sprintf("go run ./cmd/mrsim cluster -seed %d", r.Options.Seed)
	switch {
	case r.Options.Calm:
		text += " -calm"
	case r.Options.Keep != nil:
		numbers := make([]string, len(r.Kept))
		for i, n := range r.Kept {
			numbers[i] = fmt.Sprint(n)
		}
		text += " -keep " + cmpOr(strings.Join(numbers, ","), "none")
	}
	return text
}

func cmpOr(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// Run plays one seed.
func Run(o Options) *Result {
	faults := drawFaults(o.Seed)
	r := &Result{Options: o, Faults: faults}
	for i := range faults {
		if !o.Calm && (o.Keep == nil || slices.Contains(o.Keep, i)) {
			r.Kept = append(r.Kept, i)
		}
	}
	play(r)
	return r
}

// Shrink drops faults as long as the run goes wrong without them, in at most so
// many runs, and returns the last one that did.
func Shrink(r *Result, runs int) *Result {
	for size := max(len(r.Kept)/2, 1); len(r.Kept) > 0; size = max(size/2, 1) {
		dropped := false
		for at := 0; at < len(r.Kept) && runs > 0; runs-- {
			o := r.Options
			o.Keep = slices.Delete(slices.Clone(r.Kept), at, min(at+size, len(r.Kept)))
			if next := Run(o); next.Violation != "" {
				r, dropped = next, true
				continue
			}
			at += size
		}
		if runs <= 0 || size == 1 && !dropped {
			break
		}
	}
	return r
}
