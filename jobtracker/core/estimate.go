package core

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// A task of a phase takes as long as those of it that have ended did, else as long
// as those of the last job of the same name, else as long as other jobs' tasks do.
// Of a task that runs what is left is what it has not run of that, and never nothing.

// leastTask is what a task takes at least, on a clock that stands still too.
const leastTask = time.Millisecond

// tail is the part of a task's time that one which has run for longer has left.
const tail = 10

// closeLook is up to how many tasks of a phase that run are looked at one by one;
// beyond they are taken together. It bounds a Step.
const closeLook = 4096

// crew is what a job has on a tracker: its workers, which are kept after a success, so
// that the first tasks on each tracker also start processes and the others do not; and
// what they have done, by phase.
type crew struct {
	busy, workers int16
	tasks         [2]int32 // that succeeded
	took          [2]time.Duration
}

// crews are those on trackers whose numbers are near each other: many jobs have something
// to do with a few trackers only.
type crews [64]crew

// joins is how many workers have to be started for an attempt, one or none.
func (c *crew) joins() int {
	c.busy++
	started := max(0, c.busy-c.workers)
	c.workers += started
	return int(started)
}

// leaves is the end of a worker with its attempt, which failed or was killed.
func (c *crew) leaves() { c.workers = max(c.busy, c.workers-1) }

// crewAt is the job's crew on the tracker whose name has a number, or nil.
func (j *job) crewAt(number int32) *crew {
	i, k := int(number)/len(crews{}), int(number)%len(crews{})
	if i >= len(j.crews) || j.crews[i] == nil {
		return nil
	}
	return &j.crews[i][k]
}

// crew is the same, made when there is none.
func (j *job) crew(t *tracker) *crew {
	if c := j.crewAt(t.number); c != nil {
		return c
	}
	i := int(t.number) / len(crews{})
	if more := i + 1 - len(j.crews); more > 0 {
		j.crews = append(j.crews, make([]*crews, more)...)
	}
	j.crews[i] = new(crews)
	return j.crewAt(t.number)
}

// on is the tasks of a phase that succeeded on a tracker.
func (j *job) on(number int32, phase int) history.Sum {
	c := j.crewAt(number)
	if c == nil {
		return history.Sum{}
	}
	return history.Sum{Tasks: int(c.tasks[phase]), Took: c.took[phase]}
}

// sums is the tasks of a phase by the names of their trackers.
func (l *Live) sums(j *job, phase int) history.Sums {
	all := history.Sums{Sum: j.measured[phase], Trackers: make(map[string]*history.Sum)}
	for number, f := range l.named {
		if s := j.on(int32(number), phase); s.Tasks > 0 {
			all.Trackers[f.Name] = &s
		}
	}
	return all
}

// measure notes how long a task of a phase took. Another attempt at the same task
// tells no more.
func (l *Live) measure(j *job, tk *task, t *tracker, took time.Duration, reads wire.Reads, cold bool) {
	if tk.measured {
		return
	}
	tk.measured = true
	took = max(took, leastTask)
	j.reads.Add(reads)
	phase := phaseOf(tk.kind)
	m, w, c := &j.measured[phase], &j.warm[phase], j.crew(t)
	m.Count(took)
	c.tasks[phase]++
	c.took[phase] += took
	if cold {
		return
	}
	w.Count(took)
	if n := m.Tasks - w.Tasks; w.Tasks == fewWarm && n > 0 {
		more := max(0, (m.Took-w.Took)/time.Duration(n)-w.Mean())
		l.warmUp = (3*cmp.Or(l.warmUp, more) + more) / 4
	}
}

// fewWarm is how many tasks in processes that ran before tell what it costs to start one.
const fewWarm = 4

// usualDeviation is taken for tasks of which nothing is known.
const usualDeviation = 0.3

// take is the seconds of a task and whence they are known.
type take struct {
	time      time.Duration // 0: not known
	deviation float64       // as a part of it
	source    string
}

// The sources of estimates that name no job.
const (
	sourceMeasured = "measured"
	sourceOthers   = "other jobs"
	sourceMaps     = "its maps"
	sourceDefault  = "default"
)

