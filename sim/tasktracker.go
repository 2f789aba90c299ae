package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// taskTracker is a task tracker's process, its disk and its workers.
type taskTracker struct {
	process
	core       *core.Core
	slots      [2]int // for maps, for reduces
	offer      room
	cluster    string // the cluster that its directory belongs to
	staging    string // the staging directory of that cluster
	link       *link  // nil: none
	dialing    bool
	lastDialed int    // index of the job tracker that it dialled last
	leaderHint string // address of the leader, from the last refusal or welcome
	lastHint   string // the last such address that was not empty
	dialPause  time.Duration
	pauses     int // since dialPause was minDialPause
	dials      int
	machine    machine
	sickness   Kind // fault that fails its attempts; empty: none
	unreadable bool // reads of logs of attempts are not answered

	disk      *disk
	workers   map[int]*worker
	positions map[string]int64 // files with the records in which attempts ended
	orphans   []*worker        // workers of a dead process, not dead yet
	work      localWork
	fetches   map[int]*transfer
	merges    map[int]*transfer
	open      map[wire.AttemptID]bool // launched in this incarnation, without final report
	inventory map[wire.AttemptID]bool // listed by the current inventory so far

	epoch, incarnation uint64 // of the last welcome
}

// localWork has effects that run one after the other, or wait for each other, as in real task
// trackers.
type localWork struct {
	disk     gate                     // removals
	lookUps  gate                     // in map outputs of this tracker
	starts   gate                     // of workers
	programs map[string]time.Duration // by submission: when its program is copied
	nonce    struct {
		reading bool
		next    *core.ReadNonce // to read after it; nil: none
	}
}

func newLocalWork(p *process) localWork {
	one := gate{p: p, limit: 1}
	return localWork{disk: one, lookUps: one, starts: one, programs: make(map[string]time.Duration)}
}

// transfer is a fetch or a merge under way.
type transfer struct{ done, batch bool }

func newTaskTracker(w *world, name string) *taskTracker {
	t := &taskTracker{slots: [2]int{1 + w.rnd.IntN(2), 1 + w.rnd.IntN(2)}, disk: newDisk()}
	if w.shape.slots != [2]int{} {
		t.slots = w.shape.slots
	}
	t.offer = w.drawOffer()
	t.process = process{w: w, name: name, owner: t}
	t.lastDialed = w.rnd.IntN(len(w.jts))
	t.boot()
	return t
}

func (t *taskTracker) addr() string { return t.name + ":1" }

// boot starts the process, which removes the leftovers of earlier processes except finished map
// outputs.
func (t *taskTracker) boot() {
	t.begin()
	if t.w.sabotage != keepOrphans {
		t.killOrphans()
	}
	reports := t.disk.clean()
	t.workers, t.positions = make(map[int]*worker), make(map[string]int64)
	t.work = newLocalWork(&t.process)
	t.fetches, t.merges = make(map[int]*transfer), make(map[int]*transfer)
	t.open, t.inventory = make(map[wire.AttemptID]bool), make(map[wire.AttemptID]bool)
	t.epoch, t.incarnation = 0, 0
	t.core = core.New(core.Config{
		Tracker: t.name, Process: t.w.rnd.Uint64() | 1, Host: t.name, Addr: t.addr(), Rack: rackOf(t.name),
		MapSlots: t.slots[0], ReduceSlots: t.slots[1], Memory: int64(t.offer.memory) << 20, Cores: t.offer.cores, Dir: "D", Cluster: t.cluster, Staging: t.staging,
		Disks: disks(), KeepLogs: t.w.keepLogs, Record: true, Restore: true, ProbeAgain: 5 * time.Second,
		StartTimeout: 10 * time.Second, MergeFactor: t.w.shape.mergeFactor, RetryMax: 3 * time.Second,
	})
	t.dialing = false
	t.restore(reports)
	t.dial(0)
}

// died closes the stream of a dead process; its workers die a little later.
func (t *taskTracker) died() {
	if t.link != nil {
		t.link.reset(t.link.jt)
		t.link = nil
	}
	for _, id := range sortedKeys(t.workers) {
		p := t.workers[id]
		t.orphans = append(t.orphans, p)
		if t.w.sabotage != keepOrphans {
			t.w.after(t.w.upTo(time.Second), p.die)
		}
	}
	t.workers, t.core = make(map[int]*worker), nil
}

func (t *taskTracker) killProcesses() {
	for _, id := range sortedKeys(t.workers) {
		t.workers[id].die()
	}
	t.killOrphans()
}

