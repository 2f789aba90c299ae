package overlap

import (
	"fmt"
	"math"
	"slices"
)

// Arrival is a job that comes at a time.
type Arrival struct {
	At           float64 // seconds
	Map, Shuffle float64 // sizes, seconds of a whole station
}

// Span is a stretch of time in which no rate changes. Its slices are valid until the
// observer returns.
type Span struct {
	From, To       float64
	Jobs           []Job     // present, as they are at From; Number is that of the arrival
	Maps, Shuffles []float64 // rates
}

// Run follows the policy through the arrivals, which must be in order of time, until
// all jobs are done, and returns the time at which each is. The observer, if any, sees
// every span. Empty arrivals give empty ends. O(n) events, each O(m log m) for m jobs
// present.
func Run(p Policy, arrivals []Arrival, observe func(*Span)) ([]float64, error) {
	if l, ok := p.(LPS); ok && l.K < 1 {
		return nil, fmt.Errorf("policy LPS: field K is %d", l.K)
	}
	for i, a := range arrivals {
		err := check(a.Map, a.Shuffle)
		switch {
		case err != nil:
			return nil, fmt.Errorf("arrival %d: %w", i, err)
		case !(math.Abs(a.At) <= most):
			return nil, fmt.Errorf("arrival %d: field At is %v", i, a.At)
		case i > 0 && a.At < arrivals[i-1].At:
			return nil, fmt.Errorf("arrival %d: field At is %v, before %v", i, a.At, arrivals[i-1].At)
		}
	}
	r := &run{policy: p, arrivals: arrivals, ends: make([]float64, len(arrivals))}
	for r.next < len(arrivals) || len(r.span.Jobs) > 0 {
		if !r.step(observe) {
			return nil, fmt.Errorf("%T serves none of %d jobs at %v", p, len(r.span.Jobs), r.span.From)
		}
	}
	return r.ends, nil
}

type run struct {
	policy   Policy
	arrivals []Arrival
	next     int // arrival
	ends     []float64
	span     Span
}

// step goes to the next event; false if there will never be one.
func (r *run) step(observe func(*Span)) bool {
	s := &r.span
	if len(s.Jobs) == 0 {
		s.From = r.arrivals[r.next].At
	}
	r.arrive()
	s.Maps, s.Shuffles = zeros(s.Maps, len(s.Jobs)), zeros(s.Shuffles, len(s.Jobs))
	r.policy.Rates(s.Jobs, s.Maps, s.Shuffles)
	wait := math.Inf(1)
	for i := range s.Jobs {
		wait = min(wait, s.jobEvent(i), s.overtakes(i))
	}
	s.To = s.From + wait
	if r.next < len(r.arrivals) && r.arrivals[r.next].At < s.To {
		s.To = r.arrivals[r.next].At
		wait = s.To - s.From
	}
	if math.IsInf(wait, 1) {
		return len(s.Jobs) == 0
	}
	if observe != nil {
		observe(s)
	}
	r.advance(wait)
	return true
}

// arrive takes in the jobs that have come by now. Those without work are done.
func (r *run) arrive() {
	s := &r.span
	for ; r.next < len(r.arrivals) && r.arrivals[r.next].At <= s.From; r.next++ {
		a := r.arrivals[r.next]
		r.ends[r.next] = a.At
		if j := NewJob(a.Map, a.Shuffle); !j.Done() {
			j.Number = r.next
			s.Jobs = append(s.Jobs, j)
		}
	}
}

// net is how fast a job's ready work grows.
func (s *Span) net(i int) float64 {
	return float64(s.Maps[i]*s.Jobs[i].Ratio) - s.Shuffles[i]
}

// jobEvent is the time until job i is mapped or has nothing ready any more.
func (s *Span) jobEvent(i int) float64 {
	j, wait := &s.Jobs[i], math.Inf(1)
	if s.Maps[i] > 0 {
		wait = j.Left / s.Maps[i]
	}
	if net := s.net(i); net < 0 && j.Ready > 0 {
		wait = min(wait, -j.Ready/net)
	}
	return wait
}

// overtakes is the time until job i has less left to shuffle than another that is
// ahead of it now: the one event that is none of a job alone. It is put a little
// late, so that the order has changed by then.
func (s *Span) overtakes(i int) float64 {
	wait := math.Inf(1)
	if s.Shuffles[i] == 0 {
		return wait
	}
	left := s.Jobs[i].ShuffleLeft()
	for k := range s.Jobs {
		other := s.Jobs[k].ShuffleLeft()
		if faster := s.Shuffles[i] - s.Shuffles[k]; faster > 0 && other < left {
			wait = min(wait, (left-other+1e-12*left)/faster)
		}
	}
	return wait
}

// advance lets the span pass and removes the jobs that are done.
func (r *run) advance(wait float64) {
	s := &r.span
	kept := 0
	for i := range s.Jobs {
		j := s.Jobs[i]
		mapped := s.Maps[i] > 0 && j.Left/s.Maps[i] <= wait
		net := s.net(i)
		drained := net < 0 && j.Ready > 0 && -j.Ready/net <= wait
		j.Left = max(0, j.Left-float64(s.Maps[i]*wait))
		if net != 0 {
			j.Ready = max(0, j.Ready+float64(net*wait))
		}
		if mapped {
			j.Left = 0
		}
		if drained {
			j.Ready = 0
		}
		if j.Done() {
			r.ends[j.Number] = s.To
			continue
		}
		s.Jobs[kept] = j
		kept++
	}
	s.Jobs = s.Jobs[:kept]
	s.From = s.To
}

func zeros(s []float64, n int) []float64 {
	s = slices.Grow(s[:0], n)[:n]
	clear(s)
	return s
}
