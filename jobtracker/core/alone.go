package core

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler"
)

// How long a flow would take alone is what its stretch is measured by. It does not
// change because parts of the flow are done: ended jobs count with the tasks that they
// had and with what these took, jobs that are to come as elsewhere.

// flows is what the jobs of a snapshot are of, by the number of the first job. A job
// that stands alone is a flow of one.
func (l *Live) flows(s *scheduler.Snapshot) []scheduler.Flow {
	seen := make(map[int]bool, len(s.Jobs)+len(s.Later))
	for _, j := range s.Jobs {
		seen[j.ID.N] = true
	}
	for _, x := range s.Later {
		seen[x.ID.N] = true
	}
	slots, means := l.slots, [2]take{l.meanTime(mapPhase), l.meanTime(reducePhase)}
	var flows []scheduler.Flow
	for _, j := range l.order { // by number, so that a submission's jobs are neighbours
		if first := j.facts.Submission().First(); seen[j.facts.N()] && (len(flows) == 0 || flows[len(flows)-1].First != first) {
			flows = append(flows, scheduler.Flow{First: first, Alone: l.alone(j.facts.Submission(), slots, means)})
		}
	}
	return flows
}

// alone is the seconds that all jobs of a submission take if they have all slots: those
// on the critical path, each phase as wide as it can be, and at least as long as all
// its slots need for the tasks of a phase.
func (l *Live) alone(sub *facts.Submission, slots [2]int, means [2]take) float64 {
	longest, area := 0.0, [2]float64{}
	ends := make(map[int]float64, sub.Jobs())
	for f := range l.facts.Flow(sub) {
		at := 0.0
		for _, before := range l.facts.After(f) {
			at = max(at, ends[before.N()])
		}
		for phase := range slots {
			tasks, each := l.extent(f, phase)
			if each == 0 {
				each = means[phase].time
			}
			work := times(tasks, each)
			area[phase] += work
			at += work / float64(max(1, min(tasks, slots[phase])))
		}
		ends[f.N()] = at
		longest = max(longest, at)
	}
	for phase, work := range area {
		longest = max(longest, work/float64(max(1, slots[phase])))
	}
	return longest
}

// extent is how many tasks a phase of a job has in all, and how long one takes; 0: not known.
func (l *Live) extent(f *facts.Job, phase int) (tasks int, each time.Duration) {
	if j := l.jobs[f.N()]; j != nil {
		tasks = j.total(phase)
		if phase == mapPhase && f.Maps() < 0 {
			tasks = j.unbegun()
		}
		return tasks, l.taskTime(j, phase).time
	}
	if tasks = max(0, f.Maps()); phase == reducePhase {
		tasks = f.Reduces()
	}
	if p := l.profiles.known[f.Name()]; p != nil {
		each = p.Phases[phase].Mean()
	}
	return tasks, each
}

// unbegun is how many maps a job is taken to have that has not begun: as many as the
// last one of its name, or one.
func (j *job) unbegun() int {
	if j.profile == nil {
		return 1
	}
	return max(1, j.profile.Phases[mapPhase].Tasks)
}
