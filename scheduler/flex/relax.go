package flex

import (
	"math"
	"slices"

	"github.com/quernmr/quern/scheduler"
)

// targets applies Moore and Hodgson's rule for tardy jobs, generalised to SLA steps. Every job's
// first target is its first step. While a job misses its target, that job or a job served before
// it drops its target and takes its next step. MPS tests whether targets can be kept; the
// classical test is wrong by up to 5 times, because minima advance dropped jobs too.
type targets struct {
	p      *Problem
	packer *packer
	steps  [][]scheduler.Level // by job: due times, each with the cost of missing it
	target []int               // by job: index of its target step; len(steps[j]): none
	due    []float64           // by job: the due time of its target
	order  []int
}

func newTargets(p *Problem, k *packer) *targets {
	t := &targets{
		p: p, packer: k, steps: make([][]scheduler.Level, len(p.Jobs)), target: make([]int, len(p.Jobs)),
		due: make([]float64, len(p.Jobs)), order: sorted(p.keys(func(j *Job) float64 { return j.Work })),
	}
	for j := range p.Jobs {
		t.steps[j] = costSteps(&p.Jobs[j].Cost)
	}
	return t
}

// missCost returns how much job j's cost rises if it drops its target.
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

// firstLate returns the first index in the order of a job that misses its target, or -1.
func (t *targets) firstLate() int {
	sortBy(t.order, t.due)
	ends := t.packer.pack(t.order, nil)
	for i, j := range t.order {
		if due := t.due[j]; ends[j] > due+1e-9*max(1, math.Abs(due)) {
			return i
		}
	}
	return -1
}

// dropRule returns the price of dropping job j's target. The job with the lowest price drops first.
type dropRule func(t *targets, j int) float64

// dropRules lists the rules that Solve tries.
var dropRules = []dropRule{
	func(t *targets, j int) float64 { return -t.p.Jobs[j].Work },
	func(t *targets, j int) float64 { return t.missCost(j) / max(t.slack(j), 1e-9) },
	func(t *targets, j int) float64 { return t.missCost(j) },
	func(t *targets, j int) float64 { return -t.slack(j) },
}

// slack returns the work that job j needs, beyond its minimum slots, to end in time.
func (t *targets) slack(j int) float64 {
	job := &t.p.Jobs[j]
	return job.Work - float64(job.Min)*max(0, t.due[j])
}

// dropTargets drops targets by the rule until the others can be kept. Then it restores targets
// that need not be dropped, the most expensive first. Of many jobs it drops several at a time,
// so that dropping a step of all jobs packs about dropRounds orderings.
func (t *targets) dropTargets(r dropRule, budget *int) {
	for j := range t.target {
		t.setTarget(j, 0)
	}
	batch := 1 + len(t.target)/dropRounds
	for t.packer.takeEffort(); *budget > 0; *budget -= t.packer.takeEffort() {
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

// restore moves jobs to earlier steps if all targets can still be kept.
func (t *targets) restore(budget int) {
	keys := make([]float64, len(t.target))
	var dropped []int
	for j, step := range t.target {
		if step > 0 {
			dropped = append(dropped, j)
			keys[j] = -t.steps[j][step-1].Cost
		}
	}
	sortBy(dropped, keys)
	for _, j := range dropped {
		for step := range t.target[j] {
			before := t.target[j]
			if budget <= 0 {
				return
			}
			t.setTarget(j, step)
			late := t.firstLate()
			budget -= t.packer.takeEffort()
			if late < 0 {
				break
			}
			t.setTarget(j, before)
		}
	}
	sortBy(t.order, t.due)
}
