package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// job is what the leader knows of a job that has not ended.
type job struct {
	facts    *facts.Job
	plan     *wire.JobPlan
	id       wire.JobID
	token    string        // see Facts.token
	arrived  time.Duration // when it was submitted; before 0 if under an earlier leader
	timeout  time.Duration // of its attempts
	limits   limits
	held     bool // recovered: waits for the trackers' inventories
	stopping bool // its stop is proposed
	dirty    bool // in Live.dirty

	setup, commit, cleanup task
	bad                    map[*task]*mishaps // of tasks that have had some
	fences                 map[int]*fence     // by the task whose grant is in doubt
	numbered               int                // fences numbered in this epoch
	done                   map[wire.Kind]bool
	retryAt                time.Duration // of a service task that failed
	cleanupError           string
	closing                *facts.Ended // once all is done: its history is written, or it is proposed
	historyFailed          int

	loading    bool // LoadSplits is under way
	loadFailed int
	input      int64 // bytes of all of it

	maps    []mapTask
	reduces []task
	homes   []home

	known     int    // maps whose digest is known
	digestSum uint64 // of those
	chosen    int    // maps whose output is at hand
	outBytes  int64  // of those outputs
	outInput  int64  // bytes of input of those maps
	fetched   int64  // bytes of them at homes
	open      int    // partitions not committed and not complete at home
	remaking  bool   // lost outputs are made again all the same, see makeAgain
	hash      uint64 // of all digests when all are known, 0: to be computed

	expected map[string]*expectation // by tracker that has begun anew
	unhoused bool                    // in Live.unhoused
	leaving  taskset.Set             // partitions whose reduces have failed at home
	reminded reminders               // of tasks that have failed
	homeless taskset.Set             // partitions to find a home for
	wrong    taskset.Set             // partitions whose homes hold other outputs than the chosen ones
	hosts    taskset.Set             // indexes of trackers with homes
	full     taskset.Set             // indexes of trackers that get all outputs at the end of the Step
	outbox   []int32                 // maps of which new outputs were chosen in this Step
	telling  bool                    // in Live.telling
	gen      int                     // home generations given in this epoch

	troubles []string // as in wire.JobStatus
	losses   int      // of trackers, among them
	pasts    []past   // attempts that have ended, in that order
	causes   []string // why, of some of them
	unkept   int      // attempts that have ended and are not in pasts
	late     []past   // the last ones of these, see latest

	waitsGrant []*attempt // ready attempts that are not granted yet

	attempts  attempts // that run
	assign    assign.Job
	classical bool          // see isClassical
	slowstart float64       // likewise
	gathering int           // reduce slots held while it is gathered
	movesDue  time.Duration // when it is to be seen which of its ready partitions move
	rankedBy  time.Duration // when its homes wait no longer for a plan, see awaitsRanking
	movesAsOf int           // trackers with free reduce slots then
	launched  [2]int
	levels    [wire.Remote + 1]int // launched maps by level

	failures [2]int

	measures forecast.Measures
	profile  *history.Profile // of the last job of the same name; nil: none, or not known yet
	plans    history.PlanLog
	turn     int     // among those whose share of the shuffle trackers are told, from 1
	share    float64 // that they are told

	plansSince int64 // Unix milliseconds since when plans are known, if an earlier leader had others

	preparing  time.Duration // since when, its last setup attempt
	committing time.Duration // since when

	counters      wire.Counters
	counterLimits wire.CounterLimits
	read          int64 // bytes, of counted maps
	reduced       int64 // bytes, of counted reduces
}

func (l *Live) job(id wire.JobID) *job {
	if id.Start != l.facts.Boot().Start {
		return nil
	}
	return l.jobs[id.N]
}

