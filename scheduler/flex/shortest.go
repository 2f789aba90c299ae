package flex

import (
	"math"
	"slices"
)

// shortestOrder returns the order in which jobs end if the slack always goes to the job that it
// ends soonest for its weight. When a job ends, all live jobs are ranked again: by work left,
// divided by the slots that they could have now, divided by weight. A static order of that kind
// (SPT, WSPT) is 0.4 % worse, because minima advance jobs at different speeds.
//
// Ranking mostly takes O(J), because ranks hardly change between ends. Each job at its maximum
// takes O(log J) more. Up to maxRankings jobs are ranked at every end. More jobs are ranked
// at some ends, about maxRankings times. In all it takes O(J log J · min(J, maxRankings)).
func shortestOrder(p *Problem) []int {
	n := len(p.Jobs)
	s := &ranking{
		p: p, slack: p.slack(), rank: make([]ranked, n), work: make([]float64, n), state: make([]uint8, n),
		allocations: make([]allocation, n), partial: -1,
	}
	for j := range p.Jobs {
		s.rank[j] = ranked{place: j, job: j}
		s.work[j] = p.Jobs[j].Work
		s.minEnds.push(event{p.Jobs[j].lowEnd(), j})
	}
	every := 1 + (n-1)/maxRankings*2
	ended := make([]int, 0, n)
	for k := range n {
		if k%every == 0 {
			s.rerank()
		} else {
			s.assignSlack()
		}
		ended = append(ended, s.endNext())
	}
	return ended
}

const maxRankings = 500

type ranking struct {
	p           *Problem
	now         float64
	slack       int
	rank        []ranked     // live jobs at the last ranking; some may have ended
	nextRank    int          // in rank: the next job to get slack
	work        []float64    // by job at its minimum: its work at time 0, had it always had its minimum
	state       []uint8      // atMin, atMax (has slack, perhaps less than its maximum) or ended
	allocations []allocation // by job with slack
	served      []int        // jobs that got slack since the last ranking; some may have ended
	partial     int          // the job with slack that is not at its maximum, -1 if none
	maxEnds     events       // ends of jobs at their maxima
	minEnds     events       // ends of jobs at their minima, if they stay there
	oldServed   []int        // buffer of rerank
}

// allocation is the present allocation of a job with slack.
type allocation struct {
	slots int     // including its minimum
	left  float64 // work left at time since
	since float64
}

// rerank takes the slack back, sorts the live jobs and assigns the slack again.
func (s *ranking) rerank() {
	s.oldServed, s.served = s.served, s.oldServed[:0]
	for _, j := range s.oldServed {
		if s.state[j] == ended {
			continue
		}
		v, least := &s.allocations[j], s.p.Jobs[j].Min
		s.slack += v.slots - least
		s.work[j] = v.remaining(s.now) + float64(least)*s.now
		s.state[j] = atMin
	}
	s.nextRank, s.partial, s.maxEnds = 0, -1, s.maxEnds[:0]
	s.rank = slices.DeleteFunc(s.rank, func(r ranked) bool { return s.state[r.job] == ended })
	for i := range s.rank {
		job := &s.p.Jobs[s.rank[i].job]
		left := s.work[s.rank[i].job] - float64(job.Min)*s.now
		s.rank[i].key = left / (float64(min(job.Max, job.Min+s.slack)) * job.Cost.Weight)
	}
	sortNearly(s.rank)
	s.assignSlack()
	for _, j := range s.oldServed {
		if job := &s.p.Jobs[j]; s.state[j] == atMin && job.Min > 0 {
			s.minEnds.push(event{s.work[j] / float64(job.Min), j})
		}
	}
}

// assignSlack assigns the slack by rank.
func (s *ranking) assignSlack() {
	if s.partial >= 0 && s.slack > 0 {
		s.grow(s.partial)
	}
	for ; s.slack > 0 && s.nextRank < len(s.rank); s.nextRank++ {
		j := s.rank[s.nextRank].job
		if s.state[j] != atMin {
			continue
		}
		job := &s.p.Jobs[j]
		s.state[j] = atMax
		s.allocations[j] = allocation{slots: job.Min, left: max(0, s.work[j]-float64(job.Min)*s.now), since: s.now}
		s.grow(j)
		s.served = append(s.served, j)
	}
}

// grow gives a job slack up to its maximum.
func (s *ranking) grow(j int) {
	v, most := &s.allocations[j], s.p.Jobs[j].Max
	more := min(s.slack, most-v.slots)
	v.left, v.since = v.remaining(s.now), s.now
	v.slots += more
	s.slack -= more
	if s.partial = j; v.slots == most {
		s.partial = -1
		s.maxEnds.push(event{v.end(), j})
	}
}

// remaining returns the work left at now.
func (v *allocation) remaining(now float64) float64 {
	return max(0, v.left-float64(v.slots)*(now-v.since))
}
func (v *allocation) end() float64 { return v.since + v.left/float64(v.slots) }

// endNext advances to the next end and returns the job.
func (s *ranking) endNext() int {
	for len(s.minEnds) > 0 && s.stale(s.minEnds[0]) {
		s.minEnds.pop()
	}
	next, from := event{math.Inf(1), -1}, (*events)(nil)
	if s.partial >= 0 {
		next = event{s.allocations[s.partial].end(), s.partial}
	}
	for _, h := range []*events{&s.maxEnds, &s.minEnds} {
		if len(*h) > 0 && (next.job < 0 || (*h)[0].at < next.at) {
			next, from = (*h)[0], h
		}
	}
	if from != nil {
		from.pop()
	} else {
		s.partial = -1
	}
	s.now = max(s.now, next.at)
	if s.state[next.job] == atMin {
		s.slack += s.p.Jobs[next.job].Min
	} else {
		s.slack += s.allocations[next.job].slots
	}
	s.state[next.job] = ended
	return next.job
}

// stale reports whether the event's end at the minimum no longer holds.
func (s *ranking) stale(e event) bool {
	j := e.job
	return s.state[j] != atMin || s.p.Jobs[j].Min > 0 && e.at < s.work[j]/float64(s.p.Jobs[j].Min)
}
