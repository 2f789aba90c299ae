package runtime

import "sync/atomic"

// pulse shows that an attempt is active, at the cost of one load per sign of activity. An
// observer calls ask; the next beat answers. So a growing count means activity since the
// last ask. It is safe for concurrent use.
type pulse struct {
	asked atomic.Bool
	count atomic.Uint64
}

// beat signals activity.
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
