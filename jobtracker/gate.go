package jobtracker

import "sync"

// maxFileEffects bounds the concurrent effects on files. A NameNode has ten handlers by default:
// more calls would only wait there, ahead of those of running attempts.
const maxFileEffects = 16

// gate runs a limited number of functions at once. Others wait in their order.
type gate struct {
	mu      sync.Mutex
	limit   int
	running int
	waiting []func()
}

// add runs do once there is room.
func (g *gate) add(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running == g.limit {
		g.waiting = append(g.waiting, do)
		return
	}
	g.running++
	go g.run(do)
}

// run runs do, and then waiting functions.
func (g *gate) run(do func()) {
	for do != nil {
		do()
		do = g.next()
	}
}

// next takes the first waiting function; nil: there is none.
func (g *gate) next() (do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.running--
		return nil
	}
	do, g.waiting[0] = g.waiting[0], nil
	g.waiting = g.waiting[1:]
	return do
}
