package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/announce"
	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/faults"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/jobtracker/core/health"
	"github.com/quernmr/quern/jobtracker/core/past"
	"github.com/quernmr/quern/jobtracker/core/settings"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// job is the leader's state of a job that has not ended. Several files change the largest parts:
// partitions (homes.go, placing.go, moving.go, retry.go, inventory.go) and outputs (maps.go,
// homes.go, moving.go, restart.go, commit.go). The small fields that each end of a task reads come
// first, to share cache lines.
type job struct {
	facts        *facts.Job
	id           wire.JobID
	recovering   bool         // it waits for the trackers' inventories after a change of leader
	touched      bool         // it is in todo.touched
	touchedLater bool         // it is in works.later
	heldBy       string       // why limits of users or of pools around its pool keep it from slots, see poollimits.go
	limits       []int32      // of running jobs that concern it, as limitsBy has found them
	limitsBy     *pool.Holder // nil: not found yet
	bad          badTasks
	trackers     health.OfJob // where its attempts fail
	speculating  speculating
	finish       finishing
	maps         []mapTask
	reduces      []task
	attempts     attempts // running attempts
	spec         jobSpec
	service      serviceTasks
	splits       splitsRead
	assign       assign.Job
	ended        past.Attempts
	faults       faults.Faults
	outputs      mapOutputs
	partitions   partitions
	tally        tally
	measures     forecast.Measures
	profile      *history.Profile // profile of the last job with the same name; nil: none, or not loaded yet
	planned      planRecord
}

// jobSpec is what was submitted, and when.
type jobSpec struct {
	plan    *wire.JobPlan
	token   string        // see facts.Facts.Token
	arrived time.Duration // when it was submitted; negative if before this process started
	settings.Settings
}

func (l *leader) job(id wire.JobID) *job {
	if id.Start != l.facts.Boot().Start {
		return nil
	}
	return l.jobs[id.N]
}

func (l *leader) addJob(f *facts.Job, arrived time.Duration) *job {
	id := l.facts.ID(f.N())
	j := &job{facts: f, id: id, ended: past.New()}
	asked := settings.Of(f.Plan())
	j.spec = jobSpec{plan: f.Plan(), token: l.facts.Token(f), arrived: arrived, Settings: l.c.cfg.Limits.Maximum.Cap(asked)}
	j.service = newServiceTasks()
	j.tally.counters = make(wire.Counters)
	if l.sharing.limits.running {
		j.heldBy = notChecked
	}
	l.waitForPart(poolName(f.Submission()))
	l.loadProfile(j)
	l.assign.AddJob(&j.assign, f.N(), j)
	l.assign.SetRequests(&j.assign, j.spec.requests(asked))
	l.jobs[f.N()] = j
	l.limited.quota.Add(f.N(), quotaJob(f.Submission()))
	if most := l.c.cfg.Limits.Maximum.Lifetime; most > 0 {
		l.alarm(j, j.spec.arrived+most)
	}
	i, _ := slices.BinarySearchFunc(l.order, f.N(), func(x *job, n int) int { return cmp.Compare(x.facts.N(), n) })
	l.order = slices.Insert(l.order, i, j)
	if f.Maps() >= 0 {
		l.makeTasks(j)
	}
	l.touch(j)
	return j
}

func (l *leader) splitsWritten(j *job) {
	l.logJob(j.facts, "job started", "maps", j.facts.Maps(), "reduces", j.facts.Reduces())
	l.makeTasks(j)
	l.touch(j)
}

// makeTasks makes the maps and reduces, once the number of maps is known.
func (l *leader) makeTasks(j *job) {
	l.limited.quota.Begin(j.facts.N())
	j.maps, j.reduces = make([]mapTask, j.facts.Maps()), make([]task, j.facts.Reduces())
	j.ended.Expect(len(j.maps) + len(j.reduces))
	for i := range j.maps {
		j.maps[i].kind, j.maps[i].n = wire.Map, int32(i)
	}
	for i := range j.reduces {
		j.reduces[i].kind, j.reduces[i].n = wire.Reduce, int32(i)
	}
	j.partitions.makeHomes(len(j.reduces), j.facts.Settled)
	if !j.isSmall() {
		j.assign.Warm = 0 // of the setup
	}
	if len(j.reduces) > 0 {
		j.outputs.log = announce.NewLog(j.id, len(j.maps), &l.announcing.encoder, func(m int) (o wire.MapOutput, place int32, ok bool) {
			x := &j.maps[m].output
			if !x.atHand() {
				return o, 0, false
			}
			return l.outputOf(j, m), x.place, true
		})
		for m := range j.facts.GivenUpTasks(wire.Map).All() {
			l.giveUpOutput(j, m)
		}
	}
	for i := range j.maps {
		l.updateMap(j, i)
	}
}