// taskTime is how long a task of a job's phase takes in a process that has run before,
// by what is known of the job.
func (l *Live) taskTime(j *job, phase int) take {
	m, w, past := &j.measured[phase], &j.warm[phase], j.past(phase)
	own, tasks := w.Recent(), w.Tasks
	if tasks == 0 {
		own, tasks = max(m.Recent()-l.warmUp, m.Recent()/3), m.Tasks
	}
	own = max(own, leastTask)
	switch {
	case tasks == 0 && past == nil:
		return take{}
	case past == nil || tasks >= pastTasks:
		return take{own, m.Deviation(), sourceMeasured}
	case tasks == 0:
		return take{max(past.Mean(), leastTask), past.Deviation(), "history of " + j.profile.Job.String()}
	}
	mean := (time.Duration(tasks)*own + pastTasks*past.Mean()) / time.Duration(tasks+pastTasks)
	return take{mean, past.Deviation(), sourceMeasured + ", and history of " + j.profile.Job.String()}
}

// meanTime is that of the jobs of which it is known, one as good as the other, also
// of those that have ended: it is taken for those of which nothing is known.
func (l *Live) meanTime(phase int) take {
	var sum time.Duration
	n := 0
	for _, j := range l.order {
		if t := l.taskTime(j, phase); t.time > 0 {
			sum += t.time
			n++
		}
	}
	for _, p := range l.profiles.known {
		if m := &p.Phases[phase]; m.Tasks > 0 {
			sum += m.Mean()
			n++
		}
	}
	if n > 0 {
		return take{sum / time.Duration(n), usualDeviation, sourceOthers}
	}
	return take{time.Second, usualDeviation, sourceDefault}
}

// past is what the last job of the same name has shown of a phase, nil for nothing.
func (j *job) past(phase int) *history.Sums {
	if j.profile == nil || j.profile.Phases[phase].Tasks == 0 {
		return nil
	}
	return &j.profile.Phases[phase]
}

// total is how many tasks a phase has, as far as is known.
func (j *job) total(phase int) int {
	if phase == reducePhase {
		return j.facts.Reduces()
	}
	return max(0, j.facts.Maps())
}

// left is how many of them are to be done, runnable or not.
func (j *job) left(phase int) int {
	switch {
	case j.facts.Kind() == kindOf(phase):
		return j.total(phase) - j.facts.CommittedTasks()
	case phase == reducePhase:
		return 0 // it has none
	case j.known == len(j.maps) && j.open == 0 && !j.remaking:
		return 0 // outputs lost since are not needed
	}
	return j.total(phase) - j.chosen
}

// look is how the running tasks of a phase are looked at for one snapshot.
type look struct {
	phase int
	now   time.Duration
	wall  int64         // the same in Unix milliseconds
	warm  time.Duration // what starting a process costs
	close bool
}

func (l *Live) lookAt(phase int, now time.Duration) look {
	running := 0
	for _, j := range l.order {
		running += j.assign.InSlots(phase)
	}
	return look{phase: phase, now: now, wall: l.c.wall + now.Milliseconds(), warm: l.warmUp, close: running <= closeLook}
}

// rest is what a running task has left if it takes that long in all.
func (v look) rest(a *attempt, whole time.Duration) time.Duration {
	return max(whole-v.ran(a), whole/tail)
}

// ran is for how long an attempt has run, but for starting its process.
func (v look) ran(a *attempt) time.Duration {
	ran := time.Duration(v.wall-a.began) * time.Millisecond
	if a.cold {
		ran -= v.warm
	}
	return ran
}

// running is the tasks of a phase that run now, in no order.
func (j *job) running(phase int) func(yield func(*attempt) bool) {
	return func(yield func(*attempt) bool) {
		for a := range j.attempts.all() {
			if a.id.Task.Kind.Slotted() && phaseOf(a.id.Task.Kind) == phase && !yield(a) {
				return
			}
		}
	}
}

