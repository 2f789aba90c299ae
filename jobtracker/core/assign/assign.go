// Package assign decides which task runs in which free slot: assignment and delay
// scheduling. It knows jobs by their tasks to launch, and trackers by their free slots.
// [Cluster] hides all else about tasks and launches them.
//
// The caller tells an [Assigner] of every change as it happens, in about O(1). A round then
// turns the free slots into launches:
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
//	     that lacks the largest part of its share is first. A turn:
//	       - a local map, in any free slot: launch; or
//	       - a map that need not wait: reserve a slot, which is filled at
//	         the end, after the other jobs' local maps; or
//	       - the delay rule says wait: the job is deferred and leaves the line
//	  5  repeat 4 with maps that have failed on the trackers with free slots
//	AssignReduces                                                        reduces.go
//	  for each free slot: the first job in line with a partition there
//	        |
//	        v
//	Cluster.Launch, Cluster.LaunchReduce, which call Occupy
//
// A deferred job keeps its claim on slots that are local to its maps. It returns to the line
// when such a slot is free, its wait is over, one of its maps becomes relaxed, or the rule
// changes. A map is relaxed if it waits for no local slot: it has failed, no tracker on a
// node with its input is given work, or it has waited for as long as the rule says.
//
// Invariants
//
//	A1  After a round no map slot is free, or no job is in the line of maps. Jobs that wait
//	    beside free slots are deferred, have set maps aside, or may have no more slots.
//	A2  A free map slot is either in unchecked, or no job in line and no deferred job has
//	    a local map for it. It is in unclaimed if no map to launch is local to it at all.
//	    It is unchecked again when a tracker gets its first free slot, a map local to it is
//	    to be launched, or jobs with local maps may have slots again (uncheck).
//	A3  A job's positions in the lines are functions of its tasks to launch, its slots, its
//	    pool and the plan (see positionOf). Code that changes these calls Move.
//	A4  A deferred job has maps to launch, none of them relaxed, and an alarm no later than
//	    the end of its wait.
//	A5  No launch takes a capped pool above its limits, of slots or of jobs that have some.
//	A6  Of equally near maps that may run, a round launches the one with the lowest number.
//
// A Step costs O(jobs that moved · log jobs + slots assigned), however many tasks wait. To find
// a map that is local to a slot takes amortized O(1): each job has one list of maps per node,
// with a mark below which none is to be launched (see places).
//
// # A new rule
//
// Put a rule on which slots a job may take into the function with the fewest arguments that
// suffices: mayTake for any slot of a phase; pickAt and pickAny, before they look at maps, for
// any map on one tracker; mayLaunch for one map on one tracker. An event after which the rule
// may allow more calls Move for the job (A3), or uncheck for the tracker's slot (A2). Queues,
// predictions and plans are estimates and may ignore the rule. Facts about a job that the rule
// needs come through [Cluster] or with AddJob. Package core reads properties in its settings,
// and displays waiting jobs in holds.go.
//
// A job that may take none of the free slots must not stay in the line (A1): AssignMaps would
// not end. There are these ways to wait:
//
//	           begins in                     ends in
//	not may    updateLines                   updateLines, after Move
//	deferred   mayReserve: deferUntil        recall: a local slot, a relaxed map, an alarm
//	aside      mayReserve: setAside, a map   bringBack, bringAllBack, BringBack
//	queued     requeue, tasks of a plan      launchQueued, dropQueue, ExpireQueues
//
// Another way to wait needs code in positionOf, in the early return and at the start of
// AssignMaps, and in Clear and DropJob. Two tests repeat the rules of the line: check_test.go
// here, and checkLines of core's world_test.go.
//
// Everything here is deterministic and reads no clock. Nothing is safe for concurrent use.
//
// Sources: the order of the line is FLEX's ("FLEX: A Slot Allocation Scheduling Optimizer
// for MapReduce Workloads", section 1). Delay scheduling (package locality) matches free slots
// with local maps first, and decides when a job waits.
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

// Never is later than any time.
const Never = time.Duration(1<<63 - 1)

// Cluster answers an Assigner's questions about tasks and launches them. Its methods may
// call Occupy, Leave, AddReady, SetFit and Move, but must not begin a round.
type Cluster interface {
	Now() time.Duration

	// Launch starts an attempt at map m in a free slot of a tracker.
	Launch(j *Job, m int, t *Tracker)
	// LaunchReduce starts a reduce in a free slot of a tracker that is its partition's home.
	// If gather is set, it may use the slot to gather a partition instead. It returns whether
	// there was a partition.
	LaunchReduce(j *Job, t *Tracker, gather bool) bool

	// Runnable reports whether the job's tasks may be launched, apart from pool limits.
	Runnable(j *Job) bool
	// ToGather counts the partitions that need a reduce slot before they are gathered.
	ToGather(j *Job) int
	// Pool returns the job's pool and priority.
	Pool(j *Job) (string, wire.Priority)

	// MayRetry reports whether map m, which has failed, may run on a tracker: if strict, only
	// where it has not failed. Only maps passed to SetFailed need it.
	MayRetry(j *Job, m int, t *Tracker, strict bool) bool
	// StopAvoiding lets map m return to trackers where it has failed, if it has failed on all
	// of them. It returns whether it has.
	StopAvoiding(j *Job, m int) bool
	// Releases appends, for each occupied map slot of a tracker, the estimated time until it
	// is free.
	Releases(t *Tracker, all []time.Duration) []time.Duration

	// Alarm arranges that Recall is called for the job at a later time.
	Alarm(j *Job, at time.Duration)
	// Begun makes a plan at once: a job has its first map to launch.
	PlanNow(phase int)
	// InLine schedules a plan if none is due: a job has joined the line or moved in it.
	PlanSoon(phase int)
}

