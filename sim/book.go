package sim

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// clientJob is a job of a client's submission.
type clientJob struct {
	client *client
	index  int
}

// taskNumber is a task that commits: a job has only one kind of them.
type taskNumber struct{ job, task int }

// book records the events of a run and checks each new one against them.
type book struct {
	leaders           map[uint64]string // job tracker by epoch
	launched          map[wire.AttemptID]string
	ran               map[wire.AttemptID]string
	holders           map[wire.TaskID]*worker // workers that may rename a task's output into place
	renames           map[taskNumber]string   // attempt that renamed its output into place
	published         map[wire.TaskID]string  // attempt that published the files of a map
	commits           map[string]int          // "job/task" to attempt, by the log
	facts             map[int]uint64          // hash of the facts by index
	killAnswered      map[wire.JobID]bool     // jobs with an answered kill
	failAnswered      map[string]bool         // attempts that have failed on request
	lostFiles         map[string]bool         // removed by faults, not by trackers
	jobs              []clientJob             // by number, from 1, as in the log
	silences          int                     // streams that trackers have ended because they heard nothing
	losses            int                     // of trackers, by the log
	rejoined          time.Duration           // see Result.Rejoined
	liveJobs          int                     // that have not ended
	jobStates         map[int]*jobState       // by number
	keys              map[string]bool         // of submissions in the log
	failedRemovals    map[string]int          // failed removals of staging directories
	homes             map[string]bool         // assigned by leaders
	launchedSinceCalm map[wire.TaskID]bool    // tasks launched since the calm
	lateDirs          map[string]bool         // made for processes that had died
	limits            limitBook
}

func newBook(r *Result) book {
	return book{
		leaders: make(map[uint64]string), launched: make(map[wire.AttemptID]string), ran: make(map[wire.AttemptID]string),
		holders: make(map[wire.TaskID]*worker), renames: make(map[taskNumber]string), published: make(map[wire.TaskID]string), commits: make(map[string]int),
		facts: make(map[int]uint64), killAnswered: make(map[wire.JobID]bool), failAnswered: make(map[string]bool), lostFiles: make(map[string]bool),
		jobStates: make(map[int]*jobState), keys: make(map[string]bool), failedRemovals: make(map[string]int), homes: make(map[string]bool),
		launchedSinceCalm: make(map[wire.TaskID]bool), lateDirs: make(map[string]bool),
		limits: limitBook{most: make(map[string]ceiling)},
	}
}

// checkLeader checks a job tracker that believes it leads.
func (b *book) checkLeader(w *world, n *jobTracker) {
	epoch := n.core.Epoch()
	switch leader, known := b.leaders[epoch]; {
	case known && leader != n.name:
		w.fail("V5: %s and %s both lead in epoch %d", leader, n.name, epoch)
	case known:
		return
	}
	if epoch <= n.epoch {
		w.fail("V5: %s leads in epoch %d, after %d", n.name, epoch, n.epoch)
	}
	b.leaders[epoch], n.epoch = n.name, epoch
	w.note("%s leads in epoch %d", n.name, epoch)
	for _, c := range w.clients {
		for i, id := range c.ids {
			if s, ok := n.core.Status(id); !ok || s.Name != c.sub.Plan.Jobs[i].Name {
				w.fail("V7: %s leads in epoch %d and does not know the answered %v", n.name, epoch, id)
			}
		}
	}
}

// checkEntry checks a new entry of the log.
func (b *book) checkEntry(w *world, x logged) {
	b.limits.note(w, x)
	kind, rest, _ := strings.Cut(x.key, " ")
	switch kind {
	case "submitted":
		b.numberJobs(w, rest)
	case "lost":
		b.losses++
	case "committing", "stopped", "ended":
		job, outcome, err := parseJobEntry(rest)
		w.must(err)
		b.advanceJob(w, kind, job, outcome)
	case "splits-written":
		job, _, err := parseJobEntry(rest)
		w.must(err)
		b.checkSplits(w, job)
	case "committed", "revoked":
		var job, task, attempt int
		_, err := fmt.Sscanf(rest, "%d/%d/%d", &job, &task, &attempt)
		w.must(err)
		if kind == "revoked" {
			b.checkRevoked(w, job, task, attempt)
			return
		}
		name := fmt.Sprintf("%d/%d", job, task)
		if was, known := b.commits[name]; known && was != attempt {
			w.fail("V4: the log has attempts %d and %d of task %s committed", was, attempt, name)
		}
		b.commits[name] = attempt
		if !b.hasRenamed(job, task, attempt) {
			w.fail("V4: the log has attempt %d of task %s committed, but not in the file system", attempt, name)
		}
	}
}

