package overlap

// job is what MaxSRPT and SplitSRPT know of a job in one of their lists. In each list the
// next job to be served stands last.
type job struct {
	key       float64 // what the list is ordered by
	x         float64 // map work left
	a         float64 // shuffle work ready; y(t) = a + ratio·x
	ratio     float64
	unbalance float64 // for SplitSRPT
	born      float64
	size      float64 // max(x, y)
	ready     bool    // is counted as such
}

func (j *job) before(k *job) bool {
	return j.key < k.key || j.key == k.key && j.born < k.born
}

// place puts a job into a list.
func place(list []job, j job) []job {
	list = append(list, j)
	i := len(list) - 1
	for ; i > 0 && list[i-1].before(&j); i-- {
		list[i] = list[i-1]
	}
	list[i] = j
	return list
}

// mend puts a job whose key has fallen where it belongs.
func mend(list []job, at int) {
	for last := len(list) - 1; at < last && list[at].before(&list[at+1]); at++ {
		list[at], list[at+1] = list[at+1], list[at]
	}
}

// counts is the change in the number of ready jobs.
func (j *job) counts() int {
	ready := j.a > 0
	if ready == j.ready {
		return 0
	}
	if j.ready = ready; ready {
		return 1
	}
	return -1
}
