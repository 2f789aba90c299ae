// Package assign decides which task runs in which free slot: assignment and delay
// scheduling. It knows the tasks to launch of each job, and the free slots of each tracker.
// [Cluster] has the other state of tasks, and launches them.
//
// The caller reports every change to an [Assigner], in about O(1). A round then launches tasks
// in the free slots:
//
//	AddTracker, SetTakesWork, SetHeld,     free slots, room              slots.go, banned.go,
//	SetOffer, SetRequests, Occupy, Vacate                                room.go
//	AddJob, SetSplits,                     pending maps, and the nodes   nodes.go, index.go
//	AddPending, RemovePending              that are local to them
//	SetPlan, SetPools, SetRule,            order of jobs, limits,        line.go, groups.go, queues.go,
//	SetBanned                              waits for local slots         pools.go, defer.go
//	        |
//	        v   a slot is free
//	AssignMaps                                                           maps.go
//	  1  bring back maps set aside that a newly free tracker can run     aside.go
//	  2  launch maps from the free trackers' queues                      queues.go
//	  3  recall some deferred jobs, for slots that are local to no map   defer.go
//	  4  let the jobs in line take turns until no job can launch a map.
//	     First is the job furthest below its share of the plan. A turn:
//	       - if a free slot is local to a map: launch the map; else
//	       - if a map need not wait: reserve a slot. Reserved slots are
//	         filled later, after the other jobs' local maps; else
//	       - the delay rule makes the job wait: it is deferred
//	  5  repeat 4 with maps that have failed on the trackers with free slots
//	AssignReduces                                                        reduces.go
//	  for each free slot: launch for the first job in line with a partition there
//	        |
//	        v
//	Cluster.Launch, Cluster.LaunchReduce, which call Occupy
//
// The line of a phase has the jobs that wait for its slots, in order. A deferred job is not in
// line, but still gets slots that are local to its maps. It returns to the line when such a slot
// is free, its wait is over, one of its maps becomes relaxed, or the rule changes.
//
// A map is relaxed if it waits for no local slot: it has failed, no tracker on a node with its
// input takes maps of its job, or its wait is over.
//
// Invariants
//
//	A1  After a round no map slot is free, or no job is in the line of maps, except jobs of groups
//	    that are full or have no room, or the round was not allowed more launches. A job that waits beside free slots is deferred or shut out, has maps set aside, or
//	    may take no more.
//	A2  A free map slot is either in unchecked, or no job in line and no deferred job has
//	    a local map for it. It is in unclaimed if it is local to no pending map.
//	    It becomes unchecked when a tracker gets its first free slot or has room for another
//	    class of requests, a map local to it becomes pending, or jobs with local maps may take slots again (uncheck). Jobs of full groups do
//	    not count: when a group is no longer full, all free slots are unchecked for it (group.recheck).
//	A3  A job's positions in the lines depend only on its tasks to launch, its slots, its
//	    pool and the plan (see positionOf). Code that changes these calls MarkChanged.
//	A4  A deferred job has pending maps, none of them relaxed, and an alarm no later than
//	    the end of its wait.
//	A5  No launch takes a pool above its limit of slots or of running jobs.
//	A6  Of equally near maps that may run, a round launches the one with the lowest number.
//	A7  No launch takes more memory or cores of a tracker than it offers, or begins on a tracker
//	    that is saved for other tasks (saved.go).
//	A8  A job that is first in line gets a slot at last, however much its tasks request, if one
//	    tracker offers that.
//
// A Step costs O(changed jobs · log jobs + slots assigned · groups), however many tasks wait: a pool
// that becomes full, or no longer is, costs no look at its jobs, nor does a slot that has no room for
// them. Occupying or freeing a slot costs O(different requests). Finding a
// map that is local to a slot takes amortized O(1): each job has one list of maps per node, with
// a mark below which no map is pending (see places).
//
// # A new rule
//
// To add a rule that limits the slots of a job, change the function with the fewest arguments:
// mayTake for all slots of a phase; pickAt and pickAny, before they search, for all maps on one
// tracker; mayLaunch for one map on one tracker. When the rule allows more again, call
// MarkChanged for the job (A3), or uncheck for the tracker's slot (A2). Queues, predictions and
// plans are estimates and may ignore the rule. Get data about the job through [Cluster] or
// AddJob. Package core reads properties in its settings, and displays waiting jobs in holds.go.
//
// A job that may take none of the free slots must not stay in line (A1): AssignMaps would not
// end. These are the ways to wait:
//
//	              begins in                     ends in
//	not mayRun    updateLines                   updateLines, after MarkChanged
//	group full    updateFull                    updateFull
//	no room       refreshClass                  refreshClass: a free slot has the room
//	deferred      mayReserve: deferUntil        recall: a local slot, a relaxed map, an alarm
//	shut out      mayReserve: shutOut           letIn
//	aside         mayReserve: setAside, a map   bringBack, bringAllBack, BringBack, SetBanned
//	queued        requeue, tasks of a plan      launchQueued, dropQueue, ExpireQueues
//
// Another way to wait needs code in positionOf, at the start of AssignMaps, and in Clear and
// DropJob. Two tests repeat the rules of the line: check_test.go here, and checkLines in
// world_test.go of package core.
//
// Everything here is deterministic and reads no clock. Nothing is safe for concurrent use.
//
// Sources: FLEX defines the order of the line ("FLEX: A Slot Allocation Scheduling Optimizer
// for MapReduce Workloads", section 1). Delay scheduling (package locality) matches free slots
// with local maps first, and decides when a job waits.
package assign

