package flex

import (
	"math"
	"slices"
)

// shortest is the order in which jobs end when the slack always goes to the job
// that it would bring to its end soonest, by weight: at completions all live jobs
// are ranked anew by what is left of them, over the slots they could have now, over
// their weight. A static order of that kind (SPT, WSPT) is 0.4 % worse, for the
// minima go on advancing jobs at unlike speeds.
//
// Ranking takes O(J), mostly: ranks hardly change from one completion to the next.
// It is done at every completion up to rerankAlways jobs, and about as often in all
// for more: O(J·min(J, rerankAlways)) in all.
func shortest(p *Problem) []int {
	n := len(p.Jobs)
	s := &ranking{p: p, slack: p.slack(), rank: make([]ranked, n), work: make([]float64, n), state: make([]uint8, n)}
	for j := range p.Jobs {
		s.rank[j] = ranked{place: j, job: j}
		s.work[j] = p.Jobs[j].Work
		s.floors.push(event{p.Jobs[j].lowEnd(), j})
	}
	every := 1 + (n-1)/rerankAlways*2
	ended := make([]int, 0, n)
	for k := range n {
		if k%every == 0 {
			s.rerank()
		}
		s.serve()
		ended = append(ended, s.endNext())
	}
	return ended
}

const rerankAlways = 500

type ranking struct {
	p      *Problem
	now    float64
	slack  int
	rank   []ranked  // live jobs, as ranked last; ended ones among them
	at     int       // in rank: the next to be served
	work   []float64 // what would be left at time 0 of a job that has had its minimum all the time
	state  []uint8   // atMin, atMax: served, ended
	served []service
	floors events // ends of jobs at their minima, if they stay there
}

// service is a job with more than its minimum.
type service struct {
	job   int
	slots int
	left  float64
}

// rerank takes the slack back and sorts the live jobs.
func (s *ranking) rerank() {
	for _, v := range s.served {
		job := &s.p.Jobs[v.job]
		s.slack += v.slots - job.Min
		s.work[v.job] = v.left + float64(job.Min)*s.now
		s.state[v.job] = atMin
		if job.Min > 0 {
			s.floors.push(event{s.work[v.job] / float64(job.Min), v.job})
		}
	}
	s.served, s.at = s.served[:0], 0
	s.rank = slices.DeleteFunc(s.rank, func(r ranked) bool { return s.state[r.job] == ended })
	for i := range s.rank {
		job := &s.p.Jobs[s.rank[i].job]
		left := s.work[s.rank[i].job] - float64(job.Min)*s.now
		s.rank[i].key = left / (float64(min(job.Max, job.Min+s.slack)) * job.Cost.Weight)
	}
	sortNearly(s.rank)
}

// serve hands out the slack by rank.
func (s *ranking) serve() {
	if n := len(s.served); n > 0 && s.slack > 0 { // the last one served may be partial
		s.grow(&s.served[n-1])
	}
	for ; s.slack > 0 && s.at < len(s.rank); s.at++ {
		j := s.rank[s.at].job
		if s.state[j] != atMin {
			continue
		}
		job := &s.p.Jobs[j]
		s.state[j] = atMax
		v := service{job: j, slots: job.Min, left: max(0, s.work[j]-float64(job.Min)*s.now)}
		s.grow(&v)
		s.served = append(s.served, v)
	}
}

func (s *ranking) grow(v *service) {
	more := min(s.slack, s.p.Jobs[v.job].Max-v.slots)
	v.slots += more
	s.slack -= more
}

// endNext moves to the next end.
func (s *ranking) endNext() int {
	for len(s.floors) > 0 && s.stale(s.floors[0]) {
		s.floors.pop()
	}
	end, who := math.Inf(1), -1
	for i, v := range s.served {
		if e := s.now + v.left/float64(v.slots); e < end {
			end, who = e, i
		}
	}
	low := len(s.floors) > 0 && (who < 0 || s.floors[0].at < end)
	if low {
		end = s.floors[0].at
	}
	end = max(end, s.now)
	for i := range s.served {
		s.served[i].left = max(0, s.served[i].left-float64(s.served[i].slots)*(end-s.now))
	}
	s.now = end
	var job int
	if low {
		job = s.floors.pop().job
		s.slack += s.p.Jobs[job].Min
	} else {
		job = s.served[who].job
		s.slack += s.served[who].slots
		s.served = slices.Delete(s.served, who, who+1)
	}
	s.state[job] = ended
	return job
}

// stale says whether an end at the minimum no longer holds.
func (s *ranking) stale(e event) bool {
	j := e.job
	return s.state[j] != atMin || s.p.Jobs[j].Min > 0 && e.at < s.work[j]/float64(s.p.Jobs[j].Min)
}
