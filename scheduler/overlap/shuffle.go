package overlap

// ServeShuffles sets the jobs' shuffle rates, shuffles, for given map rates, maps: first each lane
// uses its part, then all lanes share the rest in order. Rates are parts of a whole station.
func ServeShuffles(lanes []Lane, jobs []Job, maps, shuffles []float64) {
	left := 1.0
	for _, l := range lanes {
		left -= l.ServeShuffle(jobs, min(left, l.ShuffleShare), maps, shuffles)
	}
	for _, l := range lanes {
		left -= l.ServeShuffle(jobs, left, maps, shuffles)
	}
}

// ServeShuffle adds the lane's shuffle rates within a capacity and returns the capacity used. A
// job with work ready takes all the rest. Any other job takes the rate at which its maps produce.
func (l *Lane) ServeShuffle(jobs []Job, capacity float64, maps, shuffles []float64) (used float64) {
	for _, i := range l.Shuffles {
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
		shuffles[i] = want // assign exactly, or rounding would leave some work ready
	}
	return used
}
