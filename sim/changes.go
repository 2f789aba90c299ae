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

// change is a user's change of a job's settings at a time.
type change struct {
	at     time.Duration
	change wire.Change
}

// drawScheduling draws how a cluster shares its slots, with equal numbers of every scheduler.
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

// drawSettings draws the settings of a submission. Pool etl is in every table.
func drawSettings(rnd *rand.Rand) wire.Settings {
	t := wire.Settings{Priority: wire.VeryLow + wire.Priority(rnd.IntN(5)), Weight: float64(rnd.IntN(3))}
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

// drawChanges draws changes after the submission. A suspended job is resumed before the end of
// the storm.
func drawChanges(rnd *rand.Rand, from time.Duration) []change {
	var all []change
	for at := from; rnd.IntN(3) > 0; {
		at = min(at+time.Duration(rnd.Int64N(int64(8*time.Second))), stormy)
		x := change{at: at}
		if rnd.IntN(3) == 0 {
			yes, no := true, false
			x.change.Suspended = &yes
			at = min(at+time.Duration(rnd.Int64N(int64(8*time.Second))), stormy)
			all = append(all, x, change{at, wire.Change{Suspended: &no}})
			continue
		}
		t := drawSettings(rnd)
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

// requestAll requests the remaining changes, each after the answer to the previous one.
func (c *client) requestAll(left []change) {
	w := c.w
	if len(left) == 0 {
		return
	}
	w.after(max(left[0].at-w.now, 0), func() {
		if len(c.ids) == 0 {
			left[0].at = w.now + time.Second
			c.requestAll(left)
			return
		}
		c.request(left[0].change, c.ids, func() { c.requestAll(left[1:]) })
	})
}

// request asks for a change of the first job that has not ended.
func (c *client) request(x wire.Change, jobs []wire.JobID, done func()) {
	w := c.w
	c.changing = true
	c.ask(func(t core.Token) core.Event { return core.Change{Token: t, Job: jobs[0], Change: x} }, func(r core.Reply) {
		w.note("the change of %v is answered %v", jobs[0], r.Err)
		switch {
		case r.Err == nil:
			c.granted(x)
		case errors.Is(r.Err, admission.ErrJobEnded) && len(jobs) > 1:
			c.request(x, jobs[1:], done)
			return
		case errors.Is(r.Err, admission.ErrJobEnded):
			return // the change may have been made without an answer
		case errors.Is(r.Err, admission.ErrBadSettings) && x.Pool != nil:
		default:
			w.fail("V12: the change of %v is refused: %v", jobs[0], r.Err)
		}
		c.changing = false
		done()
	})
}

// granted records the settings from now on.
func (c *client) granted(x wire.Change) {
	if x.Priority != nil {
		c.settings.Priority, c.settings.Weight = *x.Priority, *x.Weight
	}
	if x.SLA != nil {
		c.settings.SLA, c.settings.Batch = *x.SLA, *x.Batch
	}
	if x.Pool != nil {
		c.settings.Pool = *x.Pool
	}
}

// operate changes how slots are shared, from time to time.
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
		w.changing = true
		(&client{w: w}).ask(func(t core.Token) core.Event { return core.Schedule{Token: t, Scheduling: wanted} }, func(r core.Reply) {
			w.changing = false
			w.note("the change to %v is answered %v", wanted, r.Err)
			if r.Err != nil {
				w.fail("V12: the change to %v is refused: %v", wanted, r.Err)
			}
			w.requested = wanted.Over(w.requested)
			w.operate(rnd, left-1)
		})
	})
}

// poolsEvery is the interval at which a job tracker reads the allocation file.
const poolsEvery = 3 * time.Second

var errPools = errors.New("pools.xml:7: simulated")

// drawPools draws versions of the allocation file with their times.
func (w *world) drawPools(rnd *rand.Rand) {
	w.allocation = core.PoolsRead{Err: errPools}
	for range rnd.IntN(4) {
		p := core.PoolsRead{Table: drawTable(rnd)}
		if rnd.IntN(5) == 0 {
			p = core.PoolsRead{Err: errPools}
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

// pollPools gives the core the allocation file, again and again.
func (n *jobTracker) pollPools() {
	n.later(poolsEvery, func() {
		n.step(n.w.allocation)
		if n.core != nil {
			n.pollPools()
		}
	})
}

// checkLaunch checks that suspensions and pool limits allow a launch.
func (w *world) checkLaunch(n *jobTracker, id wire.AttemptID) {
	s, ok := n.core.Status(id.Task.Job)
	if !ok || !id.Task.Kind.Slotted() {
		return
	}
	if s.Suspended {
		w.fail("V13: %s launches %v of a suspended job", n.name, id)
	}
	if c, i := w.job(id.Task.Job); id.Task.Kind == wire.Reduce && c.sub.Plan.Jobs[i].Properties[splitProperty] == "false" {
		return // it had its slot while gathering, perhaps before its pool was reduced
	}
	name := s.Settings.Pool
	if name == "" {
		name = wire.DefaultPool
	}
	phase := pool.PhaseIndex(id.Task.Kind)
	for _, p := range n.core.Cluster(n.clock()).InPools {
		if p.Name == name && p.Max[phase] != pool.Unlimited && p.Running[phase] > p.Max[phase] {
			w.fail("V13: %s launches %v: pool %s has %d %vs of at most %d", n.name, id, name, p.Running[phase], id.Task.Kind, p.Max[phase])
		}
	}
}

// checkSettings checks that the final settings are those granted last.
func (w *world) checkSettings() {
	for _, n := range w.jts {
		if n.core.IsLeader() {
			w.checkAdministered(n.core.Cluster(n.clock()))
		}
	}
	for _, c := range w.clients {
		if c.changing {
			continue
		}
		for _, id := range c.ids {
			if s, ok := w.status(id); ok {
				w.checkJobSettings(id, s.Settings, c.settings)
			}
		}
	}
}

// checkAdministered checks the settings of administrators: policy, drains and pools.
func (w *world) checkAdministered(s wire.ClusterStatus) {
	if want := w.requested.Over(w.scheduling); !w.changing && s.Scheduling != want {
		w.fail("V12: slots are shared by %v, not %v", s.Scheduling, want)
	}
	if len(s.Drains) > 0 && w.draining == 0 {
		w.fail("V12: %+v are draining without a request", s.Drains)
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

// checkJobSettings compares a job's settings except the deadline, which a client gives as a
// span from its request.
func (w *world) checkJobSettings(id wire.JobID, got, want wire.Settings) {
	got.Deadline, want.Deadline = 0, 0
	if len(got.SLA) == 0 && len(want.SLA) == 0 {
		got.SLA, want.SLA = nil, nil
	}
	if !reflect.DeepEqual(got, want) {
		w.fail("V12: the settings of %v are %+v, not %+v", id, got, want)
	}
}

// answer is a policy's answer, which must be valid.
func (w *world) answer(c core.Allocate) scheduler.Plan {
	policy, err := menu.Policy(c.Policy)
	w.must(err)
	plan, err := policy.Plan(c.Snapshot)
	if err == nil {
		err = plan.Validate(c.Snapshot)
	}
	if err == nil && c.Policy != "fifo" {
		err = plan.CheckMinima(c.Snapshot)
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
