package sim

import (
	"encoding/json"
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

// drawScheduling draws how a cluster shares its slots. Equally many seeds have each scheduler.
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
	s := wire.Settings{Priority: wire.VeryLow + wire.Priority(rnd.IntN(5)), Weight: float64(rnd.IntN(3))}
	if rnd.IntN(2) == 0 {
		s.Deadline = time.Duration(rnd.Int64N(int64(time.Minute))) - 10*time.Second
	}
	if rnd.IntN(3) == 0 {
		s.SLA = []wire.SLAStep{{After: 10 * time.Second, Cost: 1}, {After: time.Minute, Cost: 5}}
	}
	if rnd.IntN(2) == 0 {
		s.Batch = "nightly"
	}
	if rnd.IntN(2) == 0 {
		s.Pool = "etl"
	}
	return s
}

// drawChanges draws changes after the submission. A suspended job is resumed before the end of
// the storm.
func drawChanges(rnd *rand.Rand, from time.Duration) []change {
	var all []change
	for at := from; rnd.IntN(3) > 0; {
		at = min(at+time.Duration(rnd.Int64N(int64(8*time.Second))), stormTime)
		x := change{at: at}
		if rnd.IntN(3) == 0 {
			yes, no := true, false
			x.change.Suspended = &yes
			x.change.TakeBack = at%2 == 0
			at = min(at+time.Duration(rnd.Int64N(int64(8*time.Second))), stormTime)
			all = append(all, x, change{at, wire.Change{Suspended: &no}})
			continue
		}
		s := drawSettings(rnd)
		switch rnd.IntN(4) {
		case 0:
			x.change.Priority, x.change.Weight = &s.Priority, &s.Weight
		case 1:
			x.change.Deadline = &s.Deadline
		case 2:
			x.change.SLA, x.change.Batch = &s.SLA, &s.Batch
		case 3:
			pools := append([]string{"etl", "adhoc", "default"}, nestedPools...)
			x.change.Pool = &pools[rnd.IntN(len(pools))]
		}
		all = append(all, x)
	}
	return all
}

// requestChanges requests changes, each after the answer to the previous one.
func (c *client) requestChanges(changes []change) {
	w := c.w
	if len(changes) == 0 {
		return
	}
	w.after(max(changes[0].at-w.now, 0), func() {
		if len(c.ids) == 0 {
			changes[0].at = w.now + time.Second
			c.requestChanges(changes)
			return
		}
		c.requestChange(changes[0].change, c.ids, 0, func() { c.requestChanges(changes[1:]) })
	})
}

// requestChange requests a change of the first job that has not ended. An earlier request for it may have
// had no answer.
func (c *client) requestChange(x wire.Change, jobs []wire.JobID, requests int, done func()) {
	w := c.w
	c.changePending = true
	c.request(func(t core.Token) core.Event {
		requests++
		return core.Change{Token: t, Job: jobs[0], Change: x}
	}, func(r core.Reply) {
		w.note("the change of %v is answered %v", jobs[0], r.Err)
		switch {
		case r.Err == nil:
			c.recordChange(x)
		case errors.Is(r.Err, admission.ErrJobEnded) && len(jobs) > 1:
			c.requestChange(x, jobs[1:], requests, done)
			return
		case errors.Is(r.Err, admission.ErrJobEnded), errors.Is(r.Err, admission.ErrBadSettings) && requests > 1:
			return // the change may have been made without an answer
		case errors.Is(r.Err, admission.ErrBadSettings) && x.Pool != nil:
		default:
			w.fail("V12: the change of %v is refused: %v", jobs[0], r.Err)
		}
		c.changePending = false
		done()
	})
}

