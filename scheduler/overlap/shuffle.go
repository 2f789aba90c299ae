package overlap

// ServeShuffles sets the rates of the shuffle, given those of the map: first each lane has
// its part, and then what is left goes to all in turn.
func ServeShuffles(lanes []Lane, jobs []Job, maps, shuffles []float64) {
	left := 1.0
	for _, l := range lanes {
		left -= l.ServeShuffle(jobs, min(left, l.ShuffleShare), maps, shuffles)
	}
	for _, l := range lanes {
		left -= l.ServeShuffle(jobs, left, maps, shuffles)
	}
}

// ServeShuffle adds to the shuffle rates what the lane makes of the capacity, and
// returns it: a job with work ready takes all that is left, another as much as its map
// makes ready.
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
		shuffles[i] = want // exactly, or a job would seem to keep some of it
	}
	return used
}
