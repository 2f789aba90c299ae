// Package assign decides which task runs in which free slot: assignment and delay
// scheduling. It knows jobs by what they have to launch, and trackers by their free slots;
// what a task is, and how it is launched, is behind [Cluster].
//
// An [Assigner] is told of every change as it happens, in O(1) or so. A round then turns
// the free slots into launches:
//
//	AddTracker, SetFit, Occupy, Vacate     which slots are free          slots.go
//	AddJob, SetSplits, Enter, Leave        which maps are to launch,     nodes.go, index.go
//	                                       and which nodes are local
//	SetPlan, SetPools, SetRule             in which order, how many,     line.go, queues.go,
//	                                       how long a map waits          pools.go, defer.go
//	        |
//	        v   a slot is free
//	AssignMaps                                                           maps.go
//	  1  bring back maps set aside that a newly free tracker can run     aside.go
//	  2  launch what the plan has queued for the free trackers           queues.go
//	  3  recall some deferred jobs, for slots that are local to no map   defer.go
//	  4  give the jobs in line turns, until that changes nothing. The job
//	     that lacks the largest part of its share is first. In its turn:
//	       - a local map, in any free slot: launch; or
//	       - a map that need not wait: reserve a slot, which is filled at
//	         the end, after the other jobs' local maps; or
//	       - the delay rule says wait: the job is deferred, out of the line
//	  5  the same once more for maps that have failed where slots are free
//	AssignReduces                                                        reduces.go
//	  each free slot in turn: the first job in line with a partition there
//	        |
//	        v
//	Cluster.Launch, Cluster.LaunchReduce, which call Occupy
//
// A deferred job keeps its claim on slots that are local to its maps. It returns to the line
// when such a slot is free, its wait is over, one of its maps becomes relaxed, or the rule
// changes. A map is relaxed if it waits for no local slot: it has failed, no
// tracker near its input is given work, or it has waited for as long as the rule says.
//
// Invariants
//
//	A1  After a round no map slot is free, or no job is in the line of maps: those that
//	    wait beside free slots are deferred, or have set maps aside, or may have no more slots.
//	A2  A free map slot is either in unchecked, or no job in line and no deferred job has
//	    a local map for it. It is in unclaimed if no map to launch is local to it at all.
//	    It is unchecked again when a tracker gets its first free slot, a map near it is to
//	    be launched, or the jobs near it may have slots again (uncheck).
//	A3  A job's places in the lines are functions of what it waits for, its slots, its pool
//	    and the plan (see standingOf). Whatever changes these calls Move.
//	A4  A deferred job has maps to launch, none of them relaxed, and an alarm no later than
//	    the end of its wait.
//	A5  No launch takes a capped pool above its limits, of slots or of jobs that have some.
//	A6  The lowest map that may run is the one that is launched, of those equally near.
//
// A Step costs O(jobs that moved · log jobs + slots given away), whatever waits. To find a
// map that is local to a slot takes amortized O(1): for each job, the maps on a node lie in
// one list, with a mark below which none is left (see places).
//
// # A new rule
//
// A rule on which slots a job may take is asked where it depends on least: mayTake for any slot
// of a phase; pickAt and pickAny, before they look at maps, for any map on one tracker;
// mayLaunch for one map on one tracker. Whatever makes the answer yes again calls Move for the
// job (A3), or uncheck for the tracker's slot (A2). Queues, predictions and plans need not know
// the rule: they are estimates. What the rule has to know of a job comes through [Cluster] or
// with AddJob. Package core reads properties in its settings, and shows what waits in holds.go.
//
// A job that may take none of the free slots must not stay in the line (A1): AssignMaps would
// not end. There are these ways to wait:
//
//	           begins in                     ends in
//	not may    lineUp                        lineUp, after Move
//	deferred   mayReserve: deferUntil        recall: a local slot, a relaxed map, an alarm
//	aside      mayReserve: setAside, a map   bringBack, allBack, BringBack
//	queued     requeue, tasks of a plan      launchQueued, dropQueue, ExpireQueues
//
// Another one needs a place in standingOf, in the early return and at the begin of AssignMaps,
// and in Clear and DropJob. Two tests have the rules of the line once more: check_test.go
// here, and checkLines of core's world_test.go.
//
// Everything here is deterministic and reads no clock. Nothing is safe for concurrent use.
//
// Sources: the order of the line is FLEX's ("FLEX: A Slot Allocation Scheduling Optimizer
// for MapReduce Workloads", section 1); that all free slots are matched with local maps
// before any other, and when a job waits, is delay scheduling, see package locality.
package assign

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// The two phases that have slots, as indexes.
const (
	Map = iota
	Reduce
)

