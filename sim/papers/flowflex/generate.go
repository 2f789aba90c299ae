package flowflex

import (
	"math/rand/v2"
	"strconv"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/flowflex"
)

// slots is the number of slots in the paper's cluster (section 5.1).
const slots = 25

// reading is an interpretation of section 5.1's sampling. The paper gives the counts, the
// precedence rule, the weights and "at most 5 steps". It leaves open the odds of big flows and
// of tall and wide jobs. It also leaves open whether tall and wide are properties of a job or
// of a whole flow.
type reading struct {
	name      string
	tall      float64 // odds that a job can use all slots
	tallFlows bool    // all jobs of a flow are tall, or none
	wideFlows bool    // all jobs of a flow are wide, or none
}

// In every reading jobs are wide and flows are big with these odds. Both make jobs sizeFactor
// times as long.
const (
	wideOdds   = 0.5
	bigOdds    = 0.5
	sizeFactor = 10
)

// chosenReading makes tall and wide properties of jobs, as earlier prototypes of the simulation
// did. Its odds are in the middle of the odds of these prototypes.
func chosenReading() reading { return reading{name: "tall 0.6, by job", tall: 0.6} }

// otherReadings lists the other readings in the report, which show how figures depend on the
// choice.
func otherReadings() []reading {
	return []reading{
		{name: "tall 0.5, by job", tall: 0.5},
		{name: "tall 0.7, by job", tall: 0.7},
		{name: "wide by flow", tall: 0.6, wideFlows: true},
		{name: "tall and wide by flow", tall: 0.6, tallFlows: true, wideFlows: true},
	}
}

// workload is the flows of one experiment, with their goals.
type workload struct {
	flows []flowflex.Flow // without costs
	goals []goals
}

// goals has the goals of a flow for all metrics.
type goals struct {
	volume   float64 // slot-seconds
	weight   float64
	deadline float64   // seconds
	steps    []float64 // of the SLA, seconds
	heights  []float64 // cost added by each step
}

func (rd reading) workload(r *rand.Rand) workload {
	w := workload{}
	for i := range between(r, 5, 20) {
		f := rd.dag(r, between(r, 2, 20))
		f.ID = "flow " + strconv.Itoa(i+1)
		w.flows = append(w.flows, f)
		w.goals = append(w.goals, drawGoals(r, f))
	}
	return w
}

// dag draws a flow, with jobs in topological order. Each job follows each earlier one with odds
// of a half, and the last job follows all jobs without successor.
func (rd reading) dag(r *rand.Rand, jobs int) flowflex.Flow {
	f := flowflex.Flow{Jobs: make([]flowflex.Job, jobs)}
	followed := make([]bool, jobs)
	scale := 1.0
	if r.Float64() < bigOdds {
		scale = sizeFactor
	}
	allTall, allWide := r.Float64() < rd.tall, r.Float64() < wideOdds
	for k := range f.Jobs {
		tall, wide := r.Float64() < rd.tall, r.Float64() < wideOdds
		j := &f.Jobs[k]
		j.ID = "job " + strconv.Itoa(k+1)
		if j.Max = slots; !(tall && !rd.tallFlows || allTall && rd.tallFlows) {
			j.Max = between(r, 1, slots)
		}
		seconds := scale * (1 + 9*r.Float64())
		if wide && !rd.wideFlows || allWide && rd.wideFlows {
			seconds *= sizeFactor
		}
		j.Work = seconds * float64(j.Max)
		for before := range k {
			if r.Float64() < 0.5 || k == jobs-1 && !followed[before] {
				j.After = append(j.After, before)
				followed[before] = true
			}
		}
	}
	return f
}

// drawGoals draws goals that the flow can meet alone. The deadline is one to two times Q. The
// steps of the SLA begin at Q and have gaps of up to Q.
func drawGoals(r *rand.Rand, f flowflex.Flow) goals {
	alone, volume := measure(f)
	g := goals{volume: volume, weight: 1 + 9*r.Float64()}
	g.deadline = alone * (1 + r.Float64())
	at := alone
	for range between(r, 1, 5) {
		at += alone * r.Float64()
		g.steps = append(g.steps, at)
		g.heights = append(g.heights, 1+9*r.Float64())
	}
	return g
}

// measure returns a flow's Q, in seconds, and volume.
func measure(f flowflex.Flow) (alone, volume float64) {
	ends := make([]float64, len(f.Jobs))
	for k, j := range f.Jobs {
		for _, before := range j.After {
			ends[k] = max(ends[k], ends[before])
		}
		ends[k] += j.Work / float64(j.Max)
		alone = max(alone, ends[k])
		volume += j.Work
	}
	return max(alone, volume/slots), volume
}

// problem adds the metric's costs to the flows. Stretch divides by the volume, as in section
// 5.1. Unweighted metrics have weights of 1 and steps of cost 1.
func (w workload) problem(m scheduler.Metric) flowflex.Problem {
	p := flowflex.Problem{Slots: slots, Flows: make([]flowflex.Flow, len(w.flows))}
	copy(p.Flows, w.flows)
	for i, g := range w.goals {
		c := scheduler.Cost{Penalty: m.Penalty, Weight: 1, Due: g.deadline}
		if m.Weighted {
			c.Weight = g.weight
		}
		switch m.Penalty {
		case scheduler.Stretch:
			c.Penalty, c.Weight = scheduler.Response, 1/g.volume
		case scheduler.SLA:
			c.Weight = 1
			c.Levels = g.levels(m.Weighted)
		}
		p.Flows[i].Cost = c
	}
	return p
}

func (g goals) levels(weighted bool) []scheduler.Level {
	levels, cost := make([]scheduler.Level, len(g.steps)), 0.0
	for k, at := range g.steps {
		if weighted {
			cost += g.heights[k]
		} else {
			cost++
		}
		levels[k] = scheduler.Level{Due: at, Cost: cost}
	}
	return levels
}

// between draws a whole number from low to high, both included.
func between(r *rand.Rand, low, high int) int { return low + r.IntN(high-low+1) }
