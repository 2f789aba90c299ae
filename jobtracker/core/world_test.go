package core

import (
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

// world is a cluster in virtual time: one job tracker that loses and regains leadership over an
// unreliable log, trackers that fail in every way, and a file system that knows only the
// renames of commits. It is kept simple, and checks the package's invariants.
type world struct {
	t    testing.TB
	rnd  *rand.Rand
	now  time.Duration
	seq  int
	todo timeline

	core     *Core
	leading  bool
	term     uint64
	log      []Entry
	inFlight []*proposal
	repeated string // key of the proposal that is repeated
	streams  map[Stream]*link
	last     Stream
	trackers []*simTracker
	calm     bool // no more faults

	jobs          map[wire.JobID]*simJob
	splits        map[wire.JobID][]Split
	scheduling    wire.Scheduling
	policies      *rand.Rand
	asked         []*simSubmission
	tokens        map[Token]func(Reply)
	token         Token
	fs            map[wire.TaskID]*committedOutput // committed output
	fenced        map[wire.AttemptID]bool
	grants        map[wire.TaskID]wire.AttemptID // granted and neither ended nor fenced
	done          map[wire.TaskID]bool           // committed in the log
	outcomes      map[wire.JobID]wire.State      // in histories
	assignedHomes map[assignedHome]bool          // homes that trackers were assigned
	trace         []string
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
	nondeterministic bool // its maps produce other records each time
	plan             *wire.JobPlan
}

type timeline []moment

type moment struct {
	at  time.Duration
	seq int
	do  func()
}

func (q timeline) Len() int { return len(q) }
func (q timeline) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q timeline) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *timeline) Push(x any)   { *q = append(*q, x.(moment)) }
func (q *timeline) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, 1)),
		streams: make(map[Stream]*link), jobs: make(map[wire.JobID]*simJob), splits: make(map[wire.JobID][]Split), tokens: make(map[Token]func(Reply)),
		fs: make(map[wire.TaskID]*committedOutput), fenced: make(map[wire.AttemptID]bool),
		grants: make(map[wire.TaskID]wire.AttemptID), done: make(map[wire.TaskID]bool), outcomes: make(map[wire.JobID]wire.State), assignedHomes: make(map[assignedHome]bool),
	}
	w.drawScheduling(seed)
	w.core = New(w.config())
	for i := range 2 + w.rnd.IntN(3) {
		w.trackers = append(w.trackers, newSimTracker(w, fmt.Sprintf("t%d", i+1)))
	}
	return w
}

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

// fault is chance, but never true when the world is calm.
func (w *world) fault(p float64) bool { return !w.calm && w.chance(p) }

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rnd.Int64N(int64(d) + 1)) }

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

// run lets time pass, and wakes the core when it asks for it.
func (w *world) run(until func() bool, end time.Duration) bool {
	for !until() {
		at, wakes := w.core.Wake()
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
			if at, wakes := w.core.Wake(); wakes && at <= w.now {
				w.fail("the core asks to be woken at %v, and it is %v", at, w.now)
			}
		default:
			return until()
		}
	}
	return true
}

func (w *world) step(ev Event) {
	commands := w.core.Step(w.now, ev)
	w.checkLines()
	w.checkAssigned()
	checkReduces(w.core, w.fail)
	checkHolds(w.core, w.fail)
	w.checkMatched(commands)
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
		w.after(w.upTo(20*time.Millisecond), func() { w.settleProposal(p) })
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
		if answer := w.tokens[c.Token]; answer != nil {
			delete(w.tokens, c.Token)
			answer(c)
		} else {
			w.fail("second reply to %d: %+v", c.Token, c)
		}
	case Note:
	case Halt:
		w.fail("halt: %v", c.Err)
	default:
		w.effect(c)
	}
}

var worldConfig = Config{ID: "jt", Staging: "mem://s", Cluster: "c", Nonce: "nonce", History: true, Tidy: 10 * time.Second, Scheduling: wire.Scheduling{Delay: "fixed=" + worldDelay.String()},
	DrainServes: 3 * time.Second, DrainLasts: 9 * time.Second,
}

var errSim = errors.New("simulated fault")

// config is the world's own scheduling over worldConfig.
func (w *world) config() Config {
	cfg := worldConfig
	cfg.Scheduling = w.scheduling
	return cfg
}

