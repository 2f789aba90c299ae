package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// link is a stream between a tracker and the leader. It keeps the order of messages.
type link struct {
	w             *world
	id            Stream
	tracker       *simTracker
	lastAtLeader  time.Duration // arrival of the last message
	lastAtTracker time.Duration
	closed        bool // by either side
}

func (l *link) deliver(last *time.Duration, do func()) {
	at := max(*last, l.w.now+l.w.randomTime(20*time.Millisecond))
	if l.w.fault(0.02) {
		at += l.w.randomTime(3 * time.Second)
	}
	*last = at
	l.w.after(at-l.w.now, do)
}

func (l *link) toLeader(m wire.Message) {
	if l.closed {
		return
	}
	for range 1 + l.w.rnd.IntN(20)/19 { // some messages arrive twice
		l.deliver(&l.lastAtLeader, func() {
			if l.w.streams[l.id] == l {
				l.w.step(FromTracker{Stream: l.id, Message: m})
			}
		})
	}
}

func (l *link) toTracker(m wire.Message) {
	if l.closed {
		return
	}
	l.deliver(&l.lastAtTracker, func() {
		if l.tracker.link == l {
			l.tracker.receive(m)
		}
	})
}

func (l *link) closedByLeader() {
	l.closed = true
	delete(l.w.streams, l.id)
	l.deliver(&l.lastAtTracker, l.tracker.unlink(l))
}

func (l *link) closedByTracker() {
	l.closed = true
	l.tracker.unlink(l)()
	l.deliver(&l.lastAtLeader, func() {
		if l.w.streams[l.id] == l {
			delete(l.w.streams, l.id)
			l.w.step(StreamClosed{l.id})
		}
	})
}

// simTracker is a task tracker without disks or processes.
type simTracker struct {
	w           *world
	name        string
	process     uint64
	nonce       string
	configured  [2]int // slots as configured
	slots       [2]int // slots now; none while disks fail
	incarnation uint64
	link        *link
	down        bool
	attempts    map[wire.AttemptID]*simAttempt
	outputs     map[wire.AttemptID]uint64 // digests of map outputs on its disk
	homes       map[homeName]*simHome
	slow        int // its attempts take so many times longer; 0: not
}

type simAttempt struct {
	launch  *wire.Launch
	report  wire.Report
	granted bool
	content uint64 // sum over the records that a reduce has read
}

type homeName struct {
	job       wire.JobID
	partition int
}

type simHome struct {
	request *wire.SetHome
	outputs map[int]wire.MapOutput
}

func newSimTracker(w *world, name string) *simTracker {
	t := &simTracker{w: w, name: name, configured: [2]int{1 + w.rnd.IntN(2), 1 + w.rnd.IntN(2)}}
	t.start()
	return t
}

// start starts the process with an empty disk.
func (t *simTracker) start() {
	t.down = false
	t.nonce, t.slots = "", t.configured
	t.process = t.w.rnd.Uint64() | 1
	t.incarnation = 0
	t.attempts = make(map[wire.AttemptID]*simAttempt)
	t.outputs = make(map[wire.AttemptID]uint64)
	t.homes = make(map[homeName]*simHome)
	t.connect(t.process)
}

// connect connects to the leader as soon as there is one.
func (t *simTracker) connect(process uint64) {
	if t.down || t.process != process || t.link != nil {
		return
	}
	if !t.w.isLeader || t.w.fault(0.2) {
		t.w.after(200*time.Millisecond, func() { t.connect(process) })
		return
	}
	t.w.lastStream++
	t.link = &link{w: t.w, id: t.w.lastStream, tracker: t}
	t.w.streams[t.w.lastStream] = t.link
	t.hello()
	t.heartbeat(t.link)
}

func (t *simTracker) hello() {
	t.send(&wire.Hello{
		Version: wire.Version, Tracker: t.name, Process: t.process, Incarnation: t.incarnation,
		Host: t.name, Addr: t.name + ":1", MapSlots: t.slots[0], ReduceSlots: t.slots[1], Nonce: t.nonce,
	})
}

func (t *simTracker) heartbeat(l *link) {
	if t.link != l {
		return
	}
	hb := &wire.Heartbeat{}
	for _, a := range t.sorted() {
		if !a.report.State.Final() {
			hb.Attempts = append(hb.Attempts, a.report)
		}
	}
	l.toLeader(hb)
	t.w.after(time.Second, func() { t.heartbeat(l) })
}

func (t *simTracker) unlink(l *link) func() {
	return func() {
		if t.link == l {
			t.link = nil
			process := t.process
			t.w.after(t.w.randomTime(500*time.Millisecond), func() { t.connect(process) })
		}
	}
}

