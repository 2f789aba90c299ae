package flex

import "math"

// packFair returns the ends of all jobs under FAIR (section 1) with divisible slots, and records
// allocations in r, which may be nil. Each job has its minimum, and the slack raises the lowest
// allocations like water. O(J log J): jobs only free slots, so the level only rises, and jobs at
// the level end in a fixed order.
func packFair(p *Problem, r *recorder) []float64 {
	f := &fairPacker{
		p: p, r: r, ends: make([]float64, len(p.Jobs)), state: make([]uint8, len(p.Jobs)), doneAt: make([]float64, len(p.Jobs)),
		low:   sorted(p.keys((*Job).lowEnd)),
		byMin: sorted(p.keys(func(j *Job) float64 { return float64(j.Min) })),
		free:  float64(p.slack()),
	}
	for j := range p.Jobs {
		r.set(j, float64(p.Jobs[j].Min), 0)
	}
	f.raiseLevel()
	for range p.Jobs {
		f.endNext()
		f.raiseLevel()
	}
	return f.ends
}

const (
	atMin uint8 = iota
	atLevel
	atMax
	ended
)

type fairPacker struct {
	p      *Problem
	r      *recorder
	ends   []float64
	state  []uint8
	doneAt []float64 // the levelWork at which a job at the level ends

	now          float64
	level        float64 // slots
	levelWork    float64 // integral of the level over time: the work done by a job at the level
	free         float64 // slots not assigned
	atLevelCount int     // number of jobs at the level

	low, byMin []int  // jobs by their end at their minimum, and by Min
	nextLow    int    // in low: the next job to end at its minimum
	nextJoin   int    // in byMin: the next job to join the level
	maxima     events // jobs at the level, by Max
	levelEnds  events // jobs at the level, by doneAt
	maxEnds    events // jobs at their Max, by their end
}

// raiseLevel raises the level until no slots are free or all jobs are at their maxima.
func (f *fairPacker) raiseLevel() {
	before := f.level
	for f.free > 0 {
		for f.nextJoin < len(f.byMin) && f.state[f.byMin[f.nextJoin]] != atMin {
			f.nextJoin++
		}
		for len(f.maxima) > 0 && f.state[f.maxima[0].job] != atLevel {
			f.maxima.pop()
		}
		next, join := math.Inf(1), false
		if f.nextJoin < len(f.byMin) {
			next, join = float64(f.p.Jobs[f.byMin[f.nextJoin]].Min), true
		}
		if len(f.maxima) > 0 && f.maxima[0].at < next {
			next, join = f.maxima[0].at, false
		}
		if math.IsInf(next, 1) && f.atLevelCount == 0 {
			break
		}
		next = max(next, f.level)
		if need := (next - f.level) * float64(f.atLevelCount); need > f.free {
			f.level += f.free / float64(f.atLevelCount)
			f.free = 0
			break
		} else {
			f.free -= need
		}
		f.level = next
		if join {
			f.join(f.byMin[f.nextJoin])
		} else {
			f.stopAtMax(f.maxima.pop().job)
		}
	}
	if f.r.isClosed() || f.level == before {
		return
	}
	for j, state := range f.state {
		if state == atLevel {
			f.r.set(j, f.level, f.now)
		}
	}
}

// join moves a job from its minimum to the level.
func (f *fairPacker) join(j int) {
	job := &f.p.Jobs[j]
	f.state[j] = atLevel
	f.atLevelCount++
	left := max(0, job.Work-float64(job.Min)*f.now)
	f.doneAt[j] = f.levelWork + left
	f.levelEnds.push(event{f.doneAt[j], j})
	f.maxima.push(event{float64(job.Max), j})
}

// stopAtMax moves a job from the level to its maximum.
func (f *fairPacker) stopAtMax(j int) {
	f.state[j] = atMax
	f.atLevelCount--
	left := max(0, f.doneAt[j]-f.levelWork)
	f.maxEnds.push(event{f.now + left/float64(f.p.Jobs[j].Max), j})
	f.r.set(j, float64(f.p.Jobs[j].Max), f.now)
}

// endNext advances to the next end.
func (f *fairPacker) endNext() {
	for f.nextLow < len(f.low) && f.state[f.low[f.nextLow]] != atMin {
		f.nextLow++
	}
	for len(f.levelEnds) > 0 && f.state[f.levelEnds[0].job] != atLevel {
		f.levelEnds.pop()
	}
	end, job := math.Inf(1), -1
	if f.nextLow < len(f.low) {
		job = f.low[f.nextLow]
		end = f.p.Jobs[job].lowEnd()
	}
	if len(f.maxEnds) > 0 && (job < 0 || f.maxEnds[0].at < end) {
		end, job = f.maxEnds[0].at, f.maxEnds[0].job
	}
	if len(f.levelEnds) > 0 {
		if e := f.now + (f.levelEnds[0].at-f.levelWork)/f.level; job < 0 || e < end {
			end, job = e, f.levelEnds[0].job
		}
	}
	end = max(end, f.now)
	f.levelWork += f.level * (end - f.now)
	f.now = end
	switch f.state[job] {
	case atMin:
		f.free += float64(f.p.Jobs[job].Min)
	case atLevel:
		f.levelEnds.pop()
		f.free += f.level
		f.atLevelCount--
	case atMax:
		f.maxEnds.pop()
		f.free += float64(f.p.Jobs[job].Max)
	}
	f.state[job], f.ends[job] = ended, end
	f.r.set(job, 0, end)
}