// corrected is a task's time with regard to those that run: the short ones end first,
// so that the mean of those that have ended is too small as long as there are few. It
// is what it would be if times were normal and each running task took what is to be
// expected of one that has run for so long (Dempster, Laird, Rubin 1977).
func (v look) corrected(j *job, t take) take {
	if t.time == 0 || !v.close {
		return t
	}
	ages := v.ages(j)
	if len(ages) == 0 {
		return t
	}
	oldest := ages[len(ages)-1]
	m := &j.measured[v.phase]
	switch {
	case m.Tasks == 0 && (t.source == sourceDefault || t.source == sourceMaps):
		t.time = max(t.time, 2*oldest) // nobody knows better than that it is half done
	case m.Tasks == 0 && float64(oldest) > float64(t.time)*(1+2*t.deviation):
		t.time += oldest / 2 // what was known is wrong
	case m.Tasks == 0 || m.Tasks > 4*len(ages):
	default:
		tasks := min(m.Tasks, 2*len(ages))
		if past := j.past(v.phase); past != nil {
			tasks += pastTasks
		}
		// A machine that stands still for a while must not make all tasks long.
		t.time = min(expected(t.time.Seconds()*float64(tasks), tasks, ages, t), t.time*3/2)
	}
	return t
}

// ages is for how long the tasks of a phase run, ascending.
func (v look) ages(j *job) []time.Duration {
	ages := make([]time.Duration, 0, j.assign.InSlots(v.phase))
	for a := range j.running(v.phase) {
		ages = append(ages, max(0, v.ran(a)))
	}
	slices.Sort(ages)
	return ages
}

// expected is the mean of tasks that took so long together and of those that still run.
func expected(took float64, ended int, ages []time.Duration, t take) time.Duration {
	mean := t.time.Seconds()
	for range 8 {
		sum, deviation := took, max(t.deviation, 0.05)*mean
		for _, age := range ages {
			z := (age.Seconds() - mean) / deviation
			beyond := below(-z)
			if beyond < 1e-6 { // as good as a certainty: it runs for that long at least
				sum += age.Seconds() + deviation/4
				continue
			}
			sum += mean + deviation*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)/beyond
		}
		mean = sum / float64(ended+len(ages))
	}
	return time.Duration(mean * float64(time.Second))
}

// work is the slot-seconds left of a phase: of the tasks that run what they have left,
// of the others all of it; 0 while nothing is known of its tasks.
func (v look) work(j *job, whole time.Duration) float64 {
	if whole == 0 {
		return 0
	}
	running := j.working(v.phase)
	sum := times(max(0, j.left(v.phase)-running), whole)
	if !v.close {
		return sum + times(running, whole)/2 // as many are young as are old
	}
	for a := range j.running(v.phase) {
		sum += v.rest(a, whole).Seconds()
	}
	return sum
}

// times is how many seconds so many tasks take one after the other, which may be more
// than a time.Duration can hold.
func times(tasks int, each time.Duration) float64 { return float64(tasks) * each.Seconds() }

// working is how many tasks of a phase run. Partitions that are gathered in slots have
// all their work yet to do.
func (j *job) working(phase int) int {
	if phase == reducePhase {
		return j.assign.InSlots(phase) - j.gathering
	}
	return j.assign.InSlots(phase)
}

// endedTasks is the tasks of earlier and of this run on each tracker, for policies to
// which trackers are not alike. What history tells weighs no more than a few tasks.
func (l *Live) endedTasks(j *job, phase int) []scheduler.Measured {
	var list []scheduler.Measured
	own := l.sums(j, phase).Trackers
	for _, name := range slices.Sorted(maps.Keys(own)) {
		list = append(list, scheduler.Measured{Job: j.id, Tracker: name, Tasks: own[name].Tasks, Seconds: own[name].Took.Seconds()})
	}
	if j.profile == nil {
		return list
	}
	past := j.profile.Phases[phase].Trackers
	for _, name := range slices.Sorted(maps.Keys(past)) {
		p := past[name]
		tasks := min(p.Tasks, pastTasks)
		if tasks == 0 {
			continue
		}
		seconds := p.Took.Seconds() * float64(tasks) / float64(p.Tasks)
		i, found := slices.BinarySearchFunc(list, name, func(m scheduler.Measured, name string) int { return cmp.Compare(m.Tracker, name) })
		if !found {
			list = slices.Insert(list, i, scheduler.Measured{Job: j.id, Tracker: name})
		}
		list[i].Tasks += tasks
		list[i].Seconds += seconds
	}
	return list
}

// toldPast is of how many jobs that have ended policies are told at most.
const toldPast = 16