// task finds a task by its id; nil for a fence or an unknown id.
func (j *job) task(id wire.TaskID) *task {
	switch {
	case id.Kind == wire.Setup && id.N == 0:
		return &j.service.setup
	case id.Kind == wire.Commit && id.N == 0:
		return &j.service.commit
	case id.Kind == wire.Cleanup && id.N == 0:
		return &j.service.cleanup
	case id.Kind == wire.Map && id.N >= 0 && id.N < len(j.maps):
		return &j.maps[id.N].task
	case id.Kind == wire.Reduce && id.N >= 0 && id.N < len(j.reduces):
		return &j.reduces[id.N]
	}
	return nil
}

// committingTask returns task n of the kind that commits output: reduces, or maps in a job without
// reduces.
func (j *job) committingTask(n int) *task {
	return j.task(wire.TaskID{Job: j.id, Kind: j.facts.Kind(), N: n})
}

// taskDone reports whether a task needs no more attempts.
func (j *job) taskDone(id wire.TaskID) bool {
	switch {
	case id.Kind == j.facts.Kind():
		return j.facts.Settled(id.N)
	case id.Kind == wire.Map:
		return j.maps[id.N].output.atHand() && !j.maps[id.N].recompute
	}
	return j.service.done[id.Kind]
}

// mapsDone counts the maps that have committed, or have map output at hand, without those given up.
func (j *job) mapsDone() int {
	if j.facts.Reduces() == 0 {
		return j.facts.CommittedTasks()
	}
	return j.outputs.chosen - j.facts.GivenUpTasks(wire.Map).Len()
}

// runnable reports whether the leader may launch the job's tasks.
func (j *job) runnable() bool {
	return !j.recovering && !j.finish.stopProposed && j.assign.HasSplits() && j.facts.Running()
}

// advance does everything that a job's state allows.
func (l *leader) advance(j *job) {
	if l.expireLifetime(j) {
		return
	}
	switch l.facts.State(j.facts) {
	case wire.Preparing:
		if l.mayBegin(j) {
			l.runService(j, &j.service.setup, wire.AttemptID{})
		}
	case wire.Running:
		l.advanceRunning(j)
	case wire.Committing:
		l.runLast(j, &j.service.commit)
	case wire.Stopping:
		l.advanceStopping(j)
	}
}

func (l *leader) advanceRunning(j *job) {
	l.loadSplits(j)
	if !j.runnable() || !l.moveMismatched(j) {
		return
	}
	l.expireExpected(j)
	l.assign.Recall(&j.assign)
	l.retryDelayed(j)
	l.moveOutOfService(j)
	l.reviewTrackers(j)
	l.moveFailed(j)
	l.moveSlowHomes(j)
	l.placeHomes(j)
	for _, task := range sortedFences(j.service.fences) {
		f := j.service.fences[task]
		l.runService(j, &f.task, f.subject)
	}
	l.grantReady(j)
	l.lookForStragglers(j)
	if j.facts.SettledTasks() == j.facts.Commits() {
		l.propose(&facts.Committing{Job: j.facts.N()})
	}
}

// stopped ends the attempts of a stopped job and of its flow.
func (l *leader) stopped(x *facts.Stopped, changed bool) {
	f := l.facts.Job(x.Job)
	if f == nil {
		return
	}
	if !changed {
		l.answerKills(f)
		if j := l.jobs[x.Job]; j != nil {
			j.finish.stopProposed = false
			l.touch(j)
		}
		return
	}
	for other := range l.facts.Flow(f.Submission()) {
		if stop := other.Stop(); other.Stopping() && (other == f || stop.With == x.Job) {
			l.stopTasks(other)
		}
	}
}

