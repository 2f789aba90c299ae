package runtime

import "sync/atomic"

// pulse shows that an attempt is active, and tells its code that it must end. An observer calls
// ask; the next beat counts one answer, and later beats cost only one atomic load. So a higher
// count means activity since the last ask. A pulse is safe for concurrent use.
type pulse struct {
	requested atomic.Bool
	ended     atomic.Bool
	count     atomic.Uint64
}

// beat signals activity, and reports whether the attempt goes on.
func (p *pulse) beat() bool { return !p.requested.Load() || p.answer() }

func (p *pulse) answer() bool {
	p.requested.Store(false)
	p.count.Add(1)
	if p.ended.Load() {
		p.requested.Store(true) // for the next beat
		return false
	}
	return true
}

// ask returns the count of answers and asks again.
func (p *pulse) ask() uint64 {
	n := p.count.Load()
	p.requested.Store(true)
	return n
}

// end lets all further beats report that the attempt does not go on.
func (p *pulse) end() {
	p.ended.Store(true)
	p.requested.Store(true)
}
