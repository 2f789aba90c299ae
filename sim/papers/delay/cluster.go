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
	name    string
	rule    locality.Rule
	printed bool // waits restart at every launch and arrival, as in Algorithm 1
	history bool // the meter and the paces start with the measurements of an earlier run
}

// node has slots; it holds replicas.
type node struct {
	free    int
	running []*task
	wanted  float64 // tasks not launched with a replica here; a task with r replicas counts 1/r
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
	local   map[int][]*task // by node: tasks with a replica there, in order; launched ones are dropped later
	first   int             // tasks before this one are launched
	running int

	wait    locality.Wait
	average locality.Average
	pace    locality.Pace

	launchedNow, deferredNow bool
}

// event is a task's end, a job's arrival or a wake-up.
type event struct {
	at   time.Duration
	seq  int // breaks ties by creation
	task *task
	job  *job
}

func earlier(a, b event) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// learned is the measurements that a run leaves for the next.
type learned struct {
	meter locality.Meter
	pace  locality.Pace            // of all tasks
	paces map[string]locality.Pace // by job name
}

// cluster runs jobs under a policy.
type cluster struct {
	policy policy
	slots  int // of a node
	nodes  []node
	jobs   []*job // jobs that have arrived and have tasks to launch
	all    []*job
	known  learned

	now     time.Duration
	queue   heap.Heap[event]
	seq     int
	wake    time.Duration // time of the pending wake-up; none: past
	done    []time.Duration
	remotes int
	busy    time.Duration // slot-time spent in tasks
}

// run runs the workload and returns the cluster afterwards.
func run(w *workload, p policy, known learned) *cluster {
	c := &cluster{policy: p, slots: w.slots, nodes: make([]node, w.nodes), known: known, wake: -1, queue: heap.New(nil, earlier), done: make([]time.Duration, w.queries)}
	if c.known.paces == nil {
		c.known.paces = make(map[string]locality.Pace)
	}
	for n := range c.nodes {
		c.nodes[n].free = w.slots
	}
	c.all = w.jobs()
	for _, j := range c.all {
		c.at(event{at: j.arrives, job: j})
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

func (c *cluster) at(e event) {
	c.seq++
	e.seq = c.seq
	c.queue.Push(e)
}

func (c *cluster) handle(e event) {
	switch {
	case e.task != nil:
		c.ended(e.task)
	case e.job != nil:
		c.arrived(e.job)
	default:
		c.wake = -1
	}
}

func (c *cluster) arrived(j *job) {
	j.average = locality.Average(locality.Start)
	j.pace = c.known.paces[j.name]
	j.local, j.pending = make(map[int][]*task), len(j.tasks)
	slices.SortStableFunc(j.tasks, func(a, b *task) int { // stranded tasks are offered first
		return min(1, len(a.replicas)) - min(1, len(b.replicas))
	})
	for _, t := range j.tasks {
		for _, n := range t.replicas {
			j.local[n] = append(j.local[n], t)
			c.nodes[n].wanted += 1 / float64(len(t.replicas))
		}
	}
	if c.policy.printed {
		j.wait.Restart(c.now)
	}
	c.jobs = append(c.jobs, j)
}

func (c *cluster) ended(t *task) {
	n := &c.nodes[t.node]
	n.free++
	n.running = slices.DeleteFunc(n.running, func(o *task) bool { return o == t })
	j := t.job
	j.running--
	took := c.now - t.started
	j.pace.Add(t.remote, took)
	c.known.pace.Add(t.remote, took)
	c.known.paces[j.name] = j.pace
	read := locality.Read{Remote: t.remote, Bytes: t.bytes, Took: t.local}
	reported := time.Duration(0)
	if t.remote {
		read.Took += t.extra
		reported = read.Took
	}
	c.known.meter.Add(read)
	j.average.Add(reported)
	c.done[j.query] = max(c.done[j.query], c.now)
	c.busy += took
}

// round offers the free slots to the jobs, starting with the one with the fewest running tasks.
func (c *cluster) round() {
	for _, j := range c.jobs {
		j.launchedNow, j.deferredNow = false, false
	}
	again := time.Duration(math.MaxInt64)
	for c.offer(&again) {
	}
	for _, j := range c.jobs {
		switch {
		case j.deferredNow:
			j.wait.Defer(c.now)
		case j.launchedNow && !c.policy.printed:
			j.wait.Settle(c.now)
		}
	}
	c.jobs = slices.DeleteFunc(c.jobs, func(j *job) bool { return j.pending == 0 })
	if again != math.MaxInt64 && (c.wake < 0 || c.now+again < c.wake) {
		c.wake = c.now + again
		c.at(event{at: c.wake})
	}
}

// offer launches one task; not ok if no job takes a slot.
func (c *cluster) offer(again *time.Duration) bool {
	slices.SortFunc(c.jobs, func(a, b *job) int {
		if a.running != b.running {
			return a.running - b.running
		}
		return a.number - b.number
	})
	for _, j := range c.jobs {
		if j.pending == 0 || j.deferredNow {
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
		j.deferredNow = true
		if !t.deferred {
			t.deferred, t.waitAtDefer = true, j.wait.Total(c.now)
		}
		*again = min(*again, decision.Again)
	}
	return false
}

// localTask is the job's first task that is local to a free slot.
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

// pendingOn lists a node's local tasks. The first has not been launched, others may have been.
func (j *job) pendingOn(n int) []*task {
	list := j.local[n]
	for len(list) > 0 && list[0].launched {
		list = list[1:]
	}
	j.local[n] = list
	return list
}

// freeNode is the free slot to offer to j: one for which no other job has a local task, if
// possible.
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
		c.nodes[r].wanted -= 1 / float64(len(t.replicas))
	}
	c.nodes[n].free--
	c.nodes[n].running = append(c.nodes[n].running, t)
	j := t.job
	j.pending--
	j.running++
	j.launchedNow = true
	if c.policy.printed {
		j.wait.Restart(c.now)
	}
	c.at(event{at: t.ends, task: t})
}