// Never is a time that does not come.
const Never = time.Duration(1<<63 - 1)

// Cluster answers an Assigner's questions about tasks and launches them. Its methods may
// tell of changes in return (Occupy, Leave, AddReady, SetFit, Move), but begin no round.
type Cluster interface {
	Now() time.Duration

	// Launch starts an attempt at map m in a free slot of a tracker.
	Launch(j *Job, m int, t *Tracker)
	// LaunchReduce starts a reduce of a partition that is at home on a tracker with a free
	// slot or, if gather is set, takes the slot for a partition that is to be gathered.
	// It says whether there was one.
	LaunchReduce(j *Job, t *Tracker, gather bool) bool

	// Runnable says whether the job's tasks may be launched, its pool aside.
	Runnable(j *Job) bool
	// ToGather counts the partitions that wait for a reduce slot to be gathered in.
	ToGather(j *Job) int
	// Pool is the pool that the job is in, and its priority there.
	Pool(j *Job) (string, wire.Priority)

	// MayRetry says whether map m, which has failed, may run on a tracker: if strict, only
	// where it has not failed. It is not asked of maps that have never failed, see SetFailed.
	MayRetry(j *Job, m int, t *Tracker, strict bool) bool
	// StopAvoiding lets map m go back to where it has failed, if it has failed on all
	// trackers. It says whether that is so.
	StopAvoiding(j *Job, m int) bool
	// Releases appends how long each occupied map slot of a tracker should stay so.
	Releases(t *Tracker, all []time.Duration) []time.Duration

	// Alarm has Recall called for the job at a later time.
	Alarm(j *Job, at time.Duration)
	// Begun has a plan made at once: a job has its first map to launch.
	Begun(phase int)
	// InLine has a plan made if none is due: a job has joined the line or moved in it.
	InLine(phase int)
}

// Assigner holds the lines of jobs, the free slots and the locality index.
type Assigner struct {
	cluster    Cluster
	queuesLast time.Duration // without another plan
	rule       locality.Rule

	jobs     []*Job     // by index; nil where one is free
	trackers []*Tracker // by index; nil where one is free
	moved    []*Job     // whose places in the lines are to be looked at
	phases   [2]phase

	nodes  map[string]*node
	byNode []*node          // by index; nil where one is free
	demand []int32          // by node: maps to launch with input there, see demandOf
	racks  map[string]int32 // their numbers

	working   int         // trackers that are given work and have map slots
	reducible taskset.Set // trackers with a free slot for a ready partition
	unchecked taskset.Set // trackers with a free map slot that may be local to maps not looked at yet
	unclaimed taskset.Set // trackers with a free map slot that is local to no map to launch

	cursor    int        // tracker at which the next search begins
	round     int        // of assigning maps
	pass      int        // two in a round: strictly, and not
	launched  []*Job     // whose maps were launched in this round
	reserved  []reserved // kept for its memory
	deferred  []*Job
	lookedAt  int             // in deferred, the job that was recalled last to look ahead
	nodeSpace []locality.Node // kept for its memory
	asideJobs []*Job          // with maps set aside, or without by now

	meter locality.Meter
	pace  locality.Pace // of all maps

	pools  map[string]*CappedPool
	uneven []*CappedPool // of which it is to be seen which jobs may run
}