func (l *Live) addJob(f *facts.Job, arrived time.Duration) *job {
	id := l.facts.ID(f.N())
	j := &job{
		facts: f, plan: f.Plan(), id: id, token: l.facts.Token(f), arrived: arrived,
		setup:    task{kind: wire.Setup},
		commit:   task{kind: wire.Commit},
		cleanup:  task{kind: wire.Cleanup},
		bad:      make(map[*task]*mishaps),
		fences:   make(map[int]*fence),
		done:     make(map[wire.Kind]bool),
		counters: make(wire.Counters),
	}
	j.timeout, j.limits = timeoutOf(j.plan), limitsOf(j.plan)
	j.counterLimits = wire.CounterLimitsOf(j.plan.Properties)
	j.classical, j.slowstart = isClassical(j.plan), slowstartOf(j.plan)
	l.recall(j)
	l.assign.AddJob(&j.assign, f.N(), j)
	l.jobs[f.N()] = j
	i, _ := slices.BinarySearchFunc(l.order, f.N(), func(x *job, n int) int { return cmp.Compare(x.facts.N(), n) })
	l.order = slices.Insert(l.order, i, j)
	if f.Maps() >= 0 {
		l.makeTasks(j)
	}
	l.touch(j)
	return j
}

func (l *Live) splitsWritten(j *job) {
	l.noteJob(j.facts, "started", "maps", j.facts.Maps(), "reduces", j.facts.Reduces())
	l.makeTasks(j)
	l.touch(j)
}

// makeTasks makes the tasks when their numbers are known.
func (l *Live) makeTasks(j *job) {
	j.maps = make([]mapTask, j.facts.Maps())
	for i := range j.maps {
		j.maps[i].kind, j.maps[i].n = wire.Map, int32(i)
	}
	j.pasts = slices.Grow(j.pasts, min(j.facts.Maps()+j.facts.Reduces(), maxPast))
	j.reduces = make([]task, j.facts.Reduces())
	j.homes = make([]home, j.facts.Reduces())
	for i := range j.reduces {
		j.reduces[i].kind, j.reduces[i].n = wire.Reduce, int32(i)
		if !j.facts.Committed(i) {
			j.open++
			j.homeless.Add(i)
		}
	}
	for i := range j.maps {
		l.updateMap(j, i)
	}
}

// task finds a task by its id, nil for a fence and for what does not exist.
func (j *job) task(id wire.TaskID) *task {
	switch {
	case id.Kind == wire.Setup && id.N == 0:
		return &j.setup
	case id.Kind == wire.Commit && id.N == 0:
		return &j.commit
	case id.Kind == wire.Cleanup && id.N == 0:
		return &j.cleanup
	case id.Kind == wire.Map && id.N >= 0 && id.N < len(j.maps):
		return &j.maps[id.N].task
	case id.Kind == wire.Reduce && id.N >= 0 && id.N < len(j.reduces):
		return &j.reduces[id.N]
	}
	return nil
}

// committer is the task with the given number of the kind that commits output.
func (j *job) committer(n int) *task {
	return j.task(wire.TaskID{Job: j.id, Kind: j.facts.Kind(), N: n})
}

// taskDone says whether a task needs no more attempts.
func (j *job) taskDone(id wire.TaskID) bool {
	switch {
	case id.Kind == j.facts.Kind():
		return j.facts.Committed(id.N)
	case id.Kind == wire.Map:
		return j.maps[id.N].output.atHand() && !j.maps[id.N].leaving
	}
	return j.done[id.Kind]
}

// mapsDone is how many maps need not run any more.
func (j *job) mapsDone() int {
	if j.facts.Reduces() == 0 {
		return j.facts.CommittedTasks()
	}
	return j.chosen
}

// runnable says whether tasks of j may be launched.
func (j *job) runnable() bool {
	return !j.held && !j.stopping && j.assign.Located() && j.facts.Running()
}

// advance does whatever a job's state now allows.
func (l *Live) advance(j *job) {
	switch l.facts.State(j.facts) {
	case wire.Preparing:
		l.serve(j, &j.setup, wire.AttemptID{})
	case wire.Running:
		l.advanceRunning(j)
	case wire.Committing:
		l.serve(j, &j.commit, wire.AttemptID{})
	case wire.Stopping:
		l.advanceStopping(j)
	}
}

func (l *Live) advanceRunning(j *job) {
	l.loadSplits(j)
	if !j.runnable() || !l.leaveWrong(j) {
		return
	}
	l.expectedTooLong(j)
	l.assign.Recall(&j.assign)
	l.remind(j)
	l.leaveUnfit(j)
	l.leaveFailed(j)
	l.placeHomes(j)
	for _, task := range sortedFences(j.fences) {
		f := j.fences[task]
		l.serve(j, &f.task, f.subject)
	}
	l.grantReady(j)
	if j.facts.CommittedTasks() == j.facts.Commits() {
		l.propose(&facts.Committing{Job: j.facts.N()})
	}
}