// drawScheduling picks the world's scheduling by its seed.
func (w *world) drawScheduling(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 8))
	names := menu.Names()
	w.scheduling = wire.Scheduling{
		Scheduler: names[rnd.IntN(len(names))],
		Delay:     []string{"none", "fixed=" + worldDelay.String(), "paper", "dynamic"}[rnd.IntN(4)],
	}
	w.policies = rnd
}

// worldPools limits jobs, differently at each reading.
func (w *world) worldPools() pool.Table {
	limit := func() int { return []int{pool.Unlimited, 1, 2}[w.policies.IntN(3)] }
	return pool.Table{From: "pools", Pools: []pool.Pool{{
		Name: wire.DefaultPool, Max: [2]int{limit(), limit()}, MaxRunning: limit(),
	}}}
}

// effect answers an effect some time later, perhaps with an error.
func (w *world) effect(c Command) {
	var err error
	if w.fault(0.1) {
		err = errSim
	}
	var ev Event
	delay := w.upTo(30 * time.Millisecond)
	switch c := c.(type) {
	case LoadSplits:
		ev = SplitsLoaded{Epoch: c.Epoch, Job: c.Job, Splits: w.simSplits(c), Err: err}
		delay += c.After
	case RemoveStaging:
		ev = StagingRemoved{Epoch: c.Epoch, Key: c.Key, Err: err}
		delay += c.After
	case WriteHistory:
		ev = HistoryWritten{Epoch: c.Epoch, Job: c.Job, Err: err}
		delay += c.After
		if err == nil || w.chance(0.5) {
			w.writeHistory(c)
		}
	case LoadHistory:
		ev = HistoryLoaded{Epoch: c.Epoch, Name: c.Name, Profile: &history.Profile{Job: c.Job}, Err: err}
		if _, ok := w.outcomes[c.Job]; !ok {
			w.fail("LoadHistory of %v, which has no history", c.Job)
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
		plan.Portions = w.drawPortions(c.Snapshot)
		ev = Allocated{Epoch: c.Epoch, Seq: c.Seq, Phase: c.Phase, Plan: plan, Err: err}
	default:
		w.fail("unknown command %T", c)
	}
	w.after(delay, func() { w.step(ev) })
}

// settleProposal decides about a proposal: committed, lost, or unknown.
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
	if unknown && w.leading && w.term == p.term {
		w.note("undecided %s", p.key)
		w.repeated = p.key
		w.step(Undecided{Key: p.key})
		w.repeated = ""
	}
}

func (w *world) commit(p *proposal) {
	e := Entry{Index: uint64(len(w.log) + 1), Term: p.term, Data: p.data}
	w.log = append(w.log, e)
	w.note("entry %d: %s", e.Index, p.key)
	w.step(e)
	w.checkFacts()
}

// elect makes the job tracker leader of a new term, perhaps after a restart from a snapshot.
// Some pending proposals are committed, others lost.
func (w *world) elect() {
	if w.leading {
		w.note("deposed")
		w.step(Deposed{})
		w.leading = false
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
		w.core = New(w.config())
		w.step(Restored{Snapshot: data})
	}
	w.after(w.upTo(2*time.Second), func() {
		w.term++
		w.leading = true
		w.note("elected %d", w.term)
		w.step(Elected{Term: w.term, Wall: scenarioStart + w.now.Milliseconds()})
	})
}