func (t *taskTracker) killOrphans() {
	for _, p := range t.orphans {
		p.die()
	}
	t.orphans = nil
}

// dial opens a stream to some job tracker, after a while.
func (t *taskTracker) dial(wait time.Duration) {
	if t.dialing || t.link != nil {
		return
	}
	t.dialing = true
	t.later(wait, func() {
		t.dialing = false
		to := t.nextToDial()
		if !to.up || !t.w.connected(t.name, to.name) || t.w.fault(t.w.rates.refused) {
			t.dialAgain()
			return
		}
		t.dials++
		t.dialing = true
		life := to.life
		t.later(to.shakeHands(), func() {
			t.dialing = false
			if !to.up || to.life != life || !t.w.connected(t.name, to.name) {
				t.dialAgain()
				return
			}
			t.openStream(to)
		})
	})
}

func (t *taskTracker) openStream(to *jobTracker) {
	t.link = &link{w: t.w, jt: to, tt: t, jtLife: to.life, ttLife: t.life}
	to.accept(t.link)
	clear(t.inventory)
	t.step(core.StreamUp{LostLeader: t.lastHint})
}

// Pauses between dials stay short during an election and grow then, as in the real task tracker.
const (
	minDialPause      = 50 * time.Millisecond
	electionDialPause = 250 * time.Millisecond
	electionDials     = 12
	maxDialPause      = 4 * time.Second
)

func (t *taskTracker) dialAgain() {
	pause := max(t.dialPause, minDialPause)
	t.dialPause = min(2*pause, maxDialPause, lease/2)
	if t.pauses++; t.pauses < electionDials {
		t.dialPause = min(t.dialPause, electionDialPause)
	}
	t.dial(pause/2 + t.w.upTo(pause/2))
}

// nextToDial returns the hinted leader, or else each job tracker after the other.
func (t *taskTracker) nextToDial() *jobTracker {
	for _, n := range t.w.jts {
		if n.addr() == t.leaderHint {
			t.leaderHint = ""
			return n
		}
	}
	t.lastDialed++
	return t.w.jts[t.lastDialed%len(t.w.jts)]
}

// closed handles the end of a stream by the other side or the network.
func (t *taskTracker) closed(l *link) {
	if t.link != l {
		return
	}
	t.link = nil
	t.step(core.StreamDown{})
	t.dialAgain()
}

// cut breaks the stream.
func (t *taskTracker) cut() {
	if t.link != nil {
		t.w.note("the stream of %s breaks", t.name)
		t.link.reset(nil)
	}
}

func (t *taskTracker) received(l *link, m wire.Message) {
	if t.link != l {
		return
	}
	if refuse, ok := m.(*wire.Refuse); ok {
		t.leaderHint = refuse.Leader
		if refuse.Leader != "" && refuse.Leader != t.lastHint {
			t.lastHint, t.dialPause, t.pauses = refuse.Leader, 0, 0
		}
	}
	if w, ok := m.(*wire.Welcome); ok {
		t.leaderHint, t.lastHint, t.dialPause, t.pauses = w.Leader, w.Leader, 0, 0
	}
	if _, ok := m.(*wire.DropJob); ok && t.w.sabotage == keepJobs {
		return
	}
	t.w.book.checkReceived(t.w, t, m)
	t.step(core.FromLeader{Message: m})
}

func (t *taskTracker) tick(time.Duration) { t.step(core.Tick{}) }

func (t *taskTracker) step(ev core.Event) {
	w := t.w
	u := t.use(ev)
	begin := w.stepping.meter.begin()
	commands := t.core.Step(t.clock(), ev)
	took := w.stepping.meter.since(begin)
	for _, c := range commands {
		u.Sizes[2] += itemsOfTask(c)
	}
	w.stepping.meter.report(u, took)
	t.spend(&u, len(commands), func() {
		for _, c := range commands {
			w.digest.add(w, t.name, c)
			t.carryOut(c)
			if t.core == nil {
				return
			}
		}
	})
	t.wake(t.core.Wake())
}

