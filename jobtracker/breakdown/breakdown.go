// Package breakdown says what the attempts of a job tell about it: how long tasks took, which ones are slow, where maps ran,
// and what failed first. It reads all attempts of a job once, so that large jobs are not judged by a sample.
//
// Results depend on the arguments alone. [Of] costs O(n log n) for n attempts.
package breakdown

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Breakdown is what attempts tell about a job.
type Breakdown struct {
	Phases  [2]Phase             // maps, reduces
	Levels  [wire.Remote + 1]int // maps that succeeded, by distance to their input
	Failure *wire.AttemptStatus  // the attempt that failed first; nil: none has
	Failed  int                  // attempts that failed
}

// Phase is what the attempts of a phase tell. Times are milliseconds.
type Phase struct {
	Running int // attempts
	Tasks   int // attempts that succeeded: the following is about them
	Least   int64
	Median  int64
	Most    int64
	Mean    float64
	Buckets []Bucket             // of equal width, from Least to Most; none: no task has succeeded
	Slow    []wire.AttemptStatus // stragglers that run or have succeeded, slowest first
}

// Bucket counts tasks with times in a range.
type Bucket struct {
	From, To int64 // exclusive
	Tasks    int
}

// Limits of a Phase.
const (
	MaxBuckets = 24
	MaxSlow    = 20
)

// A straggler takes at least slowFactor times the median of its phase (as in Dean and Ghemawat 2004, section 3.6,
// where few tasks delay the end), and leastSlow milliseconds more than the median.
const (
	slowFactor = 2
	leastSlow  = 1000
)

// Of reads the attempts of a job. now is in Unix milliseconds: running attempts have taken the time until then.
func Of(attempts iter.Seq[wire.AttemptStatus], now int64) *Breakdown {
	b := new(Breakdown)
	var times [2][]int64
	for a := range attempts {
		if a.State == wire.AttemptFailed {
			b.addFailure(&a)
		}
		if !a.Attempt.Task.Kind.Slotted() {
			continue
		}
		phase := phaseOf(a.Attempt.Task.Kind)
		switch {
		case !a.State.Final():
			b.Phases[phase].Running++
		case a.State == wire.AttemptSucceeded:
			times[phase] = append(times[phase], a.Took)
			if phase == 0 && int(a.Level) < len(b.Levels) {
				b.Levels[a.Level]++
			}
		}
	}
	for phase := range times {
		b.Phases[phase].setTimes(times[phase])
	}
	for a := range attempts {
		if a.Attempt.Task.Kind.Slotted() && (!a.State.Final() || a.State == wire.AttemptSucceeded) {
			b.Phases[phaseOf(a.Attempt.Task.Kind)].addSlow(a, now)
		}
	}
	return b
}

func phaseOf(k wire.Kind) int {
	if k == wire.Reduce {
		return 1
	}
	return 0
}

// addFailure counts a failure. The first one is the one that ended first; ties go to the lower id.
func (b *Breakdown) addFailure(a *wire.AttemptStatus) {
	b.Failed++
	if f := b.Failure; f == nil || cmp.Or(cmp.Compare(a.Began+a.Took, f.Began+f.Took), a.Attempt.Compare(f.Attempt)) < 0 {
		first := *a
		b.Failure = &first
	}
}

// setTimes sets what the times of ended tasks tell. It sorts them.
func (p *Phase) setTimes(times []int64) {
	if len(times) == 0 {
		return
	}
	slices.Sort(times)
	p.Tasks, p.Least, p.Median, p.Most = len(times), times[0], times[len(times)/2], times[len(times)-1]
	width := max(1, int64(math.Ceil(float64(p.Most-p.Least+1)/MaxBuckets)))
	sum := 0.0
	for _, t := range times {
		sum += float64(t)
		for k := int((t - p.Least) / width); len(p.Buckets) <= k; {
			from := p.Least + int64(len(p.Buckets))*width
			p.Buckets = append(p.Buckets, Bucket{From: from, To: from + width})
		}
		p.Buckets[len(p.Buckets)-1].Tasks++
	}
	p.Mean = sum / float64(len(times))
}

// addSlow adds an attempt if it is a straggler. Without a median there is none.
func (p *Phase) addSlow(a wire.AttemptStatus, now int64) {
	if !a.State.Final() {
		a.Took = max(0, now-a.Began)
	}
	if p.Tasks == 0 || a.Took < slowFactor*p.Median || a.Took < p.Median+leastSlow {
		return
	}
	at, _ := slices.BinarySearchFunc(p.Slow, &a, func(x wire.AttemptStatus, a *wire.AttemptStatus) int {
		return cmp.Or(cmp.Compare(a.Took, x.Took), x.Attempt.Compare(a.Attempt))
	})
	if at < MaxSlow {
		p.Slow = slices.Insert(p.Slow, at, a)
		p.Slow = p.Slow[:min(len(p.Slow), MaxSlow)]
	}
}
