package flex

import (
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// targets is Moore and Hodgson's rule for tardy jobs, generalised to SLA steps. MPS tests
// whether deadlines can be kept; the classical test is off by up to 5 times, because minima
// advance dropped jobs too. Every job aims at its first step. While a job misses its target,
// one of the jobs served before it falls back to its next step.
type targets struct {
	p      *Problem
	k      *packer
	steps  [][]scheduler.Level // by job: the cost of missing each due time
	target []int               // by job: index of its target step; len(steps[j]): none
	due    []float64           // by job: the due time of its target
	order  []int
}

func newTargets(p *Problem, k *packer) *targets {
	t := &targets{
		p: p, k: k, steps: make([][]scheduler.Level, len(p.Jobs)), target: make([]int, len(p.Jobs)),
		due: make([]float64, len(p.Jobs)), order: sorted(p.keys(func(j *Job) float64 { return j.Work })),
	}
	for j := range p.Jobs {
		t.steps[j] = costSteps(&p.Jobs[j].Cost)
	}
	return t
}

// miss is the rise of job j's cost if it drops its target.
func (t *targets) missCost(j int) float64 {
	before := 0.0
	if t.target[j] > 0 {
		before = t.steps[j][t.target[j]-1].Cost
	}
	return t.steps[j][t.target[j]].Cost - before
}

func (t *targets) setTarget(j, step int) {
	t.target[j] = step
	t.due[j] = math.Inf(1)
	if step < len(t.steps[j]) {
		t.due[j] = t.steps[j][step].Due
	}
}

// late is the first index in the order of a job that misses its target, -1 if none does.
func (t *targets) firstLate() int {
	sortBy(t.order, t.due)
	ends := t.k.pack(t.order, nil)
	for i, j := range t.order {
		if due := t.due[j]; ends[j] > due+1e-9*max(1, math.Abs(due)) {
			return i
		}
	}
	return -1
}

// rule is the price of taking slots from a job: the cheapest job drops its target first.
type dropRule func(t *targets, j int) float64

// rules are tried one after the other.
var dropRules = []dropRule{
	func(t *targets, j int) float64 { return -t.p.Jobs[j].Work },
	func(t *targets, j int) float64 { return t.missCost(j) / max(t.slack(j), 1e-9) },
	func(t *targets, j int) float64 { return t.missCost(j) },
	func(t *targets, j int) float64 { return -t.slack(j) },
}

// slack is the work beyond its minimum that job j needs to be in time.
func (t *targets) slack(j int) float64 {
	job := &t.p.Jobs[j]
	return job.Work - float64(job.Min)*max(0, t.due[j])
}

// relax drops targets by the rule until the rest can be kept, then restores those dropped
// without need, the dearest first. Of many jobs several drop at a time, so that a step packs
// about relaxRounds orderings.
func (t *targets) dropTargets(r dropRule, budget *int) {
	for j := range t.target {
		t.setTarget(j, 0)
	}
	batch := 1 + len(t.target)/dropRounds
	for t.k.takeEffort(); *budget > 0; *budget -= t.k.takeEffort() {
		at := t.firstLate()
		if at < 0 {
			break
		}
		served := slices.Clone(t.order[:at+1])
		keys := make([]float64, len(t.target))
		for _, j := range served {
			keys[j] = r(t, j)
		}
		sortBy(served, keys)
		for _, j := range served[:min(batch, len(served))] {
			t.setTarget(j, t.target[j]+1)
		}
	}
	t.restore(*budget / 8)
}

const dropRounds = 100

// restore moves jobs to earlier steps if no other target is missed by that.
func (t *targets) restore(budget int) {
	given := make([]float64, len(t.target))
	var back []int
	for j, step := range t.target {
		if step > 0 {
			back = append(back, j)
			given[j] = -t.steps[j][step-1].Cost
		}
	}
	sortBy(back, given)
	for _, j := range back {
		for step := range t.target[j] {
			was := t.target[j]
			if budget <= 0 {
				return
			}
			t.setTarget(j, step)
			late := t.firstLate()
			budget -= t.k.takeEffort()
			if late < 0 {
				break
			}
			t.setTarget(j, was)
		}
	}
	sortBy(t.order, t.due)
}
