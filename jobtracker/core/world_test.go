package core

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// world is a cluster in virtual time. Its only job tracker is deposed and elected again, over an
// unreliable log. Its trackers fail in every way, and its file system has only the renames of
// commits. It checks the invariants of the package.
type world struct {
	t    testing.TB
	rnd  *rand.Rand
	now  time.Duration
	seq  int
	todo timeline

	core         *Core
	isLeader     bool
	term         uint64
	log          []Entry
	inFlight     []*proposal
	undecidedKey string // key of the proposal in the current Undecided
	streams      map[Stream]*link
	lastStream   Stream
	trackers     []*simTracker
	calm         bool // no more faults

	jobs           map[wire.JobID]*simJob
	splits         map[wire.JobID][]Split
	scheduling     wire.Scheduling
	schedulingRand *rand.Rand
	badTaskRand    *rand.Rand
	submissions    []*simSubmission
	answers        map[Token]func(Reply)
	lastToken      Token
	committed      map[wire.TaskID]*committedOutput // in the file system
	fenced         map[wire.AttemptID]bool
	grants         map[wire.TaskID]wire.AttemptID // attempts with a grant that have neither ended nor been fenced
	loggedCommits  map[wire.TaskID]bool           // tasks that the log has as committed
	outcomes       map[wire.JobID]wire.State      // in histories
	assignedHomes  map[assignedHome]bool          // all homes set so far
	seconds        int                            // attempts launched beside another one
	trace          []string
	budget         int // see Core.budget
	statuses       statusCheck
}

type proposal struct {
	key  string
	data []byte
	term uint64
}

// committedOutput is the output of a committed attempt.
type committedOutput struct {
	attempt wire.AttemptID
	content uint64
}

type simSubmission struct {
	sub *wire.Submission
	ids []wire.JobID
}

type simJob struct {
	maps, reduces    int
	nondeterministic bool // each attempt of a map produces other records
	plan             *wire.JobPlan
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)),
		streams: make(map[Stream]*link), jobs: make(map[wire.JobID]*simJob), splits: make(map[wire.JobID][]Split), answers: make(map[Token]func(Reply)),
		committed: make(map[wire.TaskID]*committedOutput), fenced: make(map[wire.AttemptID]bool),
		grants: make(map[wire.TaskID]wire.AttemptID), loggedCommits: make(map[wire.TaskID]bool), outcomes: make(map[wire.JobID]wire.State), assignedHomes: make(map[assignedHome]bool),
	}
	w.drawScheduling(seed)
	w.core = w.newCore()
	for i := range 2 + w.rnd.IntN(3) {
		w.trackers = append(w.trackers, newSimTracker(w, fmt.Sprintf("t%d", i+1)))
	}
	if seed%3 == 0 {
		w.trackers[0].slow = 20
	}
	return w
}

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

// fault is true with a probability, but never when the world is calm.
func (w *world) fault(p float64) bool { return !w.calm && w.chance(p) }