// request sends a client's request until a leader answers it.
func (w *world) request(make func(Token) Event, answered func(Reply)) {
	w.token++
	w.tokens[w.token] = func(r Reply) {
		if errors.Is(r.Err, ErrNotLeader) {
			w.after(100*time.Millisecond, func() { w.request(make, answered) })
			return
		}
		answered(r)
	}
	w.step(make(w.token))
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

// job finds a job by id, before the client knows the id.
func (w *world) job(id wire.JobID) *simJob {
	if w.jobs[id] == nil {
		f := w.core.facts.Find(id)
		plan := f.Plan()
		w.jobs[id] = &simJob{
			maps: int(num(plan.Properties["sim.maps"])), reduces: plan.Reduces,
			nondeterministic: plan.Properties["sim.erratic"] == "1", plan: plan,
		}
	}
	return w.jobs[id]
}

// digest is the digest of a map attempt's output.
func (w *world) digest(id wire.AttemptID) uint64 {
	d := uint64(id.Task.Job.N*1000 + id.Task.N + 1)
	if w.job(id.Task.Job).nondeterministic {
		d += uint64(id.N) << 20
	}
	return d
}

// checkSend checks a message that the leader sends.
func (w *world) checkSend(c Send) {
	w.checkDrained(c)
	m, ok := c.Message.(*wire.Launch)
	if !ok {
		return
	}
	f := w.core.facts.Find(m.Attempt.Task.Job)
	switch kind := m.Attempt.Task.Kind; {
	case f == nil || f.Ended():
		w.fail("%v launched for a job that has ended", m.Attempt)
	case f.Stopping() && kind != wire.Cleanup:
		w.fail("%v launched for a job that stops", m.Attempt)
	case kind == f.Kind() && f.Committed(m.Attempt.Task.N):
		w.fail("%v launched for a committed task", m.Attempt)
	case kind.Slotted() && w.core.live.fleet.bound[c.Stream].Excluded != "":
		w.fail("%v launched on a tracker that is excluded", m.Attempt)
	case kind == wire.Map:
		w.checkRetry(m.Attempt.Task, w.core.live.fleet.bound[c.Stream])
	}
}

// checkRetry: a map returns to a tracker where it failed only after its wait for another one.
func (w *world) checkRetry(id wire.TaskID, t *tracker) {
	j := w.core.live.job(id.Job)
	if tk := j.task(id); j.avoids(tk, t) && j.faults.AvoidUntil(tk.key()) != 0 {
		w.fail("%v waits for another tracker and is relaunched on %s", id, t.Name)
	}
}

// writeHistory keeps the first history of a job, as files do.
func (w *world) writeHistory(c WriteHistory) {
	if was, ok := w.outcomes[c.Job]; ok && was != c.Record.Job.State {
		w.fail("%v: its history said %v and now %v", c.Job, was, c.Record.Job.State)
	}
	w.outcomes[c.Job] = c.Record.Job.State
	for i := range c.Record.Attempts {
		a := &c.Record.Attempts[i]
		if !a.State.Final() || a.Took < 0 {
			w.fail("%v: in its history %v is %v for %d ms", c.Job, a.Attempt, a.State, a.Took)
		}
		if i > 0 && c.Record.Attempts[i-1].Attempt.Compare(a.Attempt) >= 0 {
			w.fail("%v: its history names %v twice or too late", c.Job, a.Attempt)
		}
	}
}

// checkLines checks the place of every job in the lines of jobs.
func (w *world) checkLines() {
	l := w.core.live
	if l == nil {
		return
	}
	for i := range l.phases {
		line := l.assign.InLine(i)
		for _, j := range l.order {
			may := assigning{l}.Runnable(&j.assign) && !j.assign.Barred() && !j.assign.Pool().Full(i)
			if j.assign.MayTake(i) != may {
				w.fail("%v may have %v slots: %v", j.id, l.phases[i].kind, !may)
			}
			waits := may && l.toLaunch(j, i) > 0
			if i == mapPhase {
				_, deferred := j.assign.Deferred()
				waits = waits && !deferred && l.toLaunch(j, i) > j.assign.Queued(i)
			}
			if in := slices.Contains(line, &j.assign); in != waits {
				w.fail("%v is in line for a %v slot: %v", j.id, l.phases[i].kind, in)
			}
		}
	}
}

// checkFacts checks Facts against the file system and against earlier Facts.
func (w *world) checkFacts() {
	for f := range w.core.facts.Jobs() {
		id := w.core.facts.ID(f.N())
		for i := range f.Commits() {
			if !f.Committed(i) {
				continue
			}
			task := wire.TaskID{Job: id, Kind: f.Kind(), N: i}
			if w.fs[task] == nil {
				w.fail("%v is committed in the log, not in the file system", task)
			}
			w.done[task] = true
		}
		if f.Ended() && f.End().Outcome == wire.Succeeded && f.CommittedTasks() != f.Commits() {
			w.fail("%v succeeded with %d of %d tasks committed", id, f.CommittedTasks(), f.Commits())
		}
	}
	for task := range w.done {
		if f := w.core.facts.Find(task.Job); f != nil && !f.Committed(task.N) {
			w.fail("%v is no longer committed", task)
		}
	}
}

func sortedNumbers[V any](m map[int]V) []int {
	var ns []int
	for n := range m {
		ns = append(ns, n)
	}
	slices.Sort(ns)
	return ns
}
