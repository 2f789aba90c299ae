package flex

import (
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// targets is Moore and Hodgson's rule for tardy jobs, with MPS as the test whether
// deadlines can be kept (the classical test is off by up to 5 times: minima go on
// advancing the jobs that were given up), and generalised to SLA steps: every job
// aims at its first step; as long as one misses its target, one of those that are
// served up to it is content with its next step.
type targets struct {
	p     *Problem
	k     *packer
	steps [][]scheduler.Level // by job: the cost of missing each due time
	aim   []int               // by job: the step it aims at; len(steps[j]): none
	due   []float64           // by job: of the step aimed at
	order []int
}

func newTargets(p *Problem, k *packer) *targets {
	t := &targets{
		p: p, k: k, steps: make([][]scheduler.Level, len(p.Jobs)), aim: make([]int, len(p.Jobs)),
		due: make([]float64, len(p.Jobs)), order: sorted(p.keys(func(j *Job) float64 { return j.Work })),
	}
	for j := range p.Jobs {
		t.steps[j] = steps(&p.Jobs[j].Cost)
	}
	return t
}

// miss is what job j's cost rises by if it gives up its target.
func (t *targets) miss(j int) float64 {
	before := 0.0
	if t.aim[j] > 0 {
		before = t.steps[j][t.aim[j]-1].Cost
	}
	return t.steps[j][t.aim[j]].Cost - before
}

func (t *targets) aimAt(j, step int) {
	t.aim[j] = step
	t.due[j] = math.Inf(1)
	if step < len(t.steps[j]) {
		t.due[j] = t.steps[j][step].Due
	}
}

// late is the first place in the order whose job misses its target, -1 if none does.
func (t *targets) late() int {
	sortBy(t.order, t.due)
	ends := t.k.pack(t.order, nil)
	for i, j := range t.order {
		if due := t.due[j]; ends[j] > due+1e-9*max(1, math.Abs(due)) {
			return i
		}
	}
	return -1
}

// rule says how dear it is to take slots from a job: the least gives up first.
type rule func(t *targets, j int) float64

// rules are tried one after the other.
var rules = []rule{
	func(t *targets, j int) float64 { return -t.p.Jobs[j].Work },
	func(t *targets, j int) float64 { return t.miss(j) / max(t.slack(j), 1e-9) },
	func(t *targets, j int) float64 { return t.miss(j) },
	func(t *targets, j int) float64 { return -t.slack(j) },
}

// slack is the work that job j needs from the slack to be in time.
func (t *targets) slack(j int) float64 {
	job := &t.p.Jobs[j]
	return job.Work - float64(job.Min)*max(0, t.due[j])
}

// relax finds targets that can be kept, by the rule, and then takes back what was
// given up without need, the dearest first. Several jobs give up at a time where
// there are many, so that about relaxRounds orderings are packed per step.
func (t *targets) relax(r rule, budget *int) {
	for j := range t.aim {
		t.aimAt(j, 0)
	}
	batch := 1 + len(t.aim)/relaxRounds
	for t.k.cost(); *budget > 0; *budget -= t.k.cost() {
		at := t.late()
		if at < 0 {
			break
		}
		served := slices.Clone(t.order[:at+1])
		keys := make([]float64, len(t.aim))
		for _, j := range served {
			keys[j] = r(t, j)
		}
		sortBy(served, keys)
		for _, j := range served[:min(batch, len(served))] {
			t.aimAt(j, t.aim[j]+1)
		}
	}
	t.restore(*budget / 8)
}

const relaxRounds = 100

// restore aims higher where no other target suffers.
func (t *targets) restore(budget int) {
	given := make([]float64, len(t.aim))
	var back []int
	for j, step := range t.aim {
		if step > 0 {
			back = append(back, j)
			given[j] = -t.steps[j][step-1].Cost
		}
	}
	sortBy(back, given)
	for _, j := range back {
		for step := range t.aim[j] {
			was := t.aim[j]
			if budget <= 0 {
				return
			}
			t.aimAt(j, step)
			late := t.late()
			budget -= t.k.cost()
			if late < 0 {
				break
			}
			t.aimAt(j, was)
		}
	}
	sortBy(t.order, t.due)
}
