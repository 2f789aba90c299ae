// Package sim runs whole clusters in virtual time: the cores of three job trackers and some
// task trackers, over models of the replicated log, the network and local disks. A seed
// determines every message of a run, so a failing run can be repeated, shrunk and studied.
//
// The code is the real one: jobtracker/core and tasktracker/core decide. Every attempt that
// touches the job's output or staging directory is [runtime.Serve] over dfs/mem. It stops
// before each call to the file system; the call then succeeds, fails, succeeds and is reported
// as failed, or succeeds after its process has died. Maps of jobs with reduces, fetches and
// merges are models.
//
// # Faults
//
// A seed draws a workload and a list of [Fault]s. Most have a time and a duration: streams
// break; nodes crash, stop and continue, or lose the network to some or all others; leadership
// moves. Trackers drain or fail all attempts, disks lose and damage files, workers die. Others
// have a rate: a slow network, calls to the file system that fail or only seem to, proposals
// with unknown outcome, attempts that fail or hang. The storm, with faults, lasts 40 seconds.
// Then no faults remain, and every job must end within a minute plus the time of the remaining
// tasks in one slot.
//
// With Options.Lasting there is no storm. Up to half of the task trackers have a fault that lasts:
// they fail attempts, have lost the network to the others, serve no map outputs, are 10 or 100
// times slower, have full or broken disks, or cannot use the file system. Clients request no
// changes. Two runs are compared: one without these trackers, and one with them.
//
// With Options.Rotating such faults heal within a minute, and other task trackers get them: at any time
// at most half have one. Users submit jobs for three minutes. The run to compare with has no faults, and
// only half of the task trackers.
//
// Clocks of job trackers are up to an hour apart: only durations may matter.
//
// An effect may fail for good, also after the storm: histories are not written, staging directories
// are not writable or not removed, cleanups remove nothing, or a task tracker's disk does not answer
// reads of logs.
//
// # Costs
//
// Steps and effects take time. Each process has a loop as in the real daemons: it takes one event
// after the other, and carries out the commands of a Step at the Step's end. The time of a Step is
// linear in the sizes of its event, commands and cluster, with rates for each kind of event
// (rates.go). Messages that have not been read when the inbox is full wait in the connection. A job
// tracker takes events of its log, of its inbox and its timer at random, like the select of its
// loop. At most as many effects run at once as in real daemons: 16 on files and one call of each
// policy in a job tracker; one removal, look-up, start of a worker and read of a nonce in a task
// tracker. The cores limit fetches and merges.
//
// Not in the model: answers to clients that watch jobs, logging, encoding of messages, and effects
// that compete for a disk or processor.
//
// [RunFleet] plays a cluster of any size without faults, with job trackers as slow as one likes.
// Its Result says how long events waited, and how often trackers gave up a silent leader. [Mix.Run]
// plays jobs of different sizes, and records their predicted ends.
//
// # Checks
//
// At every step where it is visible:
//
//	V1  The workers of a tracker never run more slotted attempts than the tracker has
//	    slots, and no leader launches more there. What these attempts request is never more
//	    than the memory and cores that the tracker offers.
//	V2  An attempt is started at most once, anywhere.
//	V3  At most one attempt of a task may rename its output into place at a time, and the
//	    rename happens at most once.
//	V4  The log and the file system agree on the committed attempt of a task, and a
//	    committed task stays committed. A grant is revoked only if it was not used and
//	    can no longer be used.
//	V5  Epochs only rise, of leaders and in the welcomes that a tracker gets.
//	V6  Facts are equal on all job trackers at the same index of the log.
//	V7  Every later leader knows an answered submission, with the same jobs. The same
//	    key gets the same answer.
//	V8  Nothing reads a local file that was removed.
//	V13 No task of a suspended job is launched, and none beyond the limits of its pool, of the
//	    pools around it and of its user.
//	V14 Every policy answers every snapshot with a valid plan.
//	V15 A tracker that drains gets no attempts and no homes from a leader that knows it,
//	    and has drained only when it runs nothing.
//	V16 A job begins when all jobs that it reads from have succeeded, and reads their
//	    whole output. A failed or killed job stops its flow, except jobs that have ended
//	    or commit.
//	V18 An attempt skips the bad record of its task, or nothing.
//	V19 The files that a map of a job with reduces writes are published once, and are those of the
//	    records that reduces have read.
//
// At the end:
//
//	V9  Every job has ended. A job without a kill has succeeded if no fault can fail
//	    attempts, or if the only such fault was one sick tracker.
//	V10 The output of a job that succeeded has the records of its whole input, once. If
//	    attempts of a map differ, it has the records of one of them.
//	V11 No leftovers exist: no attempt, home or file on a tracker, no process, no staging
//	    directory, no file beside the outputs, except an empty directory that a dead
//	    process's call made late.
//	V12 Job settings, scheduling, pools and drains are as the last accepted change set
//	    them. A repeated change, or a change by an earlier leader, does not undo them.
//	V17 The history of a job has its end; the status of a job without history has the
//	    reason. According to the histories no leader assigned more slots than a tracker
//	    has, and no plan is older than its history. What a job's slots did adds up to the
//	    time of its attempts in slots.
//
// With faults that last:
//
//	L1  Every job ends in time: in the time that the healthy trackers alone take, twice, plus
//	    three leases plus the longest wait before an attempt. V9 then says that it succeeds. If
//	    faults rotate, the times count from the last submission.
//
// A violation ends the run. [Run] reports it with the trace; [Shrink] drops the faults that the
// violation does not need.
//
// # Concurrency
//
// A run is one goroutine, plus one for each worker process; only one of them runs at a time.
// Nothing depends on map order, on the wall clock or on the machine. Runs share nothing and may
// be parallel.
//
// # Where to look
//
//	virtual time, the play of a seed      world.go
//	the workload of a seed                client.go and flow.go: jobs; faults.go; changes.go:
//	                                      priorities, pools, scheduling; pools.go: pools in pools
//	faults that last, also in turn        lasting.go; rotating.go
//	job trackers, their log               jobtracker.go, effects.go; raft.go
//	task trackers                         tasktracker.go; disk.go: map outputs, homes
//	workers and their attempts            worker.go; badrecords.go (V18), mapfiles.go (V19)
//	a process that crashes or stops, its  process.go; costs.go and rates.go: the time of Steps;
//	loop                                  gate.go: effects that wait for each other
//	effects that fail for good            refused.go
//	fleets; mixes of jobs                 fleet.go; mix.go
//	network; calls to the file system     link.go; files.go, places.go
//	checks                                book.go; drain.go (V15), flow.go (V16), changes.go (V12
//	                                      to V14), history.go (V17); at the end check.go
//	digests; sabotage of the models       decisions.go; sabotage.go
package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Options control a run.
type Options struct {
	Seed uint64
	// Keep lists the faults of the seed to keep, by number; nil: all.
	Keep []int
	// Calm runs the seed's workload without faults.
	Calm bool
	// Lasting runs another workload of the seed, with faults that last.
	Lasting bool
	// Rotating runs a longer workload of the seed, with faults that last for some time on one task
	// tracker after the other.
	Rotating bool
	// Digest asks for Result.Digest.
	Digest bool
	// BadRecords gives every third task a bad record, see badrecords.go.
	BadRecords bool
	// MapFiles lets the maps of jobs with reduces write files beside their map output.
	MapFiles bool

	sabotage sabotage
}