// phase is the line of jobs for the slots of a phase, and what the plan says of them.
type phase struct {
	line    line
	free    taskset.Set // trackers that can take a task
	plan    uint64      // number of the plan in force; 0: none is
	targets int         // jobs that it names

	queues      []Queue        // that it has
	replanned   bool           // the trackers' queues are not its queues yet
	queueOf     [][]queueEntry // by tracker
	hasQueues   bool           // some tracker has
	queuedUntil time.Duration
}

// New makes an Assigner without jobs and trackers. Queues are obeyed for queuesLast without
// another plan.
func New(c Cluster, queuesLast time.Duration) *Assigner {
	a := &Assigner{cluster: c, queuesLast: queuesLast, nodes: make(map[string]*node), racks: make(map[string]int32)}
	for i := range a.phases {
		a.phases[i].queuedUntil = Never
	}
	return a
}

// Job is what an Assigner knows of a job. The owner contains it, and reaches what is in it
// through methods alone.
type Job struct {
	Owner any // the job that it belongs to

	index   int32 // in Assigner.jobs
	number  int32 // orders jobs that are equal in all else
	moved   bool  // in Assigner.moved
	dropped bool
	in      *input // nil before the splits are known
	typical int64  // bytes that a map reads

	pending taskset.Set // maps to launch
	relaxed taskset.Set // of those, maps that wait for no local slot
	aside   taskset.Set // maps to launch, but not where slots are free, see setAside
	failed  taskset.Set // maps that have failed somewhere
	ready   int         // partitions that can be reduced now

	inSlots  [2]int
	given    [2]Given // by the last plan that named it
	queued   [2]int   // tasks in trackers' queues
	may      [2]bool  // have more slots, as of the last look
	takesAny bool     // map slots beside those of its queues, as of the last look
	pool     *CappedPool
	barred   bool // by its pool, which runs as many jobs as it may

	reserved int // slots, in these turns
	looked   looked

	deferred      bool          // it waits for local slots, and is out of the line
	deferredIn    int           // round
	deferredAt    time.Duration // when it was asked last
	deferredUntil time.Duration // at the latest
	alarm         time.Duration // when it is, or was, to be asked again
	waiting       []int32       // maps to launch that slots were declined for, in that order
	waitingSince  map[int32]time.Duration
	sampled       int // the last map that was looked at ahead
	wait          locality.Wait
	average       locality.Average
	pace          locality.Pace
}

// AddJob enters a job into the Assigner. Of jobs equal in all else, the lower number comes first.
func (a *Assigner) AddJob(j *Job, number int, owner any) {
	j.Owner, j.number = owner, int32(number)
	j.waitingSince, j.average = make(map[int32]time.Duration), locality.Average(locality.Start)
	j.index = int32(insert(&a.jobs, j))
}

// Clear ends that a job has anything to launch.
func (a *Assigner) Clear(j *Job) {
	a.dropInput(j)
	j.pending, j.relaxed, j.aside, j.waiting = taskset.Set{}, taskset.Set{}, taskset.Set{}, nil
	a.recall(j)
	a.Move(j)
}

// DropJob forgets a job without slots that was cleared.
func (a *Assigner) DropJob(j *Job) {
	j.dropped = true
	a.part(j)
	a.lineUp() // it is in no line any more
	a.jobs[j.index] = nil
	a.asideJobs = without(a.asideJobs, j)
}

// Tracker is what an Assigner knows of a tracker. The owner contains it. What is looked at
// whenever a task ends comes first, so that it lies together in memory.
type Tracker struct {
	Owner any // the tracker that it belongs to

	node      *node
	nodeIndex int32
	rack      int32 // its number
	index     int32 // in Assigner.trackers
	fit       bool  // it is given work
	works     bool  // so, and has map slots
	free      [2]int
	ready     int // partitions that can be reduced there, of all jobs
}

// insert puts x where a list has a nil, or at its end.
func insert[T any](list *[]*T, x *T) int {
	for i, other := range *list {
		if other == nil {
			(*list)[i] = x
			return i
		}
	}
	*list = append(*list, x)
	return len(*list) - 1
}

// without removes x from a list, if it is there.
func without[T comparable](list []T, x T) []T {
	if i := slices.Index(list, x); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
