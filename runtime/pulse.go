package runtime

import "sync/atomic"

// pulse shows that an attempt is active. An observer calls ask; the next beat counts one
// answer, and later beats cost only one atomic load. So a higher count means activity since
// the last ask. A pulse is safe for concurrent use.
type pulse struct {
	requested atomic.Bool
	count     atomic.Uint64
}

// beat signals activity.
func (p *pulse) beat() {
	if p.requested.Load() {
		p.answer()
	}
}

func (p *pulse) answer() {
	p.requested.Store(false)
	p.count.Add(1)
}

// ask returns the count of answers and asks again.
func (p *pulse) ask() uint64 {
	n := p.count.Load()
	p.requested.Store(true)
	return n
}