import (
	"math"
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

// Cluster has the state of tasks and launches them. Its methods may call Occupy, RemovePending,
// AddReady, SetTakesWork and MarkChanged of the Assigner, but must not begin a round.
type Cluster interface {
	Now() time.Duration

	// Launch starts an attempt at map m in a free slot of a tracker.
	Launch(j *Job, m int, t *Tracker)
	// MayReduce reports whether LaunchReduce would find a partition of a job at a tracker.
	MayReduce(j *Job, t *Tracker) bool
	// LaunchReduce starts a reduce in a free slot of a tracker that is its partition's home.
	// If no reduce is ready there and gather is set, it gathers a partition in the slot. It
	// returns whether there was a partition.
	LaunchReduce(j *Job, t *Tracker, gather bool) bool

	// Runnable reports whether the job's tasks may be launched, apart from pool limits.
	Runnable(j *Job) bool
	// ToGather counts the partitions that need a reduce slot before they are gathered.
	ToGather(j *Job) int
	// Pool returns the job's pool and priority.
	Pool(j *Job) (string, wire.Priority)

	// MayRetry reports whether map m, which has failed, may run on a tracker. If strict, it may
	// only where it has not failed, unless it has failed on all trackers. Only maps passed to SetFailed need it.
	MayRetry(j *Job, m int, t *Tracker, strict bool) bool
	// StopAvoiding lets map m return to trackers where it has failed, if it has failed on all
	// of them. It returns whether that is so.
	StopAvoiding(j *Job, m int) bool
	// Releases appends the estimated time until each occupied map slot of a tracker is free.
	Releases(t *Tracker, all []time.Duration) []time.Duration

	// Alarm arranges that Recall is called for the job at a later time.
	Alarm(j *Job, at time.Duration)
	// PlanNow makes a plan at once: a job has its first pending map.
	PlanNow(phase int)
	// PlanSoon schedules a plan if none is scheduled: a job has joined the line or moved in it.
	PlanSoon(phase int)
}

// Assigner holds the lines of jobs, the free slots and the locality index.
type Assigner struct {
	cluster       Cluster
	queueLifetime time.Duration // how long queues stay without another plan
	rule          locality.Rule

	jobs     []*Job     // by index; nil if unused
	trackers []*Tracker // by index; nil if unused
	changed  []*Job     // jobs that updateLines must place again
	phases   [2]phase

	nodes  map[string]*node
	byNode []*node          // by index; nil if unused
	demand []int32          // by node: pending maps with input there, see demandOf
	racks  map[string]int32 // number of each rack

	mapTrackers int         // number of trackers with takesMaps
	reducible   taskset.Set // trackers with a free slot for a ready partition
	unchecked   taskset.Set // trackers with a free map slot that may be local to maps, see A2
	unclaimed   taskset.Set // trackers with a free map slot that is local to no pending map

	manyPlaces    int        // updateLines places so many jobs together
	launches      int        // how many more tasks rounds may launch, see AllowLaunches
	cursor        int        // index of the tracker at which the next search begins
	round         int        // number of this AssignMaps
	pass          int        // number of this pass; a round has a strict one and another
	launched      []*Job     // jobs with a map launched in this round
	reserved      []reserved // reused memory
	deferred      []*Job
	lastLookAhead int             // index in deferred at which lookAhead stopped
	nodeBuffer    []locality.Node // reused memory
	jobsShutOut   []*Job          // banned from all trackers with free map slots
	jobsWithAside []*Job          // all jobs with maps set aside, and maybe others

	meter locality.Meter
	pace  locality.Pace // of the maps of all jobs
	idle  idling

	classes []*class   // of requests, by index; nil if unused. The first one requests nothing
	saved   []*Tracker // trackers that are saved for a class

	pools        map[string]*TablePool // by name
	stalePools   []*TablePool          // pools that updatePools must check
	pooled       int                   // jobs in pools of the table
	groups       map[groupKey]int32    // indexes of groups, see line
	unusedGroups []int32
	placed       int                 // see Placed
	usedSlots    [2]int              // of all jobs
	uses         map[string]*poolUse // by pool
}

// phase has the line of jobs for the slots of a phase, and the phase's plan.
type phase struct {
	line    line
	free    taskset.Set // trackers with free slots that take work
	plan    uint64      // number of the plan in force; 0: no plan
	targets int         // number of jobs in the plan

	queues      []Queue        // from the plan
	replanned   bool           // queueOf does not have the plan's queues yet
	queueOf     [][]queueEntry // by tracker
	hasQueues   bool           // at least one tracker has a queue
	queuedUntil time.Duration
}

// New makes an Assigner without jobs and trackers. Without another plan, it drops queues after
// queueLifetime.
func New(c Cluster, queueLifetime time.Duration) *Assigner {
	a := &Assigner{cluster: c, queueLifetime: queueLifetime, launches: math.MaxInt, manyPlaces: 1024, nodes: make(map[string]*node), racks: make(map[string]int32)}
	a.classes, a.groups, a.uses = []*class{new(class)}, make(map[groupKey]int32), make(map[string]*poolUse)
	for i := range a.phases {
		a.phases[i].queuedUntil = Never
	}
	a.groupOf(groupKey{classes: [2]*class{a.classes[0], a.classes[0]}})
	return a
}

// Job is the Assigner's state of a job. The owner embeds it and uses only its methods.
type Job struct {
	Owner any // the caller's job

	// Warm is 1 + the index of a tracker that has an idle worker of the job, or 0. Of equally near slots, a map takes one there.
	Warm int32

	index     int32 // in Assigner.jobs
	number    int32 // decides between otherwise equal jobs
	changed   bool  // in Assigner.changed
	dropped   bool
	in        *input // nil before SetSplits
	meanBytes int64  // bytes that a map reads

	pending taskset.Set // maps that wait for slots
	relaxed taskset.Set // pending maps that wait for no local slot
	aside   taskset.Set // maps that have failed on all trackers with free slots, see setAside
	failed  taskset.Set // maps that have failed somewhere
	banned  taskset.Set // indexes of trackers that run no map of the job
	shutOut bool        // in Assigner.jobsShutOut
	ready   int         // partitions that can be reduced now

	usedSlots   [2]int
	planShare   [2]PlanShare // in the last plan with this job
	queued      [2]int       // tasks in trackers' queues
	toLaunch    [2]int32     // its part of PoolUse.Waiting
	mayRun      bool         // as updateLines last computed it
	group       int32        // see group; as updatePools last computed it
	usesAnySlot bool         // it may take map slots without a queue, as updateLines last computed it
	pool        *TablePool
	use         *poolUse // of its pool
	barred      bool     // its pool has its maximum of running jobs
	candidate   candidacy

	class      [2]*class
	waits      [2]bool          // it was first of its class in line, and has got no slot since waitsSince
	waitsSince [2]time.Duration // see longWaiting

	reserved int // slots reserved in this pass
	findings findings

	deferred      bool          // it waits for local slots
	deferredRound int           // when it was deferred last
	deferredAt    time.Duration // when it was deferred last
	deferredUntil time.Duration // at the latest
	left          leaving
	alarm         time.Duration // time of its last alarm
	waiting       []int32       // pending maps that wait for local slots, longest wait first
	waitingSince  map[int32]time.Duration
	sampled       int // the last map that slowest sampled
	wait          locality.Wait
	average       locality.Average
	pace          locality.Pace
}

// AddJob adds a job. Of otherwise equal jobs, the lower number comes first.
func (a *Assigner) AddJob(j *Job, number int, owner any) {
	j.Owner, j.number = owner, int32(number)
	j.waitingSince, j.average = make(map[int32]time.Duration), locality.Average(locality.Start)
	j.class = [2]*class{a.classOf(Room{}), a.classOf(Room{})}
	j.index = int32(insert(&a.jobs, j))
	a.countUse(j)
}

// Clear removes all tasks to launch of a job.
func (a *Assigner) Clear(j *Job) {
	a.dropInput(j)
	j.pending, j.relaxed, j.aside, j.waiting = taskset.Set{}, taskset.Set{}, taskset.Set{}, nil
	a.recall(j)
	a.MarkChanged(j)
}

// DropJob removes a job that was cleared and has no slots.
func (a *Assigner) DropJob(j *Job) {
	j.dropped = true
	a.leavePool(j)
	a.dropUse(j)
	a.updateLines() // removes it from the lines
	for phase := range j.class {
		a.dropClass(j.class[phase])
	}
	a.jobs[j.index] = nil
	a.jobsWithAside, a.jobsShutOut = without(a.jobsWithAside, j), without(a.jobsShutOut, j)
}

// Tracker is the Assigner's state of a tracker. The owner embeds it. Fields that every end of a
// task reads come first, to share a cache line.
type Tracker struct {
	Owner any // the caller's tracker

	node      *node
	nodeIndex int32
	rack      int32 // number of its rack
	index     int32 // in Assigner.trackers
	takesWork bool  // set by SetTakesWork
	takesMaps bool  // it takes work and has map slots
	held      bool  // set by SetHeld
	free      [2]int
	idle      int // its free map slots in Assigner.idle
	ready     int // ready partitions of all jobs there

	offer, used Room
	counted     [2]int // slots that count for Fits
	savedFor    *class // only tasks of this class and of savedPhase begin here; nil: all tasks
	savedPhase  int
	savedJob    *Job
	savedUntil  time.Duration // see SaveUntil; 0: it is saved by the line
	savedTasks  int           // how many tasks it is saved for; 0: for one, by the line
}

// insert puts x at the first nil of a list, or at its end.
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
