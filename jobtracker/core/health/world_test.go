package health

import (
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// tracker is a task tracker of a world.
type tracker struct {
	Record
	name         string
	slots        int // in each phase
	usable       bool
	draining     bool
	disksDropped int
	proposed     bool // its exclusion is proposed
	events       []event
}

// attempt is a running or ended attempt.
type attempt struct {
	on    *tracker
	task  wire.TaskID
	began time.Duration
	state wire.AttemptState
}

// world does what package core does with Records. A test decides when the log applies a proposal.
// Each tracker has a Record, and the events for the model in model_test.go.
type world struct {
	now      time.Duration
	trackers []*tracker
	attempts []attempt
	ended    map[int]bool // jobs

	output      []string
	differences []string       // where a Record and the model differ
	counts      map[string]int // of events
}

func newWorld(trackers, slots int) *world {
	w := &world{ended: make(map[int]bool), counts: make(map[string]int)}
	for i := range trackers {
		w.trackers = append(w.trackers, &tracker{
			Record: New(false), name: fmt.Sprintf("t%d", i+1), slots: slots, usable: true,
		})
	}
	return w
}

func (w *world) record(what string, format string, args ...any) {
	w.output = append(w.output, fmt.Sprintf(format, args...))
	w.counts[what]++
}

// same notes a difference between the answers of a Record and of the model.
func same[T comparable](w *world, what string, got, want T) T {
	if got != want {
		w.differences = append(w.differences, fmt.Sprintf("at %v %s: %v, by the model %v", w.now, what, got, want))
	}
	return got
}

func (w *world) getsNoWork(t *tracker) bool { return t.Excluded() || t.draining || t.proposed }

func (w *world) others(t *tracker) (others Others) {
	for _, o := range w.trackers {
		if o != t {
			others.Add(&o.Record, w.getsNoWork(o), o.usable, w.now)
		}
	}
	return others
}

func (w *world) propose(t *tracker, why string) {
	if !t.proposed {
		t.proposed = true
		w.record("proposed", "%s: exclude for %v: %s", t.name, t.Length(), why)
	}
}

func phaseOf(task wire.TaskID) int {
	if task.Kind == wire.Reduce {
		return 1
	}
	return 0
}

// launch begins an attempt.
func (w *world) launch(t *tracker, task wire.TaskID) {
	w.attempts = append(w.attempts, attempt{t, task, w.now, wire.AttemptRunning})
}

// end ends attempt i. A success makes earlier failures of its task on other trackers count, once.
func (w *world) end(i int, state wire.AttemptState) {
	a := &w.attempts[i]
	t, phase := a.on, phaseOf(a.task)
	a.state = state
	if state == wire.AttemptSucceeded {
		t.Succeeded(phase, a.began)
		t.events = append(t.events, event{what: succeeded, at: w.now, phase: phase, launched: a.began})
		w.blame(a)
		return
	}
	if !t.Counts(a.began) {
		return
	}
	suspect := t.Suspect(phase)
	c := t.Failed(phase, Failure{Task: a.task, Began: a.began.Milliseconds(), Took: w.now - a.began}, t.slots, w.now)
	t.events = append(t.events, event{what: failed, at: w.now, phase: phase, launched: a.began, task: a.task})
	if t.Suspect(phase) && !suspect {
		w.record("suspect", "%s is suspect", t.name)
	}
	if compared := same(w, t.name+" is compared", c != nil, w.toCompare(t, phase)); !compared {
		return
	}
	w.counts["compared"]++
	jobs := c.Jobs(func(n int) bool { return !w.ended[n] })
	if may := same(w, t.name+" may be excluded", c.MayExclude(w.others(t)), w.mayExclude(t, phase)); !may {
		w.record("not compared", "%s is not compared", t.name)
		return
	}
	for n := range jobs {
		w.addAttempts(c, n, phase)
	}
	reason, exclude := c.StandsOut()
	if same(w, t.name+" stands out", exclude, w.standsOut(t, phase)); exclude {
		w.counts["stands out"]++
		w.propose(t, reason)
	} else {
		w.record("compared well", "%s is compared: %d succeeded elsewhere, %d failed", t.name, c.Succeeded, c.Failed)
	}
}

func (w *world) addAttempts(c *Comparison, job, phase int) {
	for _, a := range w.attempts {
		switch {
		case a.task.Job.N != job || phaseOf(a.task) != phase:
		case a.state == wire.AttemptRunning:
			c.AddRunning(&a.on.Record, a.began.Milliseconds(), w.now.Milliseconds())
		default:
			c.AddEnded(&a.on.Record, a.began.Milliseconds(), a.state)
		}
	}
}

// blame counts the failures of the task that succeeded now.
func (w *world) blame(success *attempt) {
	for i := range w.attempts {
		a := &w.attempts[i]
		if a.task != success.task || a.state != wire.AttemptFailed || slices.Contains(a.on.blamedAttempts(), i) || a.on == success.on {
			continue
		}
		t := a.on
		t.events = append(t.events, event{what: blamed, at: w.now, launched: a.began, attempt: i})
		if judge := t.Blame(a.began, w.now); !same(w, t.name+" is judged", judge, t.modelBlame(w.now) >= 3 && t.modelCounts(a.began)) {
			continue
		}
		why, worse := t.MuchWorse(w.others(t), a.task, w.now)
		if same(w, t.name+" is much worse", worse, w.muchWorse(t)); worse {
			w.counts["worse"]++
			w.propose(t, why)
		} else {
			w.record("no worse", "%s is not much worse than the others", t.name)
		}
	}
}

// dropDisks reports how often the tracker's process stopped using a disk.
func (w *world) dropDisks(t *tracker, times int) {
	pardons := t.DisksDropped(times, w.now)
	t.events = append(t.events, event{what: disksChanged, at: w.now, drops: times})
	if !same(w, t.name+" is pardoned", pardons, t.modelPardons(w.now)) {
		return
	}
	t.events = append(t.events, event{what: pardoned, at: w.now})
	w.record("pardoned", "%s is pardoned", t.name)
	if readmit := t.Pardon(t.proposed, w.now); same(w, t.name+" is readmitted", readmit, t.Excluded()) {
		w.record("pardoned early", "%s: readmit", t.name)
	} else if t.proposed {
		t.events = append(t.events, event{what: spared})
	}
}

// applyExclusion makes the log apply a proposed exclusion, or end one.
func (w *world) applyExclusion(t *tracker, excluded bool) {
	spare := excluded && t.modelSpared()
	t.events = append(t.events, event{what: map[bool]byte{true: excludes, false: readmits}[excluded], at: w.now})
	t.proposed = false
	if readmit := t.ExclusionChanged(excluded, w.now); same(w, t.name+"'s exclusion is spared", readmit, spare) {
		t.events = append(t.events, event{what: cancelled})
		w.record("spared", "%s: readmit", t.name)
	}
}

// dropProposal makes the log drop a proposed exclusion.
func (w *world) dropProposal(t *tracker) {
	t.proposed = false
	t.ExclusionDropped()
	t.events = append(t.events, event{what: dropped})
	w.counts["dropped"]++
}

// check compares the state of Records with the model.
func (w *world) check() {
	for _, t := range w.trackers {
		for phase := range t.streaks {
			same(w, fmt.Sprintf("%s is suspect in phase %d", t.name, phase), t.Suspect(phase), t.modelSuspect(phase))
		}
		same(w, t.name+" is blamed", t.blamed(w.now), t.modelBlame(w.now))
		same(w, t.name+"'s next exclusion", t.Length(), t.modelLength())
		same(w, t.name+" is excluded", t.Excluded(), t.modelExcluded())
	}
}