// randomTime returns a time from 0 to d.
func (w *world) randomTime(d time.Duration) time.Duration {
	return time.Duration(w.rnd.Int64N(int64(d) + 1))
}

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.todo, moment{w.now + d, w.seq, do})
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%8v ", w.now.Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	n := max(0, len(w.trace)-150)
	for _, line := range w.trace[n:] {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

// pieceTime is the time between two pieces of long works, if these take many Steps.
const pieceTime = 100 * time.Microsecond

// run lets time pass until a condition holds, or until end. It wakes the core in time.
func (w *world) run(until func() bool, end time.Duration) bool {
	for !until() {
		at, wakes := w.core.Wake()
		if at <= w.now && w.budget != stepBudget {
			at = w.now + pieceTime // other events come between two pieces
		}
		switch {
		case len(w.todo) > 0 && (!wakes || w.todo[0].at <= at):
			if w.todo[0].at > end {
				return false
			}
			m := heap.Pop(&w.todo).(moment)
			w.now = max(w.now, m.at)
			m.do()
		case wakes:
			if at > end {
				return false
			}
			w.now = max(w.now, at)
			w.step(Tick{})
			checkWake(w.core, w.now, w.fail)
		default:
			return until()
		}
	}
	return true
}

func (w *world) step(ev Event) {
	commands := w.core.Step(w.now, ev)
	w.checkInLine()
	w.checkFreeSlots()
	checkReduces(w.core, w.fail)
	checkHolds(w.core, w.fail)
	checkSlotTime(w.core, w.fail)
	w.statuses.check(w.core, w.fail)
	w.checkMatching(commands)
	w.checkShares(commands)
	for _, c := range commands {
		w.carryOut(c)
	}
}

func (w *world) carryOut(c Command) {
	switch c := c.(type) {
	case Propose:
		w.checkProposal(c)
		p := &proposal{c.Key, c.Data, w.term}
		w.inFlight = append(w.inFlight, p)
		w.after(w.randomTime(20*time.Millisecond), func() { w.settleProposal(p) })
	case Send:
		w.checkSend(c)
		if l := w.streams[c.Stream]; l != nil {
			l.toTracker(c.Message)
		}
	case CloseStream:
		if l := w.streams[c.Stream]; l != nil {
			l.closedByLeader()
		}
	case Reply:
		if answer := w.answers[c.Token]; answer != nil {
			delete(w.answers, c.Token)
			answer(c)
		} else {
			w.fail("second reply to %d: %+v", c.Token, c)
		}
	case LogLine:
	case Halt:
		w.fail("halt: %v", c.Err)
	default:
		w.answerEffect(c)
	}
}

var worldConfig = Config{ID: "jt", Staging: "mem://s", Cluster: "c", Nonce: "nonce", History: true, TidyPeriod: 10 * time.Second, Scheduling: wire.Scheduling{Delay: "fixed=" + worldDelay.String()},
	DrainServeTime: 3 * time.Second, DrainMaxTime: 9 * time.Second,
}

var errSim = errors.New("simulated fault")

// newCore makes a job tracker. In half of the worlds its long works take many Steps.
func (w *world) newCore() *Core {
	c := New(w.config())
	c.budget = w.budget
	return c
}

// config returns worldConfig with the world's scheduling.
func (w *world) config() Config {
	cfg := worldConfig
	cfg.Scheduling = w.scheduling
	return cfg
}

// drawScheduling draws the world's scheduling from a seed.
func (w *world) drawScheduling(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 8))
	names := menu.Names()
	w.scheduling = wire.Scheduling{
		Scheduler: names[rnd.IntN(len(names))],
		Delay:     []string{"none", "fixed=" + worldDelay.String(), "paper", "dynamic"}[rnd.IntN(4)],
	}
	w.schedulingRand, w.badTaskRand = rnd, rand.New(rand.NewPCG(seed, 9))
	w.budget = cmp.Or(w.budget, []int{stepBudget, 1 + rand.New(rand.NewPCG(seed, 10)).IntN(30)}[seed%2])
}

// worldPools draws a table with limits for the default pool.
func (w *world) worldPools() pool.Table {
	limit := func() int { return []int{pool.Unlimited, 1, 2}[w.schedulingRand.IntN(3)] }
	return pool.Table{From: "pools", Pools: []pool.Pool{{
		Name: wire.DefaultPool, Max: [2]int{limit(), limit()}, MaxRunning: limit(),
	}}}
}

// answerEffect answers an effect after some time, perhaps with an error.
func (w *world) answerEffect(c Command) {
	var err error
	if w.fault(0.1) {
		err = errSim
	}
	var ev Event
	delay := w.randomTime(30 * time.Millisecond)
	switch c := c.(type) {
	case LoadSplits:
		ev = SplitsLoaded{Epoch: c.Epoch, Job: c.Job, Splits: w.simSplits(c), Err: err}
		delay += c.Delay
	case RemoveStaging:
		ev = StagingRemoved{Epoch: c.Epoch, Key: c.Key, Err: err}
		delay += c.Delay
	case WriteHistory:
		ev = HistoryWritten{Epoch: c.Epoch, Job: c.Job, Err: err}
		delay += c.Delay
		if err == nil || w.chance(0.5) {
			w.writeHistory(c)
		}
	case LoadHistory:
		ev = HistoryLoaded{Epoch: c.Epoch, JobName: c.JobName, Profile: &history.Profile{Job: c.Job}, Err: err}
		if _, ok := w.outcomes[c.Job]; !ok {
			w.fail("the core loads the history of %v, which has none", c.Job)
		}
	case Tidy:
		ev = Tidied{Epoch: c.Epoch, Err: err}
	case Allocate:
		policy, perr := menu.Policy(c.Policy)
		if perr != nil {
			w.fail("policy: %v", perr)
		}
		plan, perr := policy.Plan(c.Snapshot)
		if perr != nil {
			w.fail("policy: %v", perr)
		}
		if verr := plan.Validate(c.Snapshot); verr != nil {
			w.fail("policy: %v", verr)
		}
		plan.ShuffleShares = w.drawPortions(c.Snapshot)
		ev = Allocated{Epoch: c.Epoch, Seq: c.Seq, Phase: c.Phase, Plan: plan, Err: err}
	default:
		w.fail("unknown command %T", c)
	}
	w.after(delay, func() { w.step(ev) })
}