// numberJobs records the numbers that the log gives to the jobs of a submission.
func (b *book) numberJobs(w *world, key string) {
	for _, c := range w.clients {
		for i := range c.sub.Plan.Jobs {
			if c.sub.Key == key && !b.keys[key] {
				b.jobs = append(b.jobs, clientJob{c, i})
				b.liveJobs++
				b.jobStates[len(b.jobs)] = &jobState{}
			}
		}
	}
	b.keys[key] = true
}

// checkRevoked checks that an attempt with a revoked grant has not used it and can no longer
// use it.
func (b *book) checkRevoked(w *world, job, task, attempt int) {
	if b.hasRenamed(job, task, attempt) {
		w.fail("V4: the log revokes the grant of attempt %d of task %d/%d, which has committed", attempt, job, task)
	}
	for id := range b.ran {
		if id.Task.Job.N == job && id.Task.N == task && id.N == attempt && !b.dirGone(w, id) {
			w.fail("V4: the log revokes the grant of %v, which can still use it", id)
		}
	}
}

func (b *book) hasRenamed(job, task, attempt int) bool {
	return strings.HasSuffix(b.renames[taskNumber{job, task}], fmt.Sprintf("_%d", attempt))
}

// checkFacts compares the facts of the job trackers after some entries.
func (b *book) checkFacts(w *world, n *jobTracker) {
	if n.applied%5 != 0 && n.applied < len(w.raft.log) || w.shape.calmFacts && n.applied%100 != 0 {
		return
	}
	h := fnv.New64a()
	h.Write(n.snapshot())
	switch sum, known := b.facts[n.applied]; {
	case !known:
		b.facts[n.applied] = h.Sum64()
	case sum != h.Sum64():
		w.fail("V6: the facts of %s at entry %d differ from those of another job tracker", n.name, n.applied)
	}
}

// checkSent checks a leader's message.
func (b *book) checkSent(w *world, n *jobTracker, l *link, m wire.Message) {
	b.checkDrain(w, n, l, m)
	if h, ok := m.(*wire.SetHome); ok {
		w.note("%s gives partition %d of %v the home %s", n.name, h.Partition, h.Job, l.tt.name)
	}
	launch, ok := m.(*wire.Launch)
	if !ok {
		return
	}
	w.note("%s launches %v on %s", n.name, launch.Attempt, l.tt.name)
	w.checkLaunch(n, launch.Attempt)
	if before := b.launched[launch.Attempt]; before != "" {
		w.fail("V2: %v is launched on %s, and was launched on %s", launch.Attempt, l.tt.name, before)
	}
	b.launched[launch.Attempt] = l.tt.name
	if task := launch.Attempt.Task; w.calm && task.Kind != wire.Fence { // any number of fences is possible
		b.launchedSinceCalm[task] = true
	}
	b.checkInputs(w, launch.Attempt)
}

// checkReceived checks a message from a job tracker to a tracker.
func (b *book) checkReceived(w *world, t *taskTracker, m wire.Message) {
	switch m := m.(type) {
	case *wire.Welcome:
		if m.Epoch < t.epoch && t.core != nil {
			return // the tracker will reject it
		}
		t.epoch = m.Epoch
		if m.Incarnation != t.incarnation { // running attempts end without a report
			t.incarnation = m.Incarnation
			clear(t.open)
		}
	case *wire.Drained:
		if m.Epoch >= t.epoch {
			b.checkDrained(w, t)
		}
	case *wire.DropJob:
		for id := range t.open {
			if m.Epoch >= t.epoch && id.Task.Job == m.Job {
				delete(t.open, id)
			}
		}
	case *wire.Launch:
		if m.Epoch >= t.epoch {
			t.open[m.Attempt] = true
			t.checkOpen(m.Attempt.Task.Kind)
			t.checkRoom()
		}
	}
}

