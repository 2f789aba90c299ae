package sim

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// wish is something that a user changes at a time, one after the other.
type wish struct {
	at     time.Duration
	change wire.Change
}

// drawScheduling draws how a cluster shares its slots, every scheduler as often.
func drawScheduling(seed uint64, rnd *rand.Rand) wire.Scheduling {
	names, metrics := menu.Names(), scheduler.Metrics()
	return wire.Scheduling{
		Scheduler: names[seed%uint64(len(names))],
		Metric:    metrics[rnd.IntN(len(metrics))].String(),
		Delay:     drawDelay(rnd),
	}
}

func drawDelay(rnd *rand.Rand) string {
	rules := []locality.Rule{
		{}, {Kind: locality.Fixed, Delay: time.Second}, {Kind: locality.Fixed, Delay: 3 * time.Second}, {Kind: locality.Paper}, {Kind: locality.Dynamic},
	}
	return rules[rnd.IntN(len(rules))].String()
}

// drawTerms draws what is asked for at first. Pool etl is in every table.
func drawTerms(rnd *rand.Rand) wire.Terms {
	t := wire.Terms{Priority: wire.VeryLow + wire.Priority(rnd.IntN(5)), Weight: float64(rnd.IntN(3))}
	if rnd.IntN(2) == 0 {
		t.Deadline = time.Duration(rnd.Int64N(int64(time.Minute))) - 10*time.Second
	}
	if rnd.IntN(3) == 0 {
		t.SLA = []wire.SLAStep{{After: 10 * time.Second, Cost: 1}, {After: time.Minute, Cost: 5}}
	}
	if rnd.IntN(2) == 0 {
		t.Batch = "nightly"
	}
	if rnd.IntN(2) == 0 {
		t.Pool = "etl"
	}
	return t
}

// drawWishes draws what is changed after the submission. Whoever is suspended is
// resumed before the storm is over.
func drawWishes(rnd *rand.Rand, from time.Duration) []wish {
	var all []wish
	for at := from; rnd.IntN(3) > 0; {
		at = min(at+time.Duration(rnd.Int64N(int64(8*time.Second))), stormy)
		x := wish{at: at}
		if rnd.IntN(3) == 0 {
			yes, no := true, false
			x.change.Suspended = &yes
			at = min(at+time.Duration(rnd.Int64N(int64(8*time.Second))), stormy)
			all = append(all, x, wish{at, wire.Change{Suspended: &no}})
			continue
		}
		t := drawTerms(rnd)
		switch rnd.IntN(4) {
		case 0:
			x.change.Priority, x.change.Weight = &t.Priority, &t.Weight
		case 1:
			x.change.Deadline = &t.Deadline
		case 2:
			x.change.SLA, x.change.Batch = &t.SLA, &t.Batch
		case 3:
			pools := []string{"etl", "adhoc", "default"}
			x.change.Pool = &pools[rnd.IntN(len(pools))]
		}
		all = append(all, x)
	}
	return all
}

// wish asks for the changes that are left, each once the one before is answered.
func (c *client) wish(left []wish) {
	w := c.w
	if len(left) == 0 {
		return
	}
	w.after(max(left[0].at-w.now, 0), func() {
		if len(c.ids) == 0 {
			left[0].at = w.now + time.Second
			c.wish(left)
			return
		}
		c.change(left[0].change, c.ids, func() { c.wish(left[1:]) })
	})
}

// change asks for one of the first of the jobs that has not ended.
func (c *client) change(x wire.Change, jobs []wire.JobID, done func()) {
	w := c.w
	c.wishing = true
	c.ask(func(t core.Token) core.Event { return core.Change{Token: t, Job: jobs[0], Change: x} }, func(r core.Reply) {
		w.note("the change of %v is answered %v", jobs[0], r.Err)
		switch {
		case r.Err == nil:
			c.granted(x)
		case errors.Is(r.Err, admission.ErrJobEnded) && len(jobs) > 1:
			c.change(x, jobs[1:], done)
			return
		case errors.Is(r.Err, admission.ErrJobEnded):
			return // perhaps after it was changed, without an answer
		case errors.Is(r.Err, admission.ErrBadSettings) && x.Pool != nil:
		default:
			w.fail("V12: the change of %v is refused: %v", jobs[0], r.Err)
		}
		c.wishing = false
		done()
	})
}

// granted notes what the terms are from now on.
func (c *client) granted(x wire.Change) {
	if x.Priority != nil {
		c.terms.Priority, c.terms.Weight = *x.Priority, *x.Weight
	}
	if x.SLA != nil {
		c.terms.SLA, c.terms.Batch = *x.SLA, *x.Batch
	}
	if x.Pool != nil {
		c.terms.Pool = *x.Pool
	}
}

// operate changes how slots are shared, now and then.
func (w *world) operate(rnd *rand.Rand, left int) {
	if left == 0 {
		return
	}
	w.after(time.Duration(rnd.Int64N(int64(stormy/3))), func() {
		wanted := drawScheduling(rnd.Uint64(), rnd)
		switch rnd.IntN(3) {
		case 0:
			wanted.Scheduler = ""
		case 1:
			wanted.Delay = ""
		}
		if w.calm {
			return
		}
		w.operating = true
		(&client{w: w}).ask(func(t core.Token) core.Event { return core.Schedule{Token: t, Scheduling: wanted} }, func(r core.Reply) {
			w.operating = false
			w.note("the change to %v is answered %v", wanted, r.Err)
			if r.Err != nil {
				w.fail("V12: the change to %v is refused: %v", wanted, r.Err)
			}
			w.asked = wanted.Over(w.asked)
			w.operate(rnd, left-1)
		})
	})
}

