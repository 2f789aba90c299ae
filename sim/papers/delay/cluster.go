package delay

import (
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/scheduler/heap"
)

// policy is a delay rule and how its waits are counted.
type policy struct {
	name      string
	rule      locality.Rule
	asPrinted bool // waits restart at every launch and arrival, as in Algorithm 1
	history   bool // the meter and the paces start with the measurements of an earlier run
}

// node has slots; it holds replicas.
type node struct {
	free    int
	running []*task
	queued  float64 // tasks with a replica here, not launched yet; one with r replicas counts 1/r
}

// task reads one block.
type task struct {
	job      *job
	number   int
	replicas []int // nodes
	bytes    int64
	compute  time.Duration
	local    time.Duration // reading a local replica
	extra    time.Duration // extra time of a remote read

	launched    bool
	node        int
	remote      bool
	started     time.Duration
	ends        time.Duration
	deferred    bool          // it has deferred a slot
	waitAtDefer time.Duration // the job's total wait at its first deferral
}

// job is a stage of a query: tasks that can all start.
type job struct {
	number  int
	name    string
	query   int
	arrives time.Duration
	tasks   []*task
	pending int
	local   map[int][]*task // by node: tasks with a replica there, in order; some may be launched
	first   int             // all tasks before this index are launched
	running int

	wait    locality.Wait
	average locality.Average
	pace    locality.Pace

	launchedInRound, deferredInRound bool
}

// event is a task's end, a job's arrival or a wake-up.
type event struct {
	at   time.Duration
	seq  int // breaks ties by creation
	task *task
	job  *job
}

