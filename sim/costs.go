package sim

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	tasktracker "github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Use is what a Step is charged for.
type Use struct {
	Tracker string // "job" or "task"
	Kind    string // of the event: its type, its message's type, or its log entry's
	Sizes   [5]int // see Rate
}

// Rate is the time of a Step in nanoseconds: once, and for each of
//
//	the event's items        reports in a heartbeat or inventory, splits, 64 bytes of a log entry,
//	                         maps of a home, running tasks of a plan, …
//	the commands' items      messages, outputs in a message, jobs in a request for a plan, …;
//	                         the square of the jobs for the plan itself
//	jobs, or work            jobs of the cluster that have not ended; or workers, fetches and merges
//	                         of the task tracker
//	trackers                 task trackers of the cluster
type Rate [5]float64

func (r *Rate) cost(sizes *[5]int) time.Duration {
	t := 0.0
	for i, n := range sizes {
		t += r[i] * float64(n)
	}
	return time.Duration(t)
}

// Cost returns the time that a Step takes.
func (u *Use) Cost() time.Duration {
	rates := jobRates
	if u.Tracker == "task" {
		rates = taskRates
	}
	r, ok := rates[u.Kind]
	if !ok {
		r = otherRate
	}
	return r.cost(&u.Sizes)
}

// Meter measures the Steps of a run with a clock.
type Meter struct {
	Clock  func() time.Duration
	OnStep func(u Use, took time.Duration)
}

// begin returns the time; 0 if nothing is measured.
func (m *Meter) begin() time.Duration {
	if m == nil {
		return 0
	}
	return m.Clock()
}

func (m *Meter) since(begin time.Duration) time.Duration {
	if m == nil {
		return 0
	}
	return m.Clock() - begin
}

func (m *Meter) report(u Use, took time.Duration) {
	if m != nil {
		m.OnStep(u, took)
	}
}

// load is the work of a process's loop.
type load struct {
	events   map[string]int // by kind
	waited   time.Duration  // longest wait of an event, since it reached the process
	busy     time.Duration  // of all Steps together
	slowness float64        // how many times longer Steps take than by the rates; 0: 1
}

// maxSteps is more than any run needs.
const maxSteps = 400_000

// spend spends the time of a Step, and then carries out its commands.
func (p *process) spend(u *Use, commands int, carryOut func()) {
	w := p.w
	p.load.events[u.Kind]++
	if w.stepping.steps++; w.stepping.steps > w.stepping.max {
		w.fail("no end in sight: the cores have been given %d events, most of them %s", w.stepping.steps, w.busiest())
	}
	if commands == 0 {
		carryOut = nil
	}
	d := p.slowed(u.Cost())
	p.load.busy += d
	p.work(d, carryOut)
}

// slowed returns how long this process takes for something that takes a time by the rates.
func (p *process) slowed(d time.Duration) time.Duration {
	return slowed(d, p.load.slowness)
}

// busiest names the most frequent events of a run.
func (w *world) busiest() string {
	type count struct {
		n    int
		what string
	}
	var all []count
	add := func(p *process) {
		for _, kind := range slices.Sorted(maps.Keys(p.load.events)) {
			all = append(all, count{p.load.events[kind], kind + " for " + p.name})
		}
	}
	for _, n := range w.jts {
		add(&n.process)
	}
	for _, t := range w.tts {
		add(&t.process)
	}
	slices.SortStableFunc(all, func(a, b count) int { return b.n - a.n })
	var most []string
	for _, x := range all[:min(len(all), 5)] {
		most = append(most, fmt.Sprintf("%d times %s", x.n, x.what))
	}
	return strings.Join(most, ", ")
}

