package runtime

import "sync/atomic"

// pulse shows that an attempt lives, at the cost of one load for each sign of
// life: whoever wants to know asks, and the next sign answers. So a count that
// grows says that there was a sign since the last question. It may be used from
// several goroutines.
type pulse struct {
	asked atomic.Bool
	count atomic.Uint64
}

// beat is a sign of life.
func (p *pulse) beat() {
	if p.asked.Load() {
		p.answer()
	}
}

func (p *pulse) answer() {
	p.asked.Store(false)
	p.count.Add(1)
}

// ask returns the count of answers and asks again.
func (p *pulse) ask() uint64 {
	n := p.count.Load()
	p.asked.Store(true)
	return n
}