// checkOpen checks that a tracker has slots for all launched attempts of a kind.
func (t *taskTracker) checkOpen(kind wire.Kind) {
	if !kind.Slotted() {
		return
	}
	open := 0
	for id := range t.open {
		if id.Task.Kind == kind {
			open++
		}
	}
	if slots := t.slotsOf(kind); open > slots {
		t.w.fail("V1: %d %ss are launched on %s, which has %d slots: %v", open, kind, t.name, slots, sortedAttempts(t.open))
	}
}

func (t *taskTracker) slotsOf(k wire.Kind) int {
	if k == wire.Reduce {
		return t.slots[1]
	}
	return t.slots[0]
}

// checkReported checks a message from a tracker to a job tracker.
func (b *book) checkReported(w *world, t *taskTracker, m wire.Message) {
	final := func(r *wire.Report) {
		if !r.State.Final() {
			return
		}
		if t.open[r.Attempt] {
			text := ""
			if r.Result != nil {
				text = r.Result.Error
			}
			w.note("%s ends %v: %v %s", t.name, r.Attempt, r.State, text)
		}
		delete(t.open, r.Attempt)
	}
	switch m := m.(type) {
	case *wire.Report:
		final(m)
	case *wire.Inventory:
		for i := range m.Attempts {
			final(&m.Attempts[i])
			t.inventory[m.Attempts[i].Attempt] = true
		}
		if !m.More {
			for id := range t.open {
				if !t.inventory[id] { // it has ended, but its output was on a failed disk
					delete(t.open, id)
				}
			}
			clear(t.inventory)
		}
	}
}

// checkStarted checks an attempt that a worker is to run.
func (b *book) checkStarted(w *world, p *worker, run *wire.Run) {
	id := run.Attempt
	if p.tt.workers[p.id] != p || p.run != nil {
		w.fail("a worker of %s already runs an attempt and is to run %v", p.tt.name, id)
	}
	if where := b.ran[id]; where != "" {
		w.fail("V2: %v runs on %s, and ran on %s", id, p.tt.name, where)
	}
	b.ran[id] = p.tt.name
	if !id.Task.Kind.Slotted() {
		return
	}
	busy := 1
	for _, other := range p.tt.workers {
		if other.run != nil && other.run.Attempt.Task.Kind == id.Task.Kind {
			busy++
		}
	}
	if slots := p.tt.slotsOf(id.Task.Kind); busy > slots {
		w.fail("V1: %s runs %d %ss in %d slots", p.tt.name, busy, id.Task.Kind, slots)
	}
}

// checkGranted checks a worker that gets a grant.
func (b *book) checkGranted(w *world, p *worker) {
	task := p.run.Attempt.Task
	if b.fenced(w, p) {
		return // the grant came too late
	}
	if other := b.holders[task]; other != nil && other != p && !b.fenced(w, other) {
		w.fail("V3: %v and %v may both commit", p.run.Attempt, other.run.Attempt)
	}
	b.holders[task] = p
}

// fenced reports whether a worker with a grant can no longer use it.
func (b *book) fenced(w *world, p *worker) bool {
	return p.dead.Load() || p.run == nil || b.dirGone(w, p.run.Attempt)
}

// dirGone reports whether the directory of an attempt is gone, so that it cannot be renamed
// into place.
func (b *book) dirGone(w *world, id wire.AttemptID) bool {
	c, i := w.job(id.Task.Job)
	_, err := w.fs.Stat(fmt.Sprintf("%s/_temporary/%v/a/%v", outputOf(c.sub, i), id.Task.Job, id))
	return err != nil
}

// dropGrant removes a dead worker from the holders of grants.
func (b *book) dropGrant(p *worker) {
	if p.run != nil && b.holders[p.run.Attempt.Task] == p {
		delete(b.holders, p.run.Attempt.Task)
	}
}

// checkRename checks a rename that was carried out for a worker.
func (b *book) checkRename(p *worker, from, to string) {
	w := p.w
	task, err := wire.ParseTaskID(to[strings.LastIndexByte(to, '/')+1:])
	if err != nil || !strings.Contains(to, "/t/") {
		return
	}
	by := from[strings.LastIndexByte(from, '/')+1:]
	if w.publishes(task) {
		b.checkPublished(w, task, by)
		return
	}
	if !p.granted {
		w.fail("V3: %s renames its output to %s without a grant", by, to)
	}
	number := taskNumber{task.Job.N, task.N}
	if before := b.renames[number]; before != "" {
		w.fail("V3: %s renames its output to %s, as %s has before", by, to, before)
	}
	b.renames[number] = by
}