// Result is the outcome of a run.
type Result struct {
	Options               Options
	Faults                []Fault // all faults of the seed
	Kept                  []int   // the numbers of the faults in the run
	Violation             string  // empty: none
	Trace                 []string
	Outcomes              map[wire.State]int
	LocalMaps, RemoteMaps int64         // maps launched on a node with their input, and elsewhere
	Elapsed               time.Duration // of virtual time
	Recovered             time.Duration // from the end of the faults to the end of all jobs
	Steps                 int           // events given to cores
	Leaders               int           // elections
	Lost                  int           // losses of trackers in the log
	Silences              int           // streams that a tracker has ended because it heard nothing
	Rejoined              time.Duration // from the election after Fleet.Failover until all trackers take part again
	Dials                 int           // connections that task trackers opened to job trackers
	Waited                time.Duration // the longest that an event has waited for a job tracker's loop
	Busy                  time.Duration // time of all Steps of the busiest job tracker
	Digest                uint64        // of all commands of all cores, if Options ask for it
	Skips                 int           // attempts that skipped a bad record
	MapsAgain             int           // attempts that found the files of their map published

	lasting *lasting // nil: no faults last
}

// Command returns the command that repeats this run.
func (r *Result) Command() string {
	text := fmt.Sprintf("go run ./cmd/mrsim cluster -seed %d", r.Options.Seed)
	if r.Options.Lasting {
		text += " -lasting"
	}
	if r.Options.Rotating {
		text += " -rotating"
	}
	switch {
	case r.Options.Calm:
		text += " -calm"
	case r.Options.Keep != nil:
		numbers := make([]string, len(r.Kept))
		for i, n := range r.Kept {
			numbers[i] = fmt.Sprint(n)
		}
		text += " -keep " + cmp.Or(strings.Join(numbers, ","), "none")
	}
	return text
}

// Run runs one seed.
func Run(o Options) *Result {
	switch {
	case o.Lasting:
		return runLasting(o, drawLasting)
	case o.Rotating:
		return runLasting(o, drawRotating)
	}
	r := newResult(o, drawFaults(o.Seed))
	play(r)
	return r
}

// newResult makes the Result of a run that is not played yet.
func newResult(o Options, faults []Fault) *Result {
	r := &Result{Options: o, Faults: faults}
	for i := range faults {
		if !o.Calm && (o.Keep == nil || slices.Contains(o.Keep, i)) {
			r.Kept = append(r.Kept, i)
		}
	}
	return r
}

// Shrink drops faults as long as the run still fails without them, and returns the last failing
// run. It plays at most the given number of runs.
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