// settleProposal commits a proposal. Sometimes it leaves the core undecided, and may lose it.
func (w *world) settleProposal(p *proposal) {
	i := slices.Index(w.inFlight, p)
	if i < 0 {
		return
	}
	w.inFlight = slices.Delete(w.inFlight, i, i+1)
	unknown := w.fault(0.05)
	if !unknown || w.chance(0.5) {
		w.commit(p)
	}
	if unknown && w.isLeader && w.term == p.term {
		w.note("undecided %s", p.key)
		w.undecidedKey = p.key
		w.step(Undecided{Key: p.key})
		w.undecidedKey = ""
	}
}

func (w *world) commit(p *proposal) {
	e := Entry{Index: uint64(len(w.log) + 1), Term: p.term, Data: p.data}
	w.log = append(w.log, e)
	w.note("entry %d: %s", e.Index, p.key)
	w.step(e)
	w.checkFacts()
}

// elect starts a new term, perhaps after a restart. It commits only some proposals in flight.
func (w *world) elect() {
	if w.isLeader {
		w.note("deposed")
		w.step(Deposed{})
		w.isLeader = false
	}
	for _, p := range w.inFlight {
		if w.chance(0.5) {
			w.commit(p)
		}
	}
	w.inFlight = nil
	if w.chance(0.5) {
		data, err := w.core.Snapshot()
		if err != nil {
			w.fail("snapshot: %v", err)
		}
		w.core = w.newCore()
		w.step(Restored{Snapshot: data})
	}
	w.after(w.randomTime(2*time.Second), func() {
		w.term++
		w.isLeader = true
		w.note("elected %d", w.term)
		w.step(Elected{Term: w.term, Wall: scenarioStart + w.now.Milliseconds()})
	})
}

// request sends a client's request again until a leader answers it.
func (w *world) request(make func(Token) Event, answered func(Reply)) {
	w.lastToken++
	w.answers[w.lastToken] = func(r Reply) {
		if errors.Is(r.Err, ErrNotLeader) {
			w.after(100*time.Millisecond, func() { w.request(make, answered) })
			return
		}
		answered(r)
	}
	w.step(make(w.lastToken))
}

func (w *world) submit(s *simSubmission) {
	w.request(func(token Token) Event {
		return Submit{Token: token, Wall: scenarioStart + w.now.Milliseconds(), Submission: s.sub, Secret: []byte(s.sub.Key)}
	}, func(r Reply) {
		if r.Err != nil || s.ids != nil && !slices.Equal(s.ids, r.Jobs) {
			w.fail("submission %s: %v %v, before %v", s.sub.Key, r.Jobs, r.Err, s.ids)
		}
		s.ids = r.Jobs
	})
}

// job finds a job by id. It uses the facts, since the client may not have the id yet.
func (w *world) job(id wire.JobID) *simJob {
	if w.jobs[id] == nil {
		f := w.core.facts.Find(id)
		plan := f.Plan()
		w.jobs[id] = &simJob{
			maps: int(num(plan.Properties["sim.maps"])), reduces: plan.Reduces,
			nondeterministic: plan.Properties["sim.nondeterministic"] == "1", plan: plan,
		}
	}
	return w.jobs[id]
}

// digest returns the digest of the output of a map attempt.
func (w *world) digest(id wire.AttemptID) uint64 {
	d := uint64(id.Task.Job.N*1000 + id.Task.N + 1)
	if w.job(id.Task.Job).nondeterministic {
		d += uint64(id.N) << 20
	}
	return d
}

