package flowflex

import (
	"math"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// The model takes slots back at any time; a running system waits until tasks end. While
// one job of a flow closes and the next is set up, or a job that stands alone is, its slots
// would go to the flows after it, and where their tasks are long, that flow would find them
// taken. So slots are kept free for it, for r seconds until it comes, from tasks of d
// seconds, if by what flows cost it is worse for this one to wait for d - r than for all
// those after it to end by r later.

// coming is the next job that a flow is about to have, or several at once.
type coming struct {
	rank  int     // of the flow in the schedule's order
	in    float64 // seconds
	slots int     // that they can use
	spare int     // others that will be free by then
	costs float64 // to the flows after it, if slots are kept free until then
}

// keep is how many slots each job may have at most, and for how many seconds; 0: nothing
// is kept free. In map slots only: reduces come when maps have ended, one by one. For
// sums only: a flow that does not cost most loses nothing that can be seen. Not where pools
// bound jobs: what comes may be in one that has all it may.
// O(F (F + J)) for the F flows of which something is about to come.
func (g *graphOf) keep(s scheduler.Snapshot, schedule *Schedule) (most []int, seconds float64) {
	most = make([]int, len(s.Jobs))
	for i, j := range s.Jobs {
		most[i] = j.Max
	}
	if s.Phase != wire.Map || s.Metric.Aggregate == scheduler.Max || len(s.Pools) > 0 {
		return most, 0
	}
	all := g.coming(s, schedule)
	for rank, i := range schedule.Order {
		for _, at := range g.places[i] {
			if at < 0 {
				continue
			}
			for n := range all {
				c := &all[n]
				if c.rank >= rank {
					break
				}
				j := &s.Jobs[at]
				if !g.worse(c, taskOf(j), schedule) {
					continue
				}
				if may := max(j.Min, j.Running+c.spare); may < most[at] {
					most[at], seconds = may, max(seconds, c.in)
				}
				c.spare = max(0, c.spare-max(0, most[at]-j.Running))
			}
		}
	}
	return most, seconds
}

// coming lists the flows of which something is about to come, in the schedule's order.
func (g *graphOf) coming(s scheduler.Snapshot, schedule *Schedule) []coming {
	longest := 0.0
	for i := range s.Jobs {
		longest = max(longest, taskOf(&s.Jobs[i]))
	}
	var all []coming
	for rank, i := range schedule.Order {
		c := coming{rank: rank, in: longest}
		for k, at := range g.places[i] {
			switch in := g.comesIn(i, k); {
			case at != toCome || in <= 0 || in >= longest || in > c.in:
			case in < c.in:
				c.in, c.slots = in, g.flows[i].Jobs[k].Max
			default: // both at once
				c.slots += g.flows[i].Jobs[k].Max
			}
		}
		if c.slots == 0 {
			continue
		}
		c.spare = c.spared(s)
		for _, after := range schedule.Order[rank+1:] {
			c.costs += g.delay(after, c.in, schedule)
		}
		all = append(all, c)
	}
	return all
}

// comesIn is the seconds until a job can have slots, if none that it comes after has any
// use for them; else it is open when it will come.
func (g *graphOf) comesIn(i, k int) float64 {
	in := 0.0
	for _, before := range g.flows[i].Jobs[k].After {
		if g.places[i][before] != elsewhere {
			return math.Inf(1)
		}
		in = max(in, g.comesIn(i, before)+g.flows[i].Jobs[before].Work)
	}
	return in
}

// spared is how many slots it will not need, if no more long tasks begin: as many of
// those that run are young as are old.
func (c *coming) spared(s scheduler.Snapshot) int {
	free := float64(s.Slots)
	for i := range s.Jobs {
		j := &s.Jobs[i]
		free -= float64(j.Running) * max(0, 1-c.in/taskOf(j))
	}
	return max(0, int(free)-c.slots)
}

// worse says whether it is worse for what comes to find slots taken by tasks that long
// than for the others to do without them until then.
func (g *graphOf) worse(c *coming, task float64, schedule *Schedule) bool {
	return task > c.in && g.delay(schedule.Order[c.rank], task-c.in, schedule) > c.costs
}

// delay is what it costs if a flow ends so much later than by the schedule.
func (g *graphOf) delay(i int, by float64, schedule *Schedule) float64 {
	end, cost := schedule.Completion[i], &g.flows[i].Cost
	return cost.At(end+by) - cost.At(end)
}

// taskOf is the seconds that a task of a job takes; those that run are half done.
func taskOf(j *scheduler.Job) float64 {
	return j.Work / (float64(j.Tasks) - float64(min(j.Running, j.Tasks))/2)
}