// Assigner holds the lines of jobs, the free slots and the locality index.
type Assigner struct {
	cluster    Cluster
	queueLifetime time.Duration // how long queues are valid without another plan
	rule       locality.Rule

	jobs     []*Job     // by index; nil where one is free
	trackers []*Tracker // by index; nil where one is free
	changed    []*Job     // jobs whose positions updateLines must update
	phases   [2]phase

	nodes  map[string]*node
	byNode []*node          // by index; nil where one is free
	demand []int32          // by node: maps to launch with input there, see demandOf
	racks  map[string]int32 // number of each rack

	mapTrackers   int         // trackers that are given work and have map slots
	reducible taskset.Set // trackers with a free slot for a ready partition
	unchecked taskset.Set // trackers with a free map slot that may be local to maps, see A2
	unclaimed taskset.Set // trackers with a free map slot that is local to no map to launch

	cursor        int        // tracker at which the next search begins
	round         int        // of assigning maps
	pass          int        // two per round: first strict, then not
	launched      []*Job     // jobs with a map launched in this round
	reserved      []reserved // reused memory
	deferred      []*Job
	lastLookAhead int             // index in deferred of the job that lookAhead recalled last
	nodeBuffer    []locality.Node // reused memory
	jobsWithAside []*Job          // jobs with maps set aside; some may have none left

	meter locality.Meter
	pace  locality.Pace // of all maps

	pools      map[string]*CappedPool // by name
	stalePools []*CappedPool          // pools that barExcess must check
}

// phase is the line of jobs for the slots of a phase, and the phase's plan.
type phase struct {
	line    line
	free    taskset.Set // trackers that can take a task
	plan    uint64      // number of the plan in force; 0: none is
	targets int         // number of jobs in the plan

	queues      []Queue        // of the plan
	replanned   bool           // queueOf does not have the plan's queues yet
	queueOf     [][]queueEntry // by tracker
	hasQueues   bool           // some tracker has a queue
	queuedUntil time.Duration
}

// New makes an Assigner without jobs and trackers. Without another plan, queues are dropped
// after queuesLast.
func New(c Cluster, queuesLast time.Duration) *Assigner {
	a := &Assigner{cluster: c, queueLifetime: queuesLast, nodes: make(map[string]*node), racks: make(map[string]int32)}
	for i := range a.phases {
		a.phases[i].queuedUntil = Never
	}
	return a
}

// Job is an Assigner's part of a job. Its owner embeds it and uses it through methods only.
type Job struct {
	Owner any // the caller's job

	index     int32 // in Assigner.jobs
	number    int32 // orders jobs that are otherwise equal
	changed     bool  // in Assigner.moved
	dropped   bool
	in        *input // nil before the splits are known
	meanBytes int64  // bytes that a map reads

	pending taskset.Set // maps to launch
	relaxed taskset.Set // of those, maps that wait for no local slot
	aside   taskset.Set // maps to launch that have failed on all trackers with free slots, see setAside
	failed  taskset.Set // maps that have failed somewhere
	ready   int         // partitions that can be reduced now

	usedSlots     [2]int
	planShare       [2]PlanShare // by the last plan that named it
	queued      [2]int   // tasks in trackers' queues
	mayTake         [2]bool  // have more slots, as updateLines found
	usesAnySlot bool     // it may take map slots, also outside of queues, as updateLines found
	pool        *CappedPool
	barred      bool // by its pool, which has its maximum of running jobs

	reserved int // slots reserved in this pass
	findings findings

	deferred      bool          // it waits for local slots, and is out of the line
	deferredRound int           // when it was deferred last
	deferredAt    time.Duration // when it was deferred last
	deferredUntil time.Duration // at the latest
	alarm         time.Duration // time of its last alarm
	waiting       []int32       // pending maps for which the rule declined slots, longest wait first
	waitingSince  map[int32]time.Duration
	sampled       int // the map that slowest looked at last
	wait          locality.Wait
	average       locality.Average
	pace          locality.Pace
}

// AddJob adds a job. Of otherwise equal jobs, the lower number comes first.
func (a *Assigner) AddJob(j *Job, number int, owner any) {
	j.Owner, j.number = owner, int32(number)
	j.waitingSince, j.average = make(map[int32]time.Duration), locality.Average(locality.Start)
	j.index = int32(insert(&a.jobs, j))
}

// Clear removes all tasks that a job has to launch.
func (a *Assigner) Clear(j *Job) {
	a.dropInput(j)
	j.pending, j.relaxed, j.aside, j.waiting = taskset.Set{}, taskset.Set{}, taskset.Set{}, nil
	a.recall(j)
	a.MarkChanged(j)
}

// DropJob forgets a job without slots that was cleared.
func (a *Assigner) DropJob(j *Job) {
	j.dropped = true
	a.leavePool(j)
	a.updateLines() // removes it from the lines
	a.jobs[j.index] = nil
	a.jobsWithAside = without(a.jobsWithAside, j)
}

// Tracker is an Assigner's part of a tracker. Its owner embeds it. Fields that are read
// whenever a task ends come first, to share a cache line.
type Tracker struct {
	Owner any // the caller's tracker

	node      *node
	nodeIndex int32
	rack      int32 // its number
	index     int32 // in Assigner.trackers
	takesWork       bool  // it is given work
	takesMaps     bool  // it is given work and has map slots
	free      [2]int
	ready     int // partitions of all jobs that can be reduced there
}

// insert puts x in place of a list's first nil, or at its end.
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
