package jobtracker

import "sync"

// maxFileEffects is the maximum number of concurrent effects on files. A NameNode has ten handlers
// by default: more calls would wait there, and delay the calls of running attempts.
const maxFileEffects = 16

// gate runs a limited number of functions at once. Further functions wait, in order.
type gate struct {
	mu      sync.Mutex
	limit   int
	running int
	waiting []func()
}

// add runs do at once, or after running functions have ended.
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
