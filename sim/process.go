package sim

import (
	"runtime/debug"
	"time"
)

// process is a process of a job or task tracker: up or down, running or stopped, with a
// monotonic clock. Messages wait while it is stopped.
type process struct {
	w     *world
	name  string
	owner interface {
		boot()
		died()
		tick()
	}
	up      bool
	stops   int // pauses that have not ended
	life    int // rises with every start and crash
	started time.Duration
	inbox   []func()

	wakeAt     time.Duration
	waking     bool
	wakeNumber int // only the last wake-up counts
}

func (p *process) alive() bool { return p.up && p.stops == 0 }

// clock is the process's monotonic time.
func (p *process) clock() time.Duration { return p.w.now - p.started }

func (p *process) begin() {
	p.up, p.started, p.inbox, p.waking = true, p.w.now, nil, false
	p.life++
	p.wakeNumber++
}

// do runs something in the process: now, or when a stopped process continues.
func (p *process) do(action func()) {
	switch {
	case !p.up:
	case p.stops > 0:
		p.inbox = append(p.inbox, action)
	default:
		action()
	}
}

// later runs something in the process after a while, unless it has crashed by then.
func (p *process) later(d time.Duration, action func()) {
	life := p.life
	p.w.after(d, func() {
		if p.life == life {
			p.do(action)
		}
	})
}

// wake wakes the core at a time on the process's clock.
func (p *process) wake(at time.Duration, ok bool) {
	at += p.started
	switch {
	case !ok:
		p.waking = false
		p.wakeNumber++
		return
	case p.waking && p.wakeAt <= at:
		return
	}
	p.waking, p.wakeAt = true, at
	p.wakeNumber++
	gen, life := p.wakeNumber, p.life
	p.w.after(max(at-p.w.now, 0), func() {
		if p.wakeNumber == gen && p.life == life && p.waking {
			p.waking = false
			p.do(p.owner.tick)
		}
	})
}

// crash ends the process; it restarts after a while.
func (p *process) crash(down time.Duration) {
	if !p.up {
		return
	}
	p.w.note("%s dies for %v", p.name, down.Round(time.Millisecond))
	p.up, p.stops, p.inbox = false, 0, nil
	p.life++
	p.owner.died()
	life := p.life
	p.w.after(down, func() {
		if !p.up && p.life == life {
			p.w.note("%s starts", p.name)
			p.owner.boot()
		}
	})
}

// pause stops the process for a while, as SIGSTOP does.
func (p *process) pause(d time.Duration) {
	if !p.up {
		return
	}
	p.w.note("%s stops for %v", p.name, d.Round(time.Millisecond))
	p.stops++
	life := p.life
	p.w.after(d, func() {
		if p.life == life {
			p.resume()
		}
	})
}

func (p *process) resume() {
	if p.stops == 0 {
		return
	}
	if p.stops--; p.stops > 0 {
		return
	}
	p.w.note("%s goes on", p.name)
	for p.up && p.stops == 0 && len(p.inbox) > 0 {
		action := p.inbox[0]
		p.inbox = p.inbox[1:]
		action()
	}
}

// revive starts a crashed process and continues a stopped one.
func (p *process) revive() {
	if !p.up {
		p.owner.boot()
		return
	}
	p.stops = min(p.stops, 1)
	p.resume()
}

func stack() string { return string(debug.Stack()) }
