package whatif

import "math"

// Homes fetch as a fluid: between two events each shuffle has a constant rate.

// fetchRates divides the bandwidth among the jobs with map output that is not at homes: by the shares of the plan, where
// each leaves what it does not use to the next, and then equally.
func (p *play) fetchRates() []float64 {
	if p.Bandwidth <= 0 {
		return nil
	}
	rates := make([]float64, len(p.jobs))
	left, unused := p.Bandwidth, 0.0
	var first *job
	for _, share := range p.phases[Map].shares {
		j := p.byID[share.Job]
		if j == nil {
			continue
		}
		if unused += share.Share * p.Bandwidth; j.ready > 0 {
			rates[j.index] = min(left, unused)
			left, unused = left-rates[j.index], 0
			if first == nil {
				first = j
			}
		}
	}
	others := 0
	for _, j := range p.jobs {
		if j.ready > 0 && rates[j.index] == 0 {
			others++
		}
	}
	for _, j := range p.jobs {
		if j.ready > 0 && rates[j.index] == 0 {
			rates[j.index] = left / float64(others)
		}
	}
	if others == 0 && first != nil {
		rates[first.index] += left
	}
	return rates
}

// fetchAtOnce fetches all, if the bandwidth is not known.
func (p *play) fetchAtOnce() {
	if p.Bandwidth <= 0 {
		for _, j := range p.jobs {
			p.fetched(j, j.ready)
		}
	}
}

// nextShuffleEnd is when the first job has no more output to fetch.
func (p *play) nextShuffleEnd(rates []float64) float64 {
	at := math.Inf(1)
	for i, rate := range rates {
		if rate > 0 {
			at = min(at, p.now+p.jobs[i].ready/rate)
		}
	}
	return at
}

// fetch lets seconds pass.
func (p *play) fetch(rates []float64, seconds float64) {
	for i, rate := range rates {
		if rate > 0 {
			p.fetched(p.jobs[i], rate*seconds)
		}
	}
}

// fetched brings bytes of a job to its homes.
func (p *play) fetched(j *job, bytes float64) {
	if j.ready <= 0 {
		return
	}
	if j.ready-bytes < 1 { // sums lose less than a byte
		bytes = j.ready
	}
	j.ready -= bytes
	j.left = max(0, j.left-bytes)
	if maps := &j.phases[Map]; maps.pending+maps.running == 0 && j.ready == 0 {
		j.left = 0
		p.advance(j)
	}
}