// stopTasks kills the attempts of a job that the last entry stopped.
func (l *leader) stopTasks(f *facts.Job) {
	l.answerKills(f)
	j := l.jobs[f.N()]
	l.touch(j)
	l.placeFreed()
	l.clearTasks(j)
	for _, a := range sortedAttempts(j.attempts.all()) {
		l.killAttempt(a, wire.Truncate(f.Stop().Reason, 200))
	}
}

// clearTasks removes a job from all sets of tasks to launch.
func (l *leader) clearTasks(j *job) {
	l.limited.quota.Stop(j.facts.N())
	l.assign.Clear(&j.assign)
	j.service.forget()
	j.outputs.forget()
	j.faults.ClearReminders()
	j.bad = badTasks{}
	l.clearHomes(j)
}

func (l *leader) touchFlow(f *facts.Job) {
	for other := range l.facts.Flow(f.Submission()) {
		if j := l.jobs[other.N()]; j != nil {
			l.touch(j)
		}
	}
}

// advanceStopping runs the cleanup when all attempts have ended. A job that still waits for
// other jobs needs none.
func (l *leader) advanceStopping(j *job) {
	switch {
	case j.recovering:
	case j.finish.cleanupError != "":
		l.endJob(j, j.facts.Stop().Outcome, withCleanup(j.facts.Stop().Reason, j.finish.cleanupError))
	case j.facts.Maps() < 0 && l.facts.Waiting(j.facts):
		l.endJob(j, j.facts.Stop().Outcome, j.facts.Stop().Reason)
	default:
		l.runLast(j, &j.service.cleanup)
	}
}

// withCleanup adds the error of a cleanup to the reason of a job's end, unless its cause is in the reason.
func withCleanup(reason, cleanup string) string {
	if _, cause, ok := strings.Cut(cleanup, ": "); ok && strings.HasSuffix(reason, ": "+cause) { // after the attempt and its tracker
		return reason
	}
	return reason + "\ncleaning up: " + cleanup
}

// runLast runs a commit or cleanup when all other attempts have ended: a killed one may still
// write.
func (l *leader) runLast(j *job, tk *task) {
	if tk.runs() || j.attempts.Len() == 0 {
		l.runService(j, tk, wire.AttemptID{})
	}
}

// loadSplits asks the owner to read the splits file. Each new leader reads it again.
func (l *leader) loadSplits(j *job) {
	if j.assign.HasSplits() || j.splits.loading {
		return
	}
	j.splits.loading = true
	l.effect(LoadSplits{
		Epoch: l.epoch, Job: j.id, Staging: j.facts.Submission().Staging(), Owner: j.facts.Submission().Owner(),
		Maps: j.facts.Maps(), Hash: j.facts.SplitsHash(), Delay: faults.RetryDelay(j.splits.failures),
	})
}

func (l *leader) splitsLoaded(r SplitsLoaded) {
	j := l.job(r.Job)
	if j == nil || r.Epoch != l.epoch || !j.facts.Running() || j.assign.HasSplits() {
		return
	}
	j.splits.loading = false
	l.touch(j)
	err := r.Err
	if err == nil && len(r.Splits) != j.facts.Maps() {
		err = fmt.Errorf("it holds %d splits, not %d", len(r.Splits), j.facts.Maps())
	}
	if err != nil {
		if j.splits.failures++; j.splits.failures >= settings.ServiceAttempts {
			l.stopJob(j, wire.Failed, fmt.Sprintf("read the splits: %v", err))
		}
		return
	}
	for i := range r.Splits {
		m := &j.maps[i]
		m.input = r.Splits[i].Bytes
		j.splits.input += m.input
		if m.output.atHand() {
			j.outputs.input += m.input
		}
	}
	if j.service.setupLaunched > 0 {
		l.overheads.AddSetUp(l.now - j.service.setupLaunched)
	}
	l.learnRacks(r.Splits)
	l.assign.SetSplits(&j.assign, r.Splits)
	for _, a := range sortedAttempts(j.attempts.all()) {
		l.countLevel(a) // adopted before the splits were read
	}
	l.setLevels(j)
	if j.runnable() { // else the end of the recovery requests a plan
		l.phases[mapPhase].planNow(l.now)
	}
}