// crash ends the process and loses its files. The process restarts later.
func (t *simTracker) crash() {
	if t.down {
		return
	}
	t.w.note("%s crashes", t.name)
	t.down = true
	for _, a := range t.sorted() {
		t.release(a)
	}
	if t.link != nil {
		t.link.closedByTracker()
	}
	t.w.after(t.w.randomTime(12*time.Second), t.start)
}

// disconnect breaks the stream. The process keeps running.
func (t *simTracker) disconnect() {
	if t.link == nil {
		return
	}
	t.w.note("%s is disconnected", t.name)
	l := t.link
	l.closed = true
	t.link = nil
	process := t.process
	t.w.after(t.w.randomTime(12*time.Second), func() { t.connect(process) })
	l.deliver(&l.lastAtLeader, func() {
		if t.w.streams[l.id] == l {
			delete(t.w.streams, l.id)
			t.w.step(StreamClosed{l.id})
		}
	})
}

func (t *simTracker) sorted() []*simAttempt {
	var list []*simAttempt
	for _, a := range t.attempts {
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b *simAttempt) int { return a.report.Attempt.Compare(b.report.Attempt) })
	return list
}

func (t *simTracker) send(m wire.Message) {
	if t.link != nil {
		t.link.toLeader(m)
	}
}

func (t *simTracker) receive(m wire.Message) {
	switch m := m.(type) {
	case *wire.Welcome:
		if m.Incarnation != t.incarnation {
			t.incarnation = m.Incarnation
			for _, a := range t.sorted() {
				if !a.report.State.Final() {
					t.end(a, wire.AttemptKilled, &wire.Result{Error: "lost"})
				}
			}
			t.homes = make(map[homeName]*simHome)
		}
		t.inventory()
	case *wire.Staging:
		t.readNonce(t.link)
	case *wire.Launch:
		t.launch(m)
	case *wire.Kill:
		if a := t.attempts[m.Attempt]; a != nil && !a.report.State.Final() {
			t.after(a, 200*time.Millisecond, func() { t.end(a, wire.AttemptKilled, &wire.Result{Error: m.Reason}) })
		}
	case *wire.Grant:
		t.grant(m)
	case *wire.SetHome:
		t.setHome(m)
	case *wire.Outputs:
		for job, outputs := range outputsIn(m) {
			t.fetchNew(job, outputs)
		}
	case *wire.DropJob:
		t.drop(m.Job)
	case *wire.Drained:
		t.exitDrained()
	}
}

func (t *simTracker) inventory() {
	page := &wire.Inventory{}
	for _, name := range t.homeNames() {
		page.Homes = append(page.Homes, *t.homeReport(name))
		if len(page.Homes) == 3 {
			page.More = true
			t.send(page)
			page = &wire.Inventory{}
		}
	}
	for _, a := range t.sorted() {
		page.Attempts = append(page.Attempts, a.report)
		if len(page.Attempts) == 3 {
			page.More = true
			t.send(page)
			page = &wire.Inventory{}
		}
	}
	t.send(page)
}

func (t *simTracker) homeNames() []homeName {
	var names []homeName
	for name := range t.homes {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b homeName) int {
		if c := a.job.Compare(b.job); c != 0 {
			return c
		}
		return a.partition - b.partition
	})
	return names
}

func (t *simTracker) drop(id wire.JobID) {
	for _, a := range t.sorted() {
		if a.report.Attempt.Task.Job == id {
			t.release(a)
			delete(t.attempts, a.report.Attempt)
			delete(t.outputs, a.report.Attempt)
		}
	}
	for _, name := range t.homeNames() {
		if name.job == id {
			delete(t.homes, name)
		}
	}
}

// after calls do after a random time, unless the attempt or the process has ended.
func (t *simTracker) after(a *simAttempt, d time.Duration, do func()) {
	t.w.after(t.w.randomTime(d), func() {
		if !t.down && t.attempts[a.report.Attempt] == a && !a.report.State.Final() {
			do()
		}
	})
}

func (t *simTracker) launch(m *wire.Launch) {
	if t.attempts[m.Attempt] != nil {
		t.w.fail("%v is launched twice", m.Attempt)
	}
	a := &simAttempt{launch: m, report: wire.Report{Attempt: m.Attempt, State: wire.AttemptRunning}}
	t.attempts[m.Attempt] = a
	t.w.note("%s runs %s", t.name, showAttempt(m.Attempt))
	kind := m.Attempt.Task.Kind
	if kind.Slotted() && t.slots != t.configured {
		t.end(a, wire.AttemptKilled, &wire.Result{Error: "no disk"})
		return
	}
	if kind.Slotted() {
		busy := 0
		for _, b := range t.attempts {
			if b.report.Attempt.Task.Kind == kind && !b.report.State.Final() {
				busy++
			}
		}
		if busy > t.slots[phaseOf(kind)] {
			t.w.fail("%s runs %d %ss in %d slots", t.name, busy, kind, t.slots[phaseOf(kind)])
		}
	}
	t.after(a, time.Duration(max(t.slow, 1))*400*time.Millisecond, func() { t.work(a) })
}

