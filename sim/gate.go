package sim

import "time"

// gate runs a limited number of a process's effects at once. Others wait, in order.
type gate struct {
	p       *process
	limit   int
	running int
	waiting queue[func()]
}

// run runs an effect: start says how long it takes or that it does not run, and end ends it. It
// runs beside the loop of the process.
func (g *gate) run(start func() (time.Duration, bool), end func()) {
	g.waiting.put(func() {
		d, ok := start()
		if !ok {
			g.ended()
			return
		}
		g.p.beside(d, func() {
			end()
			g.ended()
		})
	})
	g.next()
}

func (g *gate) ended() {
	g.running--
	g.next()
}

func (g *gate) next() {
	for g.running < g.limit && g.waiting.len() > 0 {
		g.running++
		g.waiting.take()()
	}
}

// beside does something after a while on another goroutine of the process, unless the process
// has crashed by then.
func (p *process) beside(d time.Duration, action func()) {
	life := p.life
	p.w.after(d, func() {
		if p.life == life {
			p.aside(action)
		}
	})
}
