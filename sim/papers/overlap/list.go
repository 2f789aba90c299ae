package overlap

// job is the state of a job in a list of MaxSRPT or SplitSRPT. In each list the next job to be
// served is last.
type job struct {
	key       float64 // sort key of the list
	x         float64 // map work left
	a         float64 // shuffle work ready; y(t) = a + ratio·x
	ratio     float64
	unbalance float64 // for SplitSRPT
	born      float64 // time of arrival
	size      float64 // max(x, y)
	ready     bool    // counted as ready
}

func (j *job) before(k *job) bool {
	return j.key < k.key || j.key == k.key && j.born < k.born
}

// place inserts a job into a list.
func place(list []job, j job) []job {
	list = append(list, j)
	i := len(list) - 1
	for ; i > 0 && list[i-1].before(&j); i-- {
		list[i] = list[i-1]
	}
	list[i] = j
	return list
}

// moveUp restores the place of a job after its key has fallen.
func moveUp(list []job, at int) {
	for last := len(list) - 1; at < last && list[at].before(&list[at+1]); at++ {
		list[at], list[at+1] = list[at+1], list[at]
	}
}

// updateReady updates j.ready and returns the change in the number of ready jobs.
func (j *job) updateReady() int {
	ready := j.a > 0
	if ready == j.ready {
		return 0
	}
	if j.ready = ready; ready {
		return 1
	}
	return -1
}