// work simulates the task of an attempt.
func (t *simTracker) work(a *simAttempt) {
	w, id := t.w, a.report.Attempt
	if w.fault(0.08) {
		t.end(a, wire.AttemptFailed, &wire.Result{Error: "simulated failure", Fatal: w.chance(0.02)})
		return
	}
	job := w.job(id.Task.Job)
	switch {
	case id.Task.Kind == wire.Setup:
		t.end(a, wire.AttemptSucceeded, &wire.Result{Splits: &wire.SplitsDone{Maps: job.maps, Hash: 9}})
	case id.Task.Kind == wire.Map && job.reduces > 0:
		d := w.digest(id)
		t.outputs[id] = d
		t.end(a, wire.AttemptSucceeded, &wire.Result{Output: &wire.MapOutput{Map: id.Task.N, Attempt: id.N, Digest: d, Bytes: 10}})
	case id.Task.Kind == wire.Fence:
		w.fenced[a.launch.Subject] = true
		w.ungrant(a.launch.Subject)
		p := w.committed[a.launch.Subject.Task]
		t.end(a, wire.AttemptSucceeded, &wire.Result{Committed: p != nil && p.attempt == a.launch.Subject})
	case !id.Task.Kind.Slotted():
		t.end(a, wire.AttemptSucceeded, &wire.Result{})
	case id.Task.Kind == wire.Reduce && !t.read(a):
	default:
		a.report.State = wire.AttemptReady
		r := a.report
		t.send(&r)
	}
}

// read simulates a reduce that reads the gathered map outputs, which may be damaged.
func (t *simTracker) read(a *simAttempt) bool {
	h := t.homes[homeName{a.report.Attempt.Task.Job, a.report.Attempt.Task.N}]
	if h != nil {
		for _, o := range h.outputs {
			a.report.Digest += o.Digest
		}
	}
	if h == nil || h.request.Generation != a.launch.Generation || len(h.outputs) != h.request.Maps {
		t.end(a, wire.AttemptFailed, &wire.Result{Error: "the home is not complete"})
		return false
	}
	for _, m := range sortedNumbers(h.outputs) {
		a.content += h.outputs[m].Digest
		if t.w.fault(0.02) {
			o := h.outputs[m]
			t.end(a, wire.AttemptFailed, &wire.Result{Error: "damaged", Lost: []wire.OutputLost{
				{Job: a.report.Attempt.Task.Job, Map: m, Attempt: o.Attempt, Corrupt: true, Reason: "bad checksum"},
			}})
			return false
		}
	}
	return true
}

func (t *simTracker) grant(m *wire.Grant) {
	a := t.attempts[m.Attempt]
	if a == nil || a.granted || a.report.State != wire.AttemptReady {
		return
	}
	w := t.w
	if other, taken := w.grants[m.Attempt.Task]; taken && other != m.Attempt {
		w.fail("%v and %v have grants at the same time", other, m.Attempt)
	}
	w.grants[m.Attempt.Task] = m.Attempt
	a.granted = true
	t.after(a, 300*time.Millisecond, func() { t.rename(a) })
}

// rename commits an attempt, unless a fence came first.
func (t *simTracker) rename(a *simAttempt) {
	w, id := t.w, a.report.Attempt
	if w.fenced[id] {
		t.end(a, wire.AttemptFailed, &wire.Result{Error: "fenced"})
		return
	}
	if p := w.committed[id.Task]; p != nil {
		w.fail("%v commits after %v did", id, p.attempt)
	}
	w.committed[id.Task] = &committedOutput{attempt: id, content: a.content}
	if w.fault(0.1) {
		t.end(a, wire.AttemptFailed, &wire.Result{Error: "killed after the rename"})
		return
	}
	t.after(a, 100*time.Millisecond, func() { t.end(a, wire.AttemptSucceeded, &wire.Result{}) })
}

func (w *world) ungrant(id wire.AttemptID) {
	if w.grants[id.Task] == id {
		delete(w.grants, id.Task)
	}
}

// release takes back an attempt's grant, since it can no longer commit.
func (t *simTracker) release(a *simAttempt) { t.w.ungrant(a.report.Attempt) }

func (t *simTracker) end(a *simAttempt, state wire.AttemptState, r *wire.Result) {
	t.release(a)
	a.report.State, a.report.Result = state, r
	report := a.report
	t.w.note("%s ends %s %v %s", t.name, showAttempt(report.Attempt), state, r.Error)
	t.send(&report)
}