// recordChange records the settings after an accepted change.
func (c *client) recordChange(x wire.Change) {
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

// changeScheduling changes how slots are shared, a number of times.
func (w *world) changeScheduling(rnd *rand.Rand, times int) {
	if times == 0 {
		return
	}
	w.after(time.Duration(rnd.Int64N(int64(stormTime/3))), func() {
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
		w.changePending = true
		(&client{w: w}).request(func(t core.Token) core.Event { return core.Schedule{Token: t, Scheduling: wanted} }, func(r core.Reply) {
			w.changePending = false
			w.note("the change to %v is answered %v", wanted, r.Err)
			if r.Err != nil {
				w.fail("V12: the change to %v is refused: %v", wanted, r.Err)
			}
			w.requested = wanted.WithDefaults(w.requested)
			w.changeScheduling(rnd, times-1)
		})
	})
}

// poolsInterval is the interval at which a job tracker reads the allocation file.
const poolsInterval = 3 * time.Second

var errPools = errors.New("pools.xml:7: simulated")

// drawPools draws versions of the allocation file, and when each replaces the previous one. trees draws
// pools in pools, and limits of users.
func (w *world) drawPools(rnd, trees *rand.Rand) {
	w.allocation = core.PoolsRead{Err: errPools}
	for range rnd.IntN(4) {
		p := core.PoolsRead{Table: drawTable(rnd)}
		if !w.lasting && trees.IntN(2) == 0 {
			drawTree(trees, &p.Table, func(name string) pool.Pool { return drawPool(trees, name) })
		}
		if w.uncapped {
			for i := range p.Table.Pools {
				p.Table.Pools[i].Max = [2]int{pool.Unlimited, pool.Unlimited}
			}
		}
		if rnd.IntN(5) == 0 {
			p = core.PoolsRead{Err: errPools}
		}
		w.after(time.Duration(rnd.Int64N(int64(stormTime))), func() {
			table, err := json.Marshal(p.Table)
			w.must(err)
			w.note("the pools change: %s %v", table, p.Err)
			w.allocation = p
		})
	}
}

func drawPool(rnd *rand.Rand, name string) pool.Pool {
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

func drawTable(rnd *rand.Rand) pool.Table {
	draw := func(name string) pool.Pool { return drawPool(rnd, name) }
	t := pool.Table{From: "pools.xml"}
	for _, name := range []string{"adhoc", "default"} {
		if rnd.IntN(2) == 0 {
			t.Pools = append(t.Pools, draw(name))
		}
	}
	t.Pools = append(t.Pools, draw("etl"))
	if rnd.IntN(2) == 0 {
		for i := range t.Pools {
			t.Pools[i].Preemption = drawPreemption(rnd)
		}
	}
	return t
}

// drawPreemption draws short timeouts: attempts take seconds.
func drawPreemption(rnd *rand.Rand) *pool.Preemption {
	draw := func() time.Duration { return time.Duration(rnd.IntN(3)) * time.Second }
	return &pool.Preemption{MinTimeout: draw(), FairTimeout: draw(), Threshold: rnd.Float64(), Spared: rnd.IntN(4) == 0}
}

// pollPools gives the core the allocation file at every poolsInterval.
func (n *jobTracker) pollPools() {
	n.later(poolsInterval, func() {
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
		return // it has had its slot since it gathers, perhaps since before the limit
	}
	if !w.shape.administered {
		return
	}
	w.book.limits.checkLaunch(w, n, id)
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

// checkSettings checks that the final settings are as the last accepted changes set them.
func (w *world) checkSettings() {
	for _, n := range w.jts {
		if n.core.IsLeader() {
			w.checkAdministered(n.core.Cluster(n.clock()))
		}
	}
	for _, c := range w.clients {
		if c.changePending {
			continue
		}
		for _, id := range c.ids {
			if s, ok := w.status(id); ok {
				w.checkJobSettings(id, s.Settings, c.settings)
			}
		}
	}
}

// checkAdministered checks the settings of administrators: scheduling, drains and pools.
func (w *world) checkAdministered(s wire.ClusterStatus) {
	if want := w.requested.WithDefaults(w.scheduling); !w.changePending && s.Scheduling != want {
		w.fail("V12: slots are shared by %v, not %v", s.Scheduling, want)
	}
	if len(s.Drains) > 0 && w.pendingDrains == 0 {
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
// duration after its request.
func (w *world) checkJobSettings(id wire.JobID, got, want wire.Settings) {
	got.Deadline, want.Deadline = 0, 0
	if len(got.SLA) == 0 && len(want.SLA) == 0 {
		got.SLA, want.SLA = nil, nil
	}
	if !reflect.DeepEqual(got, want) {
		w.fail("V12: the settings of %v are %+v, not %+v", id, got, want)
	}
}

// allocate runs a policy and checks its plan. It returns the time that this takes.
func (w *world) allocate(c core.Allocate) (scheduler.Plan, time.Duration) {
	policy, err := menu.Policy(c.Policy)
	w.must(err)
	jobs := len(c.Snapshot.Jobs)
	u := Use{Tracker: "job", Kind: "plan of " + c.Policy, Sizes: [5]int{1, jobs, jobs * jobs, len(c.Snapshot.Transfers), len(w.tts)}}
	begin := w.stepping.meter.begin()
	plan, err := policy.Plan(c.Snapshot)
	w.stepping.meter.report(u, w.stepping.meter.since(begin))
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
	return plan, u.Cost()
}
