package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/jobtracker/core/speculation"
	"github.com/quernmr/quern/wire"
)

// A slow task gets a second attempt on another tracker, which package speculation chooses. The
// task ends with the first output or commit; the leader then kills the other attempts. If the second
// attempt is slow, too, the task gets a third one, and so on, up to maxAttempts.
//
// Only jobs without tasks to launch are looked at, at times of their own. A second map attempt
// gets a slot at once. A second reduce attempt needs the partition: its home moves to a tracker
// with a free slot, while the first attempt reads what its own tracker has gathered. The reduce
// is launched at the home like any other one, when the partition is ready.

// maxAttempts is how many attempts of a task may run at a time.
const maxAttempts = 4

// speculating is the progress of a job's speculation.
type speculating struct {
	nextLook [2]time.Duration // by phase
	queued   [2]bool          // in todo.stragglers
}

// straggling is a phase of a job that may have slow tasks.
type straggling struct {
	job   *job
	phase int
}

// lookForStragglers queues the phases of a job that launch no more tasks, if it is time.
func (l *leader) lookForStragglers(j *job) {
	for phase := range l.phases {
		if l.now < j.speculating.nextLook[phase] || j.speculating.queued[phase] || !l.mayStraggle(j, phase) {
			continue
		}
		j.speculating.queued[phase] = true
		l.todo.stragglers = append(l.todo.stragglers, straggling{j, phase})
	}
}

// mayStraggle reports whether all tasks of a phase have been launched, and some run.
func (l *leader) mayStraggle(j *job, phase int) bool {
	return j.workingTasks(phase) > 0 && l.toLaunch(j, phase) == 0 && // cheap, and mostly false
		j.spec.ForKind(kindOf(phase)).Speculative && l.usualTime(j, phase) > 0
}

// speculate launches second attempts of slow tasks. Before other tasks get slots it is called with
// urgent: then only for jobs that would miss their deadlines. Later it uses slots that no task
// waits for.
func (l *leader) speculate(urgent bool) {
	if len(l.todo.stragglers) == 0 {
		return
	}
	looked := 0
	l.todo.stragglers = slices.DeleteFunc(l.todo.stragglers, func(x straggling) bool {
		j := x.job
		if looked > maxLooked {
			l.alarm(j, l.now.Truncate(lookGrid)+lookGrid) // the same in all Steps until then
			return false
		}
		if urgent && !l.missesDeadline(j) {
			return false
		}
		j.speculating.queued[x.phase] = false
		if l.jobs[j.facts.N()] != j || !j.runnable() || !l.mayStraggle(j, x.phase) {
			return true
		}
		if l.assign.Spare(&j.assign, x.phase, urgent) {
			looked += j.attempts.Len() + j.assign.FreeFor(x.phase).Len()
			l.speculateOn(j, x.phase, urgent)
		}
		l.nextLook(j, x.phase)
		return true
	})
}

// missesDeadline reports whether a job is predicted to end after its deadline.
func (l *leader) missesDeadline(j *job) bool {
	deadline := j.facts.Submission().Settings().Deadline
	if deadline == 0 {
		return false
	}
	o := l.recentForecast(l.now, statusForecastAge).Of(j.facts.N())
	return o != nil && o.End > j.spec.arrived+deadline
}

// usualTime is the mean time of the tasks of a phase that have ended; before, that of the last job
// with the same name, else of all jobs, else of maps; 0: unknown.
func (l *leader) usualTime(j *job, phase int) time.Duration {
	return cmp.Or(j.measures.Phases[phase].All.Mean(), l.taskTime(j, phase).Time, l.overheads.Tasks[phase], l.overheads.Tasks[mapPhase])
}

// nextLook sets the time of the next look at a phase. The times of all jobs are multiples of
// lookGrid, so that few Steps look at many jobs.
func (l *leader) nextLook(j *job, phase int) {
	gap := speculation.LookAfter(l.usualTime(j, phase))
	at := (l.now + gap).Truncate(lookGrid) + lookGrid
	j.speculating.nextLook[phase] = at
	l.alarm(j, at)
}

const lookGrid = 50 * time.Millisecond

// maxLooked is the number of attempts and free trackers after which a Step looks at no other job.
const maxLooked = 1000

// speculateOn launches second attempts in a phase with slots to spare.
func (l *leader) speculateOn(j *job, phase int, urgent bool) {
	p, attempts, slow := l.stragglers(j, phase)
	trackers, sites := l.spareSites(j, phase)
	chosen := speculation.Choose(&p, j.spec.Speculation, attempts, sites, func(a, s int) bool {
		return !slow[a].task.runsOn(trackers[s]) && !j.avoids(slow[a].task, trackers[s])
	})
	if phase == reducePhase && j.outputs.chosen < len(j.maps) {
		if len(chosen) > 0 {
			l.recomputeLost(j) // before any move, see moving.go
		} else {
			l.recomputeEnded(j) // the slow reduces have ended
		}
		return
	}
	for _, c := range chosen {
		if !j.assign.FreeFor(phase).Has(trackers[c.Site].assign.Index()) {
			continue // an earlier one took the room
		}
		l.launchBeside(j, slow[c.Attempt], trackers[c.Site])
		if !l.assign.Spare(&j.assign, phase, urgent) {
			return
		}
	}
}

// launchBeside launches a second attempt of a task on a tracker with a free slot. For a reduce it
// moves the home there.
func (l *leader) launchBeside(j *job, a *attempt, t *tracker) {
	n := a.id.Task.N
	switch {
	case a.id.Task.Kind == wire.Map:
		l.launch(j, a.task, t, wire.AttemptID{})
	case j.spec.Classical:
		l.clearHome(j, n)
		l.gatherInSlot(j, n, t)
	default:
		l.moveTo(j, n, t)
	}
}

