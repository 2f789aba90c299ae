package sim

import (
	"runtime/debug"
	"time"
)

// process is a process of a job or task tracker: up or down, running or stopped, with a
// monotonic clock. Like the real one it has a loop that takes one event after the other. A Step
// keeps the loop busy for a while (costs.go). Then its commands are carried out. Until then
// other events wait.
type process struct {
	w     *world
	name  string
	owner interface {
		boot()
		died()
		tick(readUntil time.Duration)
	}
	up      bool
	stops   int // pauses that have not ended
	life    int // rises with every start and crash
	started time.Duration

	loop   loop
	load   load
	timer  timer
	frozen []func() // what other goroutines of a stopped process will do
}

// loop has the events that wait for a process.
type loop struct {
	inbox     queue[waiting]
	log       queue[func()] // events of the log of a job tracker, all taken at once
	backlog   queue[func()] // taken from log
	busyUntil time.Duration
	commands  func() // of the Step until busyUntil; nil: none
	arranged  bool   // an event at busyUntil is scheduled
}

// waiting is an event in an inbox.
type waiting struct {
	do      func()
	since   time.Duration
	entered func() // called when it is among the first inboxSize; nil: not called
}

// queue is a list in order.
type queue[T any] struct {
	items []T
	first int // the items before it are taken
}

func (q *queue[T]) len() int { return len(q.items) - q.first }

func (q *queue[T]) put(x T) { q.items = append(q.items, x) }

func (q *queue[T]) at(i int) T { return q.items[q.first+i] }

func (q *queue[T]) take() T {
	x := q.items[q.first]
	var zero T
	q.items[q.first] = zero
	if q.first++; q.first == len(q.items) {
		q.items, q.first = q.items[:0], 0
	}
	return x
}

// inboxSize is the size of the inbox of real loops. Goroutines with further events wait.
const inboxSize = 64

// timer wakes a core.
type timer struct {
	at      time.Duration // by the process's clock
	on      bool
	armed   bool // an event at armedAt is scheduled
	armedAt time.Duration
	posts   bool // a tick goes behind the events that wait
	posted  bool // such a tick waits
}

func (p *process) alive() bool { return p.up && p.stops == 0 }

// clock is the process's monotonic time.
func (p *process) clock() time.Duration { return p.w.now - p.started }

func (p *process) begin() {
	p.up, p.started, p.frozen = true, p.w.now, nil
	p.loop, p.timer = loop{}, timer{posts: p.timer.posts}
	if p.load.events == nil {
		p.load.events = make(map[string]int)
	}
	p.life++
}

// do gives the loop an event.
func (p *process) do(action func()) { p.post(waiting{do: action, since: p.w.now}) }

// post gives the loop an event.
func (p *process) post(x waiting) {
	if !p.up {
		return
	}
	p.loop.inbox.put(x)
	if x.entered != nil && p.loop.inbox.len() <= inboxSize {
		x.entered()
	}
	p.run()
}

// fromLog gives the loop an event of the log.
func (p *process) fromLog(action func()) {
	if !p.up {
		return
	}
	p.loop.log.put(action)
	p.run()
}

// aside does something on another goroutine of the process, once the process runs.
func (p *process) aside(action func()) {
	switch {
	case !p.up:
	case p.stops > 0:
		p.frozen = append(p.frozen, action)
	default:
		action()
	}
}

// run takes events, until a Step takes time.
func (p *process) run() {
	for p.alive() {
		if p.w.now < p.loop.busyUntil || p.loop.commands != nil {
			p.arrange()
			return
		}
		if !p.take() {
			return
		}
	}
}