// use returns what an event of a job tracker is charged for, except its commands.
func (n *jobTracker) use(ev core.Event) Use {
	u := Use{Tracker: "job", Sizes: [5]int{1, 0, 0, n.w.book.liveJobs, len(n.w.tts)}}
	items := &u.Sizes[1]
	switch ev := ev.(type) {
	case core.FromTracker:
		u.Kind = typeName(ev.Message)
		switch m := ev.Message.(type) {
		case *wire.Heartbeat:
			*items = len(m.Attempts)
		case *wire.Inventory:
			*items = len(m.Attempts) + len(m.Homes) + len(m.Jobs)
		case *wire.Report:
			u.Kind = reportKind(m)
		}
	case core.Entry:
		*items = len(ev.Data) / 64
		u.Kind = "followed"
		if n.core.CheckLeading() == nil {
			u.Kind = n.w.raft.kindOf(ev.Index)
		}
	case core.Restored:
		u.Kind, *items = "Restored", len(ev.Snapshot)/64
	case core.Submit:
		u.Kind, *items = "Submit", len(ev.Submission.Plan.Jobs)
	case core.SplitsLoaded:
		u.Kind, *items = "SplitsLoaded", len(ev.Splits)
	default:
		u.Kind = typeName(ev)
	}
	return u
}

// reportKind tells final reports of maps, reduces and service attempts from others.
func reportKind(m *wire.Report) string {
	switch {
	case !m.State.Final():
		return "Report"
	case m.Attempt.Task.Kind == wire.Map:
		return "Report of a map"
	case m.Attempt.Task.Kind == wire.Reduce:
		return "Report of a reduce"
	}
	return "Report of a service"
}

func (r *raft) kindOf(index uint64) string {
	if index > uint64(len(r.log)) { // sabotage
		return "followed"
	}
	kind, _, _ := strings.Cut(r.log[index-1].key, " ")
	return kind
}

// use returns what an event of a task tracker is charged for, except its commands.
func (t *taskTracker) use(ev tasktracker.Event) Use {
	u := Use{Tracker: "task", Sizes: [5]int{1, 0, 0, len(t.workers) + len(t.fetches) + len(t.merges), len(t.w.tts)}}
	items := &u.Sizes[1]
	switch ev := ev.(type) {
	case tasktracker.FromLeader:
		u.Kind = typeName(ev.Message)
		switch m := ev.Message.(type) {
		case *wire.Outputs:
			*items = m.Count()
		case *wire.Shares:
			*items = len(m.Shares)
		case *wire.SetHome:
			*items = m.Maps
		}
	case tasktracker.FromWorker:
		u.Kind = typeName(ev.Message)
	default:
		u.Kind = typeName(ev)
	}
	return u
}

// typeName returns the name of a struct, or of the struct that a pointer points to.
func typeName(x any) string {
	t := reflect.TypeOf(x)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// addCommand charges a Step of a job tracker for a command.
func (u *Use) addCommand(c core.Command) {
	u.Sizes[2] += itemsOfJob(c)
	if c, ok := c.(core.Allocate); ok && strings.HasPrefix(u.Kind, "Tick") {
		u.Kind = "Tick with a plan"
		for i := range c.Snapshot.Jobs {
			u.Sizes[1] += c.Snapshot.Jobs[i].Running
		}
	}
}

// itemsOfJob counts the items of a job tracker's command.
func itemsOfJob(c core.Command) int {
	switch c := c.(type) {
	case core.Send:
		switch m := c.Message.(type) {
		case *wire.Outputs:
			return 1 + m.Count()
		case *wire.Shares:
			return 1 + len(m.Shares)
		}
	case core.Allocate:
		return 1 + len(c.Snapshot.Jobs)
	}
	return 1
}

// itemsOfTask counts the items of a task tracker's command.
func itemsOfTask(c tasktracker.Command) int {
	switch c := c.(type) {
	case tasktracker.Send:
		switch m := c.Message.(type) {
		case *wire.Heartbeat:
			return 1 + len(m.Attempts)
		case *wire.Inventory:
			return 1 + len(m.Attempts) + len(m.Homes)
		}
	case tasktracker.Merge:
		return 1 + len(c.Runs)
	}
	return 1
}