// poolsEvery is how often a job tracker looks at the allocation file.
const poolsEvery = 3 * time.Second

var errPools = errors.New("pools.xml:7: simulated")

// drawPools draws what the allocation file holds from when on.
func (w *world) drawPools(rnd *rand.Rand) {
	w.allocation = core.Pools{Err: errPools}
	for range rnd.IntN(4) {
		p := core.Pools{Table: drawTable(rnd)}
		if rnd.IntN(5) == 0 {
			p = core.Pools{Err: errPools}
		}
		w.after(time.Duration(rnd.Int64N(int64(stormy))), func() {
			w.note("the pools change: %+v", p)
			w.allocation = p
		})
	}
}

func drawTable(rnd *rand.Rand) pool.Table {
	draw := func(name string) pool.Pool {
		p := pool.Pool{Name: name, Max: [2]int{pool.Unlimited, pool.Unlimited}, MaxRunning: pool.Unlimited, Weight: float64(rnd.IntN(3))}
		for i := range p.Max {
			if rnd.IntN(2) == 0 {
				p.Max[i] = 1 + rnd.IntN(3)
			}
			if rnd.IntN(2) == 0 {
				p.Min[i] = 1
			}
		}
		if rnd.IntN(3) == 0 {
			p.MaxRunning = 1 + rnd.IntN(2)
		}
		return p
	}
	t := pool.Table{From: "pools.xml"}
	for _, name := range []string{"adhoc", "default"} {
		if rnd.IntN(2) == 0 {
			t.Pools = append(t.Pools, draw(name))
		}
	}
	t.Pools = append(t.Pools, draw("etl"))
	return t
}

// lookAtPools tells the core what the allocation file holds, again and again.
func (n *jobTracker) lookAtPools() {
	n.later(poolsEvery, func() {
		n.step(n.w.allocation)
		if n.core != nil {
			n.lookAtPools()
		}
	})
}

// checkLaunch checks that a job tracker may launch a task by what its users wish.
func (w *world) checkLaunch(n *jobTracker, id wire.AttemptID) {
	s, ok := n.core.Status(id.Task.Job)
	if !ok || !id.Task.Kind.Slotted() {
		return
	}
	if s.Held {
		w.fail("V13: %s launches %v of a suspended job", n.name, id)
	}
	if c, i := w.job(id.Task.Job); id.Task.Kind == wire.Reduce && c.sub.Plan.Jobs[i].Properties[splitProperty] == "false" {
		return // it had its slot while its partition was gathered, perhaps before its pool had too few
	}
	name := s.Terms.Pool
	if name == "" {
		name = wire.DefaultPool
	}
	phase := pool.PhaseOf(id.Task.Kind)
	for _, p := range n.core.Cluster(n.clock()).InPools {
		if p.Name == name && p.Max[phase] != pool.Unlimited && p.Running[phase] > p.Max[phase] {
			w.fail("V13: %s launches %v: pool %s has %d %vs of at most %d", n.name, id, name, p.Running[phase], id.Task.Kind, p.Max[phase])
		}
	}
}

// checkWishes checks in the end that all is as it was last wished.
func (w *world) checkWishes() {
	for _, n := range w.jts {
		if n.core.Leads() {
			w.checkAdministered(n.core.Cluster(n.clock()))
		}
	}
	for _, c := range w.clients {
		if c.wishing {
			continue
		}
		for _, id := range c.ids {
			if s, ok := w.status(id); ok {
				w.checkTerms(id, s.Terms, c.terms)
			}
		}
	}
}

// checkAdministered checks what an administrator sets: policy, drains and pools.
func (w *world) checkAdministered(s wire.ClusterStatus) {
	if want := w.asked.Over(w.scheduling); !w.operating && s.Scheduling != want {
		w.fail("V12: slots are shared by %v, not %v", s.Scheduling, want)
	}
	if len(s.Drains) > 0 && w.draining == 0 {
		w.fail("V12: %+v are to drain, and nobody is", s.Drains)
	}
	inForce := make(map[string]wire.PoolStatus)
	for _, p := range s.InPools {
		inForce[p.Name] = p
	}
	for _, p := range w.allocation.Table.Pools {
		if got := inForce[p.Name]; got.Min != p.Min || got.Max != p.Max || got.MaxJobs != p.MaxRunning {
			w.fail("V12: pool %+v is not in force, but %+v", p, got)
		}
	}
}

// checkTerms compares a job's terms, but for the deadline: a client gives it as a span from
// the moment at which it asks.
func (w *world) checkTerms(id wire.JobID, got, want wire.Terms) {
	got.Deadline, want.Deadline = 0, 0
	if len(got.SLA) == 0 && len(want.SLA) == 0 {
		got.SLA, want.SLA = nil, nil
	}
	if !reflect.DeepEqual(got, want) {
		w.fail("V12: the terms of %v are %+v, not %+v", id, got, want)
	}
}

// answer is a policy's answer; that there is one is checked.
func (w *world) answer(c core.Allocate) scheduler.Plan {
	policy, err := menu.Policy(c.Policy)
	w.must(err)
	plan, err := policy.Plan(c.Snapshot)
	if err == nil {
		err = plan.Validate(c.Snapshot)
	}
	if err == nil && c.Policy != "fifo" {
		err = plan.KeepsMinima(c.Snapshot)
	}
	if err != nil {
		w.fail("V14: %s answers %+v with %v", c.Policy, c.Snapshot, err)
	}
	if !slices.Contains(w.policies, c.Policy) {
		w.policies = append(w.policies, c.Policy)
		w.note("policy %s has answered", c.Policy)
	}
	return plan
}