// stragglers describes a phase of a job for package speculation, with the attempts of the tasks that
// may have a second one, in no order.
func (l *leader) stragglers(j *job, phase int) (p speculation.Phase, list []speculation.Attempt, attempts []*attempt) {
	all := &j.measures.Phases[phase].All
	p = speculation.Phase{Tasks: j.totalTasks(phase), Ended: *all, Deviation: all.Deviation()}
	if all.Tasks == 0 {
		p.Ended, p.Others = history.Sum{Tasks: 1, Took: l.usualTime(j, phase)}, true
	}
	if phase == reducePhase {
		p.Before = minMoveTime + l.recomputeTime(j) + forecast.GatherTime(int64(l.partitionBytes(j)), l.usualRate())
	}
	for a := range j.runningAttempts(phase) {
		if a.next != nil {
			continue // the latest attempt of a task counts
		}
		running, moves := a.task.running(), j.movesFrom(a)
		p.Running, p.Speculative = p.Running+1, p.Speculative+running-1
		if moves {
			p.Speculative++
		}
		if !moves && !a.killed() && a.state == wire.AttemptRunning && !j.taskDone(a.id.Task) && !j.bad.holds(a.task.key()) && running < maxAttempts {
			attempts = append(attempts, a)
		}
	}
	ages := runningTasks{wall: l.wall(), warmUp: l.overheads.WarmUp}
	for _, a := range attempts {
		x := speculation.Attempt{Age: ages.age(a), There: j.measures.TasksOn(a.tracker.number, phase)}
		if a.bytes.Total > 0 {
			x.Done = float64(a.bytes.Done) / float64(a.bytes.Total)
		}
		list = append(list, x)
	}
	return p, list, attempts
}

// movesFrom reports whether the partition of a reduce moves from the tracker of its latest attempt: the
// task gets another attempt at the new home.
func (j *job) movesFrom(a *attempt) bool {
	if a.id.Task.Kind != wire.Reduce {
		return false
	}
	home := j.partitions.homes[a.id.Task.N].tracker
	return home != nil && home != a.tracker
}

// spareSites lists the trackers with free slots that may run second attempts of a job. Those on
// probation run other attempts first, and those that were outrun lately are slow.
func (l *leader) spareSites(j *job, phase int) (trackers []*tracker, sites []speculation.Site) {
	for i := range j.assign.FreeFor(phase).All() {
		t := l.fleet.byIndex[i]
		free := t.assign.Free(phase)
		if phase == reducePhase {
			free -= t.hosting.incoming
		}
		if free > 0 && j.uses(t) && !t.health.OnProbation() && !l.outranLately(t) && (phase == mapPhase || t.canBeHome()) {
			trackers = append(trackers, t)
			sites = append(sites, speculation.Site{Free: free, There: j.measures.TasksOn(t.number, phase)})
		}
	}
	return trackers, sites
}

// runsOn reports whether an attempt of the task runs on a tracker.
func (tk *task) runsOn(t *tracker) bool {
	for a := range tk.all() {
		if a.tracker == t {
			return true
		}
	}
	return false
}

// mayRunReduce reports whether a reduce may be launched at its home, as to its running attempts, see mayRunOn.
func (j *job) mayRunReduce(p int) bool {
	return j.reduces[p].mayRunOn(j.partitions.homes[p].tracker, j.spec.Reduces.Speculative)
}

// mayRunOn reports whether a task may have an attempt on a tracker, as to its running attempts: none
// runs, or fewer than maxAttempts elsewhere if tasks may have second attempts.
func (tk *task) mayRunOn(t *tracker, speculative bool) bool {
	return !tk.runs() || speculative && tk.running() < maxAttempts && !tk.runsOn(t)
}

// running counts the running attempts of a task.
func (tk *task) running() (n int) {
	for range tk.all() {
		n++
	}
	return n
}

// A setup, commit, cleanup or fence gets a second attempt after slowService, or after slowServices
// times the usual time if that is longer; and further ones, each after twice as long. The second
// tracker may be slow, too.
const (
	slowService  = 5 * time.Second
	slowServices = 3
)

// serviceLimit returns the time after which a service attempt is slow.
func (l *leader) serviceLimit(k wire.Kind) time.Duration {
	usual := time.Duration(0)
	switch k {
	case wire.Setup:
		usual = l.overheads.SetUp
	case wire.Commit:
		usual = l.overheads.Close
	}
	return max(slowService, slowServices*usual)
}

// latest returns the attempt of a running task that was launched last.
func (tk *task) latest() *attempt {
	a := tk.attempts
	for a.next != nil {
		a = a.next
	}
	return a
}

// mayRunBeside reports whether a service task that runs may get another attempt, when it is slow.
func (l *leader) mayRunBeside(j *job, tk *task) bool {
	return tk.runs() && tk.running() < maxAttempts && !tk.latest().killed() && !j.recovering &&
		j.spec.ForKind(tk.kind).Speculative && !j.facts.Submission().Suspended()
}

// speculateService launches another attempt of a service task that runs for too long.
func (l *leader) speculateService(j *job, tk *task, subject wire.AttemptID) {
	if tk.queued || !l.mayRunBeside(j, tk) {
		return
	}
	limit := l.serviceLimit(tk.kind) << (tk.running() - 1)
	due := l.now - time.Duration(l.wall()-tk.latest().began)*time.Millisecond + limit
	x := queuedTask{j, tk, subject}
	switch {
	case l.now < due:
		l.alarm(j, due)
	case tk.kind == wire.Setup && !l.mayRunSetup():
		l.queueService(x, slowSetupQueue)
	case !l.launchService(x):
		l.alarm(j, l.now.Truncate(slowService)+slowService) // the same for all advances until then
	}
}