// checkSend checks messages from the leader.
func (w *world) checkSend(c Send) {
	w.checkDrained(c)
	m, ok := c.Message.(*wire.Launch)
	if !ok {
		return
	}
	w.checkSecond(m.Attempt)
	f := w.core.facts.Find(m.Attempt.Task.Job)
	switch kind := m.Attempt.Task.Kind; {
	case f == nil || f.Ended():
		w.fail("%v is launched for a job that has ended", m.Attempt)
	case f.Stopping() && kind != wire.Cleanup:
		w.fail("%v is launched for a job that stops", m.Attempt)
	case kind == f.Kind() && f.Committed(m.Attempt.Task.N), kind.Slotted() && f.GivenUp(kind, m.Attempt.Task.N):
		w.fail("%v is launched for a task that has committed or was given up", m.Attempt)
	case kind.Slotted() && w.core.leader.fleet.byStream[c.Stream].Excluded != "":
		w.fail("%v is launched on an excluded tracker", m.Attempt)
	case kind == wire.Map:
		w.checkRetry(m.Attempt.Task, w.core.leader.fleet.byStream[c.Stream])
	}
}

// writeHistory checks a job's history, and that it agrees with earlier ones.
func (w *world) writeHistory(c WriteHistory) {
	r := c.Record()
	if before, ok := w.outcomes[c.Job]; ok && before != r.Job.State {
		w.fail("%v: its first history has the outcome %v, this one %v", c.Job, before, r.Job.State)
	}
	w.outcomes[c.Job] = r.Job.State
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if !a.State.Final() || a.Took < 0 {
			w.fail("%v: in its history attempt %v is %v after %d ms", c.Job, a.Attempt, a.State, a.Took)
		}
		if i > 0 && r.Attempts[i-1].Attempt.Compare(a.Attempt) >= 0 {
			w.fail("%v: its history has %v twice or out of order", c.Job, a.Attempt)
		}
	}
}

// checkInLine checks that a job is in line for slots exactly if it waits for one.
func (w *world) checkInLine() {
	l := w.core.leader
	if l == nil || l.hasWork() && l.assign.Changed() > 0 { // a work has changed jobs at the end of the Step
		return
	}
	for i := range l.phases {
		line := l.assign.InLine(i)
		for _, j := range l.order {
			may := assignCluster{l}.Runnable(&j.assign) && !j.assign.Barred() && !j.assign.Pool().Full(i)
			if j.assign.MayTake(i) != may {
				w.fail("%v may have %v slots: want %v", j.id, l.phases[i].kind, may)
			}
			waits := may && l.toLaunch(j, i) > 0
			if i == mapPhase {
				_, deferred := j.assign.Deferred()
				waits = waits && !deferred && !l.shutOut(j) && l.toLaunch(j, i) > j.assign.Queued(i)
			}
			if in := slices.Contains(line, &j.assign); in != waits {
				w.fail("%v is in line for a %v slot: %v, want %v", j.id, l.phases[i].kind, in, waits)
			}
		}
	}
}

// shutOut reports whether a job is shut out, and has a cause for that.
func (l *leader) shutOut(j *job) bool {
	for i := range l.assign.FreeTrackers(mapPhase).All() {
		if !j.assign.Banned(&l.fleet.byIndex[i].assign) {
			return false
		}
	}
	return j.assign.ShutOut()
}

// checkFacts compares the facts with the file system and with earlier facts.
func (w *world) checkFacts() {
	for f := range w.core.facts.Jobs() {
		id := w.core.facts.ID(f.N())
		for i := range f.Commits() {
			if !f.Committed(i) {
				continue
			}
			task := wire.TaskID{Job: id, Kind: f.Kind(), N: i}
			if w.committed[task] == nil {
				w.fail("%v is committed in the log, but not in the file system", task)
			}
			w.loggedCommits[task] = true
		}
		if f.Ended() && f.End().Outcome == wire.Succeeded && f.SettledTasks() != f.Commits() {
			w.fail("%v succeeded with %d of %d tasks committed or given up", id, f.SettledTasks(), f.Commits())
		}
	}
	for task := range w.loggedCommits {
		if f := w.core.facts.Find(task.Job); f != nil && !f.Committed(task.N) {
			w.fail("%v is no longer committed", task)
		}
	}
}