func (t *taskTracker) carryOut(c core.Command) {
	switch c := c.(type) {
	case core.Send:
		t.send(c.Message)
	case core.Hangup:
		t.hangup(c)
	case core.StartWorker:
		t.startWorker(c)
	case core.SendWorker:
		if p := t.workers[c.Worker]; p != nil {
			p.receive(c.Message)
		}
	case core.KillWorker:
		if p := t.workers[c.Worker]; p != nil {
			p.kill()
		}
	case core.StopWorker:
		if p := t.workers[c.Worker]; p != nil {
			p.kill()
		}
	case core.ReadLog:
		if t.unreadable {
			return // the read waits for a bad disk
		}
		t.later(t.w.upTo(20*time.Millisecond), func() {
			t.step(core.LogRead{Attempt: c.Attempt, Text: "log", Record: t.positions[c.Position]})
		})
	case core.Remove:
		t.work.disk.run(t.upTo(5*time.Millisecond), func() { t.remove(c.Path) })
	case core.ReadNonce:
		t.work.nonce.next = &c
		t.readNonce()
	case core.Probe:
		t.probe(c)
	case core.Record:
		t.record(c)
	case core.Limit:
		if p := t.workers[c.Worker]; p != nil {
			p.limited = c.Memory > 0 || c.Processes > 0
		}
	case core.StoreCluster:
		t.store(&t.cluster, c.Cluster)
	case core.StoreStaging:
		t.store(&t.staging, c.Staging)
	case core.Leave:
		t.leave()
	case core.Quit:
		t.w.fail("%s quits: %s", t.name, c.Reason)
	case core.RemoveProgram:
		delete(t.work.programs, c.Staging)
	case core.Share, core.AttemptEnded:
	default:
		t.gather(c)
	}
}

func (t *taskTracker) send(m wire.Message) {
	if t.link == nil {
		return
	}
	if hello, ok := m.(*wire.Hello); ok && t.w.sabotage == announceSlots {
		hello.MapSlots++
		hello.ReduceSlots++
	}
	if hello, ok := m.(*wire.Hello); ok && t.w.sabotage == announceRoom && hello.Memory > 0 {
		hello.Memory += 100 << 20
	}
	t.w.book.checkReported(t.w, t, m)
	t.link.toLeader(m)
}

// upTo draws the time of an effect when it begins.
func (t *taskTracker) upTo(d time.Duration) func() (time.Duration, bool) {
	return func() (time.Duration, bool) { return t.w.upTo(d), true }
}

// store stores a line in the tracker's directory. If that fails, the process ends.
func (t *taskTracker) store(line *string, text string) {
	t.beside(t.w.upTo(10*time.Millisecond), func() {
		if t.w.fault(t.w.rates.disks) {
			t.w.note("%s cannot store %s", t.name, text)
			t.crash(t.w.upTo(5 * time.Second))
			return
		}
		*line = text
	})
}

// readNonce reads the proof that the staging directory is shared, one at a time.
func (t *taskTracker) readNonce() {
	x := &t.work.nonce
	if x.next == nil || x.reading {
		return
	}
	c := *x.next
	x.next, x.reading = nil, true
	t.later(t.w.upTo(10*time.Millisecond), func() {
		x.reading = false
		ev := core.NonceRead{Stream: c.Stream}
		if t.machine.refusesCalls || t.w.fault(t.w.rates.files) {
			ev.Error = errFault.Error()
		} else {
			ev.Nonce = t.w.read(c.File)
		}
		t.step(ev)
		t.readNonce()
	})
}

func (t *taskTracker) hangup(c core.Hangup) {
	l := t.link
	if l == nil {
		return
	}
	t.w.note("%s hangs up: %s", t.name, c.Reason)
	if strings.HasPrefix(c.Reason, "nothing was heard") {
		t.w.book.silences++
		t.leaderHint = ""
	}
	t.link = nil
	l.finish(l.jt)
	t.dialAgain()
}

func (t *taskTracker) remove(path string) {
	for _, id := range sortedKeys(t.workers) {
		p := t.workers[id]
		for _, run := range p.reading {
			if within(run.File, path) {
				t.w.fail("V8: %s removes %s while %v reads it", t.name, path, p.run.Attempt)
			}
		}
	}
	t.disk.remove(path)
}

// leftovers describes leftovers on the tracker at the end of a run.
func (t *taskTracker) leftovers() string {
	text := ""
	for _, name := range t.disk.jobFiles() {
		text += fmt.Sprintf("\n%s still has the file %s", t.name, name)
	}
	for _, id := range sortedKeys(t.workers) {
		text += fmt.Sprintf("\n%s still has the worker %d of %s", t.name, id, t.workers[id].staging)
	}
	for _, p := range t.orphans {
		if !p.dead.Load() {
			text += fmt.Sprintf("\na worker of %s outlives the process of %s that started it", p.staging, t.name)
		}
	}
	for _, id := range sortedAttempts(t.open) {
		text += fmt.Sprintf("\n%s has not ended %v", t.name, id)
	}
	if n := len(t.fetches) + len(t.merges); n > 0 {
		text += fmt.Sprintf("\n%s still has %d fetches and merges", t.name, n)
	}
	return text
}
