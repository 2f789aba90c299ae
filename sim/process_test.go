package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeOwner is the owner of a process that only takes events.
type fakeOwner struct{}

func (o *fakeOwner) boot()              {}
func (o *fakeOwner) died()              {}
func (o *fakeOwner) tick(time.Duration) {}

func newFakeProcess(w *world) *process {
	p := &process{w: w, name: "p", owner: &fakeOwner{}}
	p.begin()
	return p
}

// TestLoop: events wait in order while a Step takes time, and a stopped process carries out the
// commands of its last Step when it goes on.
func TestLoop(t *testing.T) {
	w := emptyWorld(&Result{})
	p := newFakeProcess(w)
	var got []string
	log := func(what string) { got = append(got, fmt.Sprintf("%s at %v", what, w.now)) }
	step := func(name string, d time.Duration) func() {
		return func() {
			log(name + " begins")
			p.work(d, func() { log(name + " ends") })
		}
	}
	p.do(step("a", 3*time.Millisecond))
	p.do(step("b", time.Millisecond))
	w.after(time.Millisecond, func() { p.do(step("c", time.Millisecond)) })
	w.after(3500*time.Microsecond, func() { p.pause(4 * time.Millisecond) })
	w.run(func() bool { return false }, time.Second)
	want := []string{
		"a begins at 0s", "a ends at 3ms", "b begins at 3ms",
		"b ends at 7.5ms", "c begins at 7.5ms", "c ends at 8.5ms",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if p.load.waited != 6500*time.Microsecond {
		t.Errorf("the longest wait is %v", p.load.waited)
	}
}

// TestCrashInStep: the commands of a Step in which a process dies are lost.
func TestCrashInStep(t *testing.T) {
	w := emptyWorld(&Result{})
	p := newFakeProcess(w)
	p.do(func() { p.work(time.Millisecond, func() { t.Error("a dead process carries out commands") }) })
	p.do(func() { t.Error("a dead process takes an event") })
	p.crash(time.Second)
	w.run(func() bool { return false }, time.Minute)
}

// TestInbox: a reader with a message beyond the inbox reads the next one when its message has
// entered.
func TestInbox(t *testing.T) {
	w := emptyWorld(&Result{})
	p := newFakeProcess(w)
	entered := 0
	for range inboxSize + 2 { // the first is taken at once
		p.post(waiting{do: func() { p.work(time.Millisecond, nil) }, entered: func() { entered++ }})
	}
	if entered != inboxSize+1 {
		t.Errorf("%d events have entered", entered)
	}
	w.run(func() bool { return false }, time.Millisecond)
	if entered != inboxSize+2 {
		t.Errorf("%d events have entered after a Step", entered)
	}
}

// TestGate: effects beyond the limit wait, and skipped ones do not hold their place.
func TestGate(t *testing.T) {
	w := emptyWorld(&Result{})
	g := gate{p: newFakeProcess(w), limit: 2}
	var ends []time.Duration
	for i := range 6 {
		g.run(func() (time.Duration, bool) { return time.Second, i != 3 }, func() { ends = append(ends, w.now) })
	}
	w.run(func() bool { return false }, time.Minute)
	if want := []time.Duration{1e9, 1e9, 2e9, 2e9, 3e9}; !slices.Equal(ends, want) {
		t.Errorf("effects end at %v, want %v", ends, want)
	}
}

// TestEndless: cores that keep each other busy fail, with words that say what they do.
func TestEndless(t *testing.T) {
	w := emptyWorld(&Result{})
	w.stepping.max = 1000
	n := &jobTracker{}
	n.process = *newFakeProcess(w)
	n.name = "j1"
	w.jts = []*jobTracker{n}
	defer func() {
		text, _ := recover().(violation)
		if !strings.Contains(string(text), "1001 times Tick for j1") {
			t.Errorf("the violation is %q", text)
		}
	}()
	var again func()
	again = func() { n.spend(&Use{Tracker: "job", Kind: "Tick"}, 1, func() { n.do(again) }) }
	n.do(again)
	w.run(func() bool { return false }, time.Hour)
}

// TestWakeInThePast: a core that asks to be woken at a time that has come fails by name.
func TestWakeInThePast(t *testing.T) {
	w := emptyWorld(&Result{})
	p := newFakeProcess(w)
	defer func() {
		if text, _ := recover().(violation); !strings.Contains(string(text), "the core of p asks to be woken at") {
			t.Errorf("the violation is %q", text)
		}
	}()
	p.wake(time.Second, true) // the fake core never changes it
	w.run(func() bool { return false }, time.Hour)
}
