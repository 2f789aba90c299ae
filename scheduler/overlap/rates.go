package overlap

import (
	"math"
	"slices"
)

// Rates implements [Policy].
func (p MaxSRPT) Rates(jobs []Job, maps, shuffles []float64) {
	serve(p.lanes(jobs), jobs, maps, shuffles)
}

// Rates implements [Policy].
func (p SRPT) Rates(jobs []Job, maps, shuffles []float64) { serve(p.lanes(jobs), jobs, maps, shuffles) }

// Rates implements [Policy].
func (o InOrder) Rates(jobs []Job, maps, shuffles []float64) {
	serve(o.lanes(jobs), jobs, maps, shuffles)
}

// Rates implements [Policy].
func (p SplitSRPT) Rates(jobs []Job, maps, shuffles []float64) {
	lanes := p.lanes(jobs)
	if !p.Strict {
		serve(lanes, jobs, maps, shuffles)
		return
	}
	for _, l := range lanes {
		l.serveMap(jobs, l.mapShare, maps)
		l.serveShuffle(jobs, l.shuffleShare, maps, shuffles)
	}
}

// serve gives each lane its part of a station, and then what is left to all in turn.
func serve(lanes []lane, jobs []Job, maps, shuffles []float64) {
	left := 1.0
	for _, l := range lanes {
		left -= l.serveMap(jobs, min(left, l.mapShare), maps)
	}
	for _, l := range lanes {
		left -= l.serveMap(jobs, left, maps)
	}
	serveShuffles(lanes, jobs, maps, shuffles)
}

// serveShuffles sets the rates of the shuffle, given those of the map.
func serveShuffles(lanes []lane, jobs []Job, maps, shuffles []float64) {
	left := 1.0
	for _, l := range lanes {
		left -= l.serveShuffle(jobs, min(left, l.shuffleShare), maps, shuffles)
	}
	for _, l := range lanes {
		left -= l.serveShuffle(jobs, left, maps, shuffles)
	}
}

// serveMap adds to the map rates what the lane makes of the capacity, and returns it:
// the first job with map work takes all.
func (l *lane) serveMap(jobs []Job, capacity float64, maps []float64) (used float64) {
	for _, i := range l.maps {
		if jobs[i].Left > 0 {
			maps[i] += capacity
			return capacity
		}
	}
	return 0
}

// serveShuffle adds to the shuffle rates what the lane makes of the capacity, and
// returns it: a job with work ready takes all that is left, another as much as its map
// makes ready.
func (l *lane) serveShuffle(jobs []Job, capacity float64, maps, shuffles []float64) (used float64) {
	for _, i := range l.shuffles {
		if jobs[i].Ready > 0 {
			shuffles[i] += capacity - used
			return capacity
		}
		want := float64(maps[i] * jobs[i].Ratio)
		if used+(want-shuffles[i]) > capacity {
			shuffles[i] += capacity - used
			return capacity
		}
		used += want - shuffles[i]
		shuffles[i] = want // exactly, or a job would seem to keep some of it
	}
	return used
}

// Rates implements [Policy]. The shuffle is shared max-min: nobody gets more than it
// can use, and nobody more than another who could use more.
func (p LPS) Rates(jobs []Job, maps, shuffles []float64) {
	var mapped []int
	for i := range jobs {
		if jobs[i].Left > 0 && len(mapped) < max(1, p.K) {
			mapped = append(mapped, i)
		}
	}
	for _, i := range mapped {
		maps[i] = 1 / float64(len(mapped))
	}
	wants := make([]float64, len(jobs))
	for i := range jobs {
		wants[i] = float64(maps[i] * jobs[i].Ratio)
		if jobs[i].Ready > 0 {
			wants[i] = math.Inf(1)
		}
	}
	level := waterLevel(wants)
	for i, want := range wants {
		shuffles[i] = min(want, level)
	}
}

// waterLevel is the level at which the wants, cut off there, use up a capacity of 1;
// +Inf if they never do.
func waterLevel(wants []float64) float64 {
	ascending := slices.Sorted(slices.Values(wants))
	left := 1.0
	for k, want := range ascending {
		level := left / float64(len(ascending)-k)
		if want >= level {
			return level
		}
		left -= want
	}
	return math.Inf(1)
}