func earlier(a, b event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// measurements are the results of a run that a later run with history starts with.
type measurements struct {
	meter locality.Meter
	pace  locality.Pace            // of all tasks
	paces map[string]locality.Pace // by job name
}

// cluster runs jobs under a policy.
type cluster struct {
	policy   policy
	slots    int // of a node
	nodes    []node
	jobs     []*job // jobs that have arrived and have tasks to launch
	all      []*job
	measured measurements

	now       time.Duration
	queue     heap.Heap[event]
	seq       int
	wake      time.Duration // time of the pending wake-up; below 0: none
	queryEnds []time.Duration
	remotes   int
	busy      time.Duration // slot-time spent in tasks
}

// run runs the workload and returns the cluster afterwards.
func run(w *workload, p policy, start measurements) *cluster {
	c := &cluster{policy: p, slots: w.slots, nodes: make([]node, w.nodes), measured: start, wake: -1, queue: heap.New(nil, earlier), queryEnds: make([]time.Duration, w.queries)}
	if c.measured.paces == nil {
		c.measured.paces = make(map[string]locality.Pace)
	}
	for n := range c.nodes {
		c.nodes[n].free = w.slots
	}
	c.all = w.jobs()
	for _, j := range c.all {
		c.schedule(event{at: j.arrives, job: j})
	}
	for len(c.queue.Items) > 0 {
		c.now = c.queue.Items[0].at
		for len(c.queue.Items) > 0 && c.queue.Items[0].at == c.now {
			next := c.queue.Items[0]
			c.queue.Pop()
			c.handle(next)
		}
		c.round()
	}
	return c
}

func (c *cluster) schedule(e event) {
	c.seq++
	e.seq = c.seq
	c.queue.Push(e)
}

func (c *cluster) handle(e event) {
	switch {
	case e.task != nil:
		c.taskEnded(e.task)
	case e.job != nil:
		c.jobArrived(e.job)
	default:
		c.wake = -1
	}
}

func (c *cluster) jobArrived(j *job) {
	j.average = locality.Average(locality.Start)
	j.pace = c.measured.paces[j.name]
	j.local, j.pending = make(map[int][]*task), len(j.tasks)
	slices.SortStableFunc(j.tasks, func(a, b *task) int { // tasks without replicas are offered first
		return min(1, len(a.replicas)) - min(1, len(b.replicas))
	})
	for _, t := range j.tasks {
		for _, n := range t.replicas {
			j.local[n] = append(j.local[n], t)
			c.nodes[n].queued += 1 / float64(len(t.replicas))
		}
	}
	if c.policy.asPrinted {
		j.wait.Restart(c.now)
	}
	c.jobs = append(c.jobs, j)
}

func (c *cluster) taskEnded(t *task) {
	n := &c.nodes[t.node]
	n.free++
	n.running = slices.DeleteFunc(n.running, func(o *task) bool { return o == t })
	j := t.job
	j.running--
	took := c.now - t.started
	j.pace.Add(t.remote, took)
	c.measured.pace.Add(t.remote, took)
	c.measured.paces[j.name] = j.pace
	read := locality.Read{Remote: t.remote, Bytes: t.bytes, Took: t.local}
	reported := time.Duration(0)
	if t.remote {
		read.Took += t.extra
		reported = read.Took
	}
	c.measured.meter.Add(read)
	j.average.Add(reported)
	c.queryEnds[j.query] = max(c.queryEnds[j.query], c.now)
	c.busy += took
}

// round offers the free slots to the jobs. The job with the fewest running tasks comes first.
func (c *cluster) round() {
	for _, j := range c.jobs {
		j.launchedInRound, j.deferredInRound = false, false
	}
	next := time.Duration(math.MaxInt64) // time until the next decision on a deferred task
	for c.offer(&next) {
	}
	for _, j := range c.jobs {
		switch {
		case j.deferredInRound:
			j.wait.Defer(c.now)
		case j.launchedInRound && !c.policy.asPrinted:
			j.wait.Settle(c.now)
		}
	}
	c.jobs = slices.DeleteFunc(c.jobs, func(j *job) bool { return j.pending == 0 })
	if next != math.MaxInt64 && (c.wake < 0 || c.now+next < c.wake) {
		c.wake = c.now + next
		c.schedule(event{at: c.wake})
	}
}

// offer launches one task; false if no job takes a slot. It lowers next to the time of the next
// decision.
func (c *cluster) offer(next *time.Duration) bool {
	slices.SortFunc(c.jobs, func(a, b *job) int {
		if a.running != b.running {
			return a.running - b.running
		}
		return a.number - b.number
	})
	for _, j := range c.jobs {
		if j.pending == 0 || j.deferredInRound {
			continue
		}
		if t, n := c.localTask(j); t != nil {
			c.launch(t, n, false)
			return true
		}
		n, contended := c.freeNode(j)
		if n < 0 {
			return false
		}
		t, o := c.candidate(j)
		o.Contended = contended
		decision := c.policy.rule.Decide(o)
		if decision.Launch {
			c.launch(t, n, true)
			return true
		}
		j.deferredInRound = true
		if !t.deferred {
			t.deferred, t.waitAtDefer = true, j.wait.Total(c.now)
		}
		*next = min(*next, decision.Again)
	}
	return false
}

// localTask returns the job's first task that is local to a free slot, and the node.
func (c *cluster) localTask(j *job) (*task, int) {
	for n := range c.nodes {
		if c.nodes[n].free == 0 {
			continue
		}
		if list := j.pendingOn(n); len(list) > 0 {
			return list[0], n
		}
	}
	return nil, 0
}

// pendingOn lists the tasks that are local to a node. The first is not launched; others may be.
func (j *job) pendingOn(n int) []*task {
	list := j.local[n]
	for len(list) > 0 && list[0].launched {
		list = list[1:]
	}
	j.local[n] = list
	return list
}

// freeNode returns the node of the free slot to offer to j. It prefers one for which no other
// job has a local task; contended if there is none.
func (c *cluster) freeNode(j *job) (n int, contended bool) {
	found := -1
	for n := range c.nodes {
		if c.nodes[n].free == 0 {
			continue
		}
		if !slices.ContainsFunc(c.jobs, func(o *job) bool { return o != j && o.pending > 0 && len(o.pendingOn(n)) > 0 }) {
			return n, false
		}
		if found < 0 {
			found = n
		}
	}
	return found, true
}

func (c *cluster) launch(t *task, n int, remote bool) {
	t.launched, t.node, t.remote, t.started = true, n, remote, c.now
	t.ends = c.now + t.local + t.compute
	if remote {
		t.ends += t.extra
		c.remotes++
	}
	for _, r := range t.replicas {
		c.nodes[r].queued -= 1 / float64(len(t.replicas))
	}
	c.nodes[n].free--
	c.nodes[n].running = append(c.nodes[n].running, t)
	j := t.job
	j.pending--
	j.running++
	j.launchedInRound = true
	if c.policy.asPrinted {
		j.wait.Restart(c.now)
	}
	c.schedule(event{at: t.ends, task: t})
}