// endedJobs is the tasks of the last jobs that have ended, each of another name: they tell
// of the trackers. Those that a job goes by that has not ended are among its own.
func (l *Live) endedJobs(phase int) (list []scheduler.Measured) {
	past := slices.SortedFunc(maps.Values(l.profiles.known), func(a, b *history.Profile) int { return b.Job.Compare(a.Job) })
	for _, x := range past[:min(toldPast, len(past))] {
		if slices.ContainsFunc(l.order, func(j *job) bool { return j.profile == x }) {
			continue
		}
		on := x.Phases[phase].Trackers
		for _, name := range slices.Sorted(maps.Keys(on)) {
			list = append(list, scheduler.Measured{Job: x.Job, Tracker: name, Tasks: on[name].Tasks, Seconds: on[name].Took.Seconds()})
		}
	}
	return list
}

// pastTasks is how many tasks what history tells of a tracker is worth at most.
const pastTasks = 4

// outputs is a job's map output in bytes: what homes have of it, what maps have
// made, and what all maps will, by the bytes they make of a byte of input so far.
func (j *job) outputs() (gathered, made, whole int64) {
	gathered, made = min(j.fetched, j.outBytes), j.outBytes
	switch {
	case j.facts.Reduces() == 0:
		return 0, 0, 0
	case j.chosen == len(j.maps) && j.facts.Maps() >= 0:
		return gathered, made, made
	case j.chosen > 0 && j.outInput > 0 && j.input > 0:
		whole = int64(float64(made) / float64(j.outInput) * float64(j.input))
	case j.chosen > 0:
		whole = expectedOutput(j)
	case j.profile != nil && j.profile.Read > 0 && j.input > 0:
		whole = int64(float64(j.profile.Shuffled) / float64(j.profile.Read) * float64(j.input))
	case j.profile != nil:
		whole = j.profile.Shuffled
	}
	return gathered, made, max(whole, made)
}

// transfer is a job's shuffle for policies; ok is false when nothing is left of it.
func (j *job) transfer(maps take) (t scheduler.Transfer, ok bool) {
	gathered, made, whole := j.outputs()
	if whole <= gathered || j.open == 0 {
		return t, false
	}
	return scheduler.Transfer{
		ID: j.id, Ready: float64(made - gathered), Left: float64(whole - gathered), Whole: float64(whole),
		Maps: times(j.total(mapPhase), maps.time),
	}, true
}

// bandwidth is the bytes a second that all trackers that can be homes fetch, and how
// many these are. Those that have not been seen to fetch are taken to be like the others.
func (l *Live) bandwidth() (rate float64, all int) {
	sum, seen := 0.0, 0
	for _, t := range l.byIndex {
		if t == nil || !t.usable() || !t.mayHome() {
			continue
		}
		all++
		if t.rate > 0 {
			sum += t.rate
			seen++
		}
	}
	if seen == 0 {
		return 0, all
	}
	return sum / float64(seen) * float64(all), all
}

// freeAt is when each slot of a tracker is free, in seconds, soonest first. Tasks of
// which nothing is known are taken to be as long as others.
func (l *Live) freeAt(t *tracker, v look, whole map[*job]time.Duration, usual time.Duration) []float64 {
	at := make([]float64, 0, max(t.slots[v.phase], len(t.attempts)))
	for _, a := range t.attempts {
		if a.id.Task.Kind.Slotted() && phaseOf(a.id.Task.Kind) == v.phase {
			at = append(at, v.rest(a, cmp.Or(whole[a.job], usual)).Seconds())
		}
	}
	slices.Sort(at)
	if more := len(at) - t.slots[v.phase]; more > 0 {
		return at[more:] // it runs more than it may by now: the first to end free nothing
	}
	free := make([]float64, t.slots[v.phase])
	copy(free[len(free)-len(at):], at)
	return free
}

// flowOf is the number of the flow that a job is of, 0: it stands alone.
func (j *job) flowOf() int {
	if j.facts.Submission().Jobs() < 2 {
		return 0
	}
	return j.facts.Submission().First()
}

func kindOf(phase int) wire.Kind {
	if phase == reducePhase {
		return wire.Reduce
	}
	return wire.Map
}
