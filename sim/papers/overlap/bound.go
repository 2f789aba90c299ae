package overlap

// bound computes the lower bound of section 5.1: each station runs SRPT and does not wait for
// the other. Between two times at which both are idle, the larger of their sums of response
// times counts. An event takes O(log n) for n jobs present.
type bound struct {
	clock
	maps, shuffles station
}

func (e *bound) arrive(a arrival) {
	e.maps.until(a.at - e.now)
	e.shuffles.until(a.at - e.now)
	e.now = a.at
	if len(e.maps.left)+len(e.shuffles.left) == 0 {
		e.idle()
	}
	e.finished++
	e.maps.push(a.x)
	e.shuffles.push(a.x * a.ratio)
}

func (e *bound) idle() {
	e.responses += max(e.maps.sum, e.shuffles.sum)
	e.maps.sum, e.shuffles.sum = 0, 0
}

func (e *bound) finish() {
	e.maps.until(forever)
	e.shuffles.until(forever)
	e.idle()
}

// station is a station under SRPT. left is a heap of its jobs' remaining work, the least first.
type station struct {
	left []float64
	sum  float64 // integral of the number of jobs, which is the sum of response times
}

// until serves the station for a time.
func (s *station) until(wait float64) {
	for len(s.left) > 0 {
		n, first := float64(len(s.left)), s.left[0]
		if first > wait {
			s.left[0] -= wait
			s.sum += n * wait
			return
		}
		s.sum += n * first
		wait -= first
		s.pop()
	}
}

func (s *station) push(left float64) {
	s.left = append(s.left, left)
	at := len(s.left) - 1
	for at > 0 {
		up := (at - 1) / 2
		if s.left[up] <= left {
			break
		}
		s.left[at] = s.left[up]
		at = up
	}
	s.left[at] = left
}

func (s *station) pop() {
	n := len(s.left) - 1
	last := s.left[n]
	s.left = s.left[:n]
	at := 0
	for {
		down := 2*at + 1
		if down >= n {
			break
		}
		if down+1 < n && s.left[down+1] < s.left[down] {
			down++
		}
		if last <= s.left[down] {
			break
		}
		s.left[at] = s.left[down]
		at = down
	}
	if n > 0 {
		s.left[at] = last
	}
}