// stopped ends what runs of a job that fails or is killed, and of its flow.
func (l *Live) stopped(x *facts.Stopped, fitted bool) {
	f := l.facts.Job(x.Job)
	if f == nil {
		return
	}
	if !fitted {
		l.answerKills(f)
		if j := l.jobs[x.Job]; j != nil {
			j.stopping = false
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

// stopTasks ends what runs of a job that was stopped just now.
func (l *Live) stopTasks(f *facts.Job) {
	l.answerKills(f)
	j := l.jobs[f.N()]
	l.touch(j)
	l.clearTasks(j)
	for _, a := range sortedAttempts(j.attempts.all()) {
		l.kill(a, bounded(f.Stop().Reason, 200))
	}
}

// clearTasks takes a job out of everything that tasks are picked from.
func (l *Live) clearTasks(j *job) {
	l.assign.Clear(&j.assign)
	j.homeless, j.outbox, j.waitsGrant = taskset.Set{}, nil, nil
	j.full, j.wrong, j.remaking = taskset.Set{}, taskset.Set{}, false
	j.leaving, j.reminded = taskset.Set{}, nil
	clear(j.fences)
	clear(j.expected)
	for i := range j.hosts.All() {
		t := l.byIndex[i]
		if ready := t.ready[j]; ready != nil {
			l.assign.Offer(&j.assign, &t.assign, -ready.Len())
		}
		delete(t.ready, j)
		delete(t.homes, j)
		l.refresh(t)
	}
	j.hosts = taskset.Set{}
	for p := range j.homes {
		if h := &j.homes[p]; h.tracker != nil {
			l.dropHome(j, p)
			h.tracker = nil
		}
	}
}

func (l *Live) touchFlow(f *facts.Job) {
	for other := range l.facts.Flow(f.Submission()) {
		if j := l.jobs[other.N()]; j != nil {
			l.touch(j)
		}
	}
}

// advanceStopping cleans up once all attempts have ended. A job that never could
// begin has nothing to clean.
func (l *Live) advanceStopping(j *job) {
	switch {
	case j.held:
	case j.cleanupError != "":
		l.end(j, j.facts.Stop().Outcome, j.facts.Stop().Reason+"\ncleaning up: "+j.cleanupError)
	case j.facts.Maps() < 0 && l.facts.Waiting(j.facts):
		l.end(j, j.facts.Stop().Outcome, j.facts.Stop().Reason)
	case j.attempts.Len() == 0:
		l.serve(j, &j.cleanup, wire.AttemptID{})
	}
}

// loadSplits has the splits file read, also by a new leader.
func (l *Live) loadSplits(j *job) {
	if j.assign.Located() || j.loading {
		return
	}
	j.loading = true
	l.c.emit(LoadSplits{
		Epoch: l.epoch, Job: j.id, Staging: j.facts.Submission().Staging(),
		Maps: j.facts.Maps(), Hash: j.facts.SplitsHash(), After: retryDelay(j.loadFailed),
	})
}

func (l *Live) splitsLoaded(r SplitsLoaded) {
	j := l.job(r.Job)
	if j == nil || r.Epoch != l.epoch || !j.facts.Running() || j.assign.Located() {
		return
	}
	j.loading = false
	l.touch(j)
	err := r.Err
	if err == nil && len(r.Splits) != j.facts.Maps() {
		err = fmt.Errorf("it holds %d splits, not %d", len(r.Splits), j.facts.Maps())
	}
	if err != nil {
		if j.loadFailed++; j.loadFailed >= serviceAttempts {
			l.stopJob(j, wire.Failed, fmt.Sprintf("read the splits: %v", err))
		}
		return
	}
	for i := range r.Splits {
		m := &j.maps[i]
		m.input = r.Splits[i].Bytes
		j.input += m.input
		if m.output.atHand() {
			j.outInput += m.input
		}
	}
	if j.preparing > 0 {
		l.overheads.WasSetUp(l.now - j.preparing)
	}
	l.learnRacks(r.Splits)
	l.assign.SetSplits(&j.assign, r.Splits)
	for _, a := range sortedAttempts(j.attempts.all()) {
		l.countLevel(a) // adopted before this was known
	}
	l.levelLate(j)
	l.phases[mapPhase].begun(l.now)
}