// take takes an event: of the backlog, or else of any source that has one. It reports whether
// there was one.
func (p *process) take() bool {
	x := &p.loop
	if x.backlog.len() > 0 {
		x.backlog.take()()
		return true
	}
	sources, n := [...]bool{x.inbox.len() > 0, x.log.len() > 0, p.timer.isDue(p.clock())}, 0
	for _, ready := range sources {
		if ready {
			n++
		}
	}
	skip := 0
	if n > 1 { // a select of Go chooses at random
		skip = p.w.rnd.IntN(n)
	}
	for i, ready := range sources {
		switch {
		case !ready:
			continue
		case skip > 0:
			skip--
			continue
		}
		switch i {
		case 0:
			p.takeInbox()
		case 1:
			x.backlog, x.log = x.log, x.backlog
		case 2:
			p.takeTick()
		}
		return true
	}
	return false
}

func (t *timer) isDue(now time.Duration) bool { return t.on && !t.posted && t.at <= now }

func (p *process) takeInbox() {
	first := p.loop.inbox.take()
	p.load.waited = max(p.load.waited, p.w.now-first.since)
	var entered func()
	if p.loop.inbox.len() >= inboxSize {
		entered = p.loop.inbox.at(inboxSize - 1).entered
	}
	life := p.life
	first.do()
	if entered != nil && p.life == life {
		entered()
	}
}

// takeTick wakes the core, or posts that behind the events that wait. A core may ask for the next Tick at
// once, see works in package core, if this one has taken time. It may never ask for one in the past.
func (p *process) takeTick() {
	if p.timer.posts && p.loop.inbox.len() > 0 {
		p.timer.posted = true
		at := p.clock()
		p.do(func() {
			p.timer.posted = false
			p.owner.tick(at)
		})
		return
	}
	p.owner.tick(0)
	if now := p.clock(); p.timer.on && (p.timer.at < now || p.timer.at == now && p.loop.busyUntil <= p.w.now) {
		p.w.fail("the core of %s asks to be woken at %v, but it is %v", p.name, p.timer.at, p.clock())
	}
}

// work keeps the loop busy for the time of a Step, before its commands are carried out.
func (p *process) work(d time.Duration, commands func()) {
	p.loop.busyUntil, p.loop.commands = p.w.now+d, commands
	if commands != nil {
		p.arrange()
	}
}

// arrange lets the loop go on when its Step has ended.
func (p *process) arrange() {
	if p.loop.arranged {
		return
	}
	p.loop.arranged = true
	life := p.life
	p.w.after(max(p.loop.busyUntil-p.w.now, 0), func() {
		if p.life == life {
			p.loop.arranged = false
			p.goOn()
		}
	})
}

// goOn carries out the commands of a Step that has ended, and takes the next events.
func (p *process) goOn() {
	if !p.alive() {
		return
	}
	if commands := p.loop.commands; commands != nil && p.loop.busyUntil <= p.w.now {
		life := p.life
		commands()
		if p.life != life {
			return
		}
		p.loop.commands = nil
	}
	p.run()
}

// later gives the loop something to do after a while, unless the process has crashed by then.
func (p *process) later(d time.Duration, action func()) {
	life := p.life
	p.w.after(d, func() {
		if p.life == life {
			p.do(action)
		}
	})
}

// wake sets the timer to a time on the process's clock.
func (p *process) wake(at time.Duration, ok bool) {
	t := &p.timer
	t.at, t.on = at, ok
	if !ok || t.armed && t.armedAt <= at {
		return
	}
	t.armed, t.armedAt = true, at
	life := p.life
	p.w.after(max(at-p.clock(), 0), func() {
		if p.life != life || t.armedAt != at {
			return
		}
		t.armed = false
		if t.on && t.at > at {
			p.wake(t.at, true)
			return
		}
		p.run()
	})
}

// crash ends the process; it restarts after a while.
func (p *process) crash(down time.Duration) {
	if !p.up {
		return
	}
	p.w.note("%s dies for %v", p.name, down.Round(time.Millisecond))
	p.up, p.stops, p.frozen = false, 0, nil
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
	for p.alive() && len(p.frozen) > 0 {
		action := p.frozen[0]
		p.frozen = p.frozen[1:]
		action()
	}
	p.goOn()
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
