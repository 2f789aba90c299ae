package assign

import (
	"slices"
	"sort"
)

// standing is what a job's place in the line of a phase depends on. The zero standing is
// outside of the line.
type standing struct {
	inLine   bool    // or deferred: it has tasks to launch and may
	deferred bool    // it waits for local slots, and is not in the line
	lacks    float64 // what part of the slots that the plan gives it
	rank     int32   // in the plan
	number   int32   // the job's
}

// compare puts the most under-allocated job first, relative to its target (FLEX,
// section 1): by slots alone the last task of a small job would wait for all of a
// large one. The plan's order decides between equals and among those that have what
// it gives them, so that no slot stays empty.
func (s *standing) compare(other *standing) int {
	switch {
	case s.lacks > other.lacks:
		return -1
	case s.lacks < other.lacks:
		return 1
	case s.rank != other.rank:
		return int(s.rank - other.rank)
	}
	return int(s.number - other.number)
}

// line is jobs in order, by their standings. It holds numbers that lie together in
// memory, and are moved about without the garbage collector having to know.
type line struct {
	standings []standing // by the jobs' indexes
	order     []int32    // the indexes of jobs in line
	deferred  []int32    // the indexes of deferred jobs, in the same order
}

func (s *line) Len() int { return len(s.order) }

// of is a job's standing.
func (s *line) of(j *Job) standing {
	if int(j.index) >= len(s.standings) {
		return standing{}
	}
	return s.standings[j.index]
}

// place moves a job to another standing. It says whether the job has moved and is in line.
func (s *line) place(j *Job, to standing) bool {
	at := s.of(j)
	if at == to {
		return false
	}
	old, list := s.list(at), s.list(to)
	switch {
	case old != list:
		if old != nil {
			i := s.find(*old, &at)
			*old = slices.Delete(*old, i, i+1)
		}
		if list != nil {
			*list = slices.Insert(*list, s.find(*list, &to), j.index)
		}
	case list != nil:
		shift(*list, s.find(*list, &at), s.find(*list, &to))
	}
	if more := int(j.index) + 1 - len(s.standings); more > 0 {
		s.standings = append(s.standings, make([]standing, more)...)
	}
	s.standings[j.index] = to
	return list == &s.order
}

// shift moves what is at i in a list to before what is at k.
func shift(list []int32, i, k int) {
	index := list[i]
	if i < k {
		k--
		copy(list[i:k], list[i+1:])
	} else {
		copy(list[k+1:i+1], list[k:])
	}
	list[k] = index
}

// list is the list that jobs with a standing are in, or nil.
func (s *line) list(x standing) *[]int32 {
	switch {
	case !x.inLine:
		return nil
	case x.deferred:
		return &s.deferred
	}
	return &s.order
}

// find is the place of a standing in a list.
func (s *line) find(list []int32, x *standing) int {
	return sort.Search(len(list), func(i int) bool { return s.standings[list[i]].compare(x) >= 0 })
}

// sort gives all jobs new standings, each in its list: whether it leaves that, place will see.
func (s *line) sort(where func(index int32) standing) {
	for _, list := range [][]int32{s.order, s.deferred} {
		for _, index := range list {
			at, to := &s.standings[index], where(index)
			at.lacks, at.rank = to.lacks, to.rank
		}
		slices.SortFunc(list, func(a, b int32) int { return s.standings[a].compare(&s.standings[b]) })
	}
}

// first is the job at the head of a line, but for those that have had their turns.
func (a *Assigner) first(phase, hadTurns int) *Job {
	order := a.phases[phase].line.order
	if hadTurns >= len(order) {
		return nil
	}
	return a.jobs[order[hadTurns]]
}

// InLine lists the jobs in line for slots of a phase.
func (a *Assigner) InLine(phase int) []*Job { return a.jobsOf(a.phases[phase].line.order) }

func (a *Assigner) jobsOf(list []int32) []*Job {
	all := make([]*Job, len(list))
	for i, index := range list {
		all[i] = a.jobs[index]
	}
	return all
}

// standingOf places a job by the current plan. Jobs it does not name, before the
// first plan all, come after the others in order of arrival.
func (a *Assigner) standingOf(phase int, j *Job) standing {
	reserved, queued := 0, 0
	if phase == Map {
		reserved, queued = j.reserved, j.queued[Map]
	}
	if !j.may[phase] || a.ToLaunch(phase, j) <= reserved+queued {
		return standing{}
	}
	x, _ := a.Given(phase, j)
	under := max(x.Slots-j.inSlots[phase]-reserved, 0)
	return standing{
		inLine: true, deferred: phase == Map && j.deferred,
		lacks: float64(under) / float64(max(x.Slots, 1)), rank: int32(x.Rank), number: j.number,
	}
}

// ToLaunch is how many tasks of a job wait for slots of a phase.
func (a *Assigner) ToLaunch(phase int, j *Job) int {
	if phase == Map {
		return j.pending.Len()
	}
	return j.ready + a.cluster.ToGather(j)
}

// Move has a job's places looked at before slots are given away. The lines are
// kept from Step to Step, so that jobs that wait cost nothing. A job that was dropped may be
// in a queue yet, and its index another's.
func (a *Assigner) Move(j *Job) {
	if !j.moved && a.jobs[j.index] == j {
		j.moved = true
		a.moved = append(a.moved, j)
	}
}

// Moved is how many jobs are to be looked at before slots are given away: what events have
// cost, whatever waits.
func (a *Assigner) Moved() int { return len(a.moved) }

// lineUp brings the moved jobs to their places.
func (a *Assigner) lineUp() {
	for i := range a.phases {
		if p := &a.phases[i]; p.replanned {
			p.replanned = false
			a.requeue(i)
		}
	}
	joined := 0
	for k := 0; k < len(a.moved); k++ {
		if k == joined && len(a.pools) > 0 {
			for ; joined < len(a.moved); joined++ {
				a.join(a.moved[joined])
			}
			a.admitAll() // which may move others
		}
		j := a.moved[k]
		j.moved = false
		may := a.mayRun(j)
		for i := range j.may {
			j.may[i] = may && !j.pool.Full(i)
		}
		if !j.may[Map] {
			a.recall(j) // it claims no slots
		}
		takesAny := j.may[Map] && j.queued[Map] < max(1, j.pending.Len())
		if takesAny && !j.takesAny {
			a.uncheckLocal(j)
		}
		j.takesAny = takesAny
		for i := range a.phases {
			if a.phases[i].line.place(j, a.standingOf(i, j)) {
				a.cluster.InLine(i)
			}
		}
	}
	a.moved = a.moved[:0]
}

// mayRun says whether tasks of a job may be launched at all.
func (a *Assigner) mayRun(j *Job) bool { return !j.barred && a.cluster.Runnable(j) }

// mayTake says whether a job may have another slot of a phase.
func (a *Assigner) mayTake(j *Job, phase int) bool { return a.mayRun(j) && !j.pool.Full(phase) }

// Given is what a plan has for a job.
type Given struct {
	plan  uint64 // its number
	Slots int
	Rank  int // among its targets
}

// Target is the slots that a plan has for a job; nil for one that has ended.
type Target struct {
	Job   *Job
	Slots int
}

// SetPlan puts a plan into force. Plans are numbered from 1.
func (a *Assigner) SetPlan(phase int, plan uint64, targets []Target, queues []Queue) {
	p := &a.phases[phase]
	p.plan, p.targets, p.queues = plan, len(targets), queues
	for i, t := range targets {
		if t.Job != nil {
			t.Job.given[phase] = Given{plan: plan, Slots: t.Slots, Rank: i}
		}
	}
	a.resort(phase)
}

// DropPlan ends the plan in force.
func (a *Assigner) DropPlan(phase int) {
	a.ForgetPlan(phase)
	a.resort(phase)
}

// ForgetPlan ends the plan in force where no job waits for slots by it. Queues last. It says
// whether a plan was in force.
func (a *Assigner) ForgetPlan(phase int) bool {
	p := &a.phases[phase]
	was := p.plan
	p.plan, p.targets, p.queues = 0, 0, nil
	return was != 0
}

// resort brings all jobs in the order of a new plan.
func (a *Assigner) resort(phase int) {
	p := &a.phases[phase]
	p.line.sort(func(index int32) standing { return a.standingOf(phase, a.jobs[index]) })
	p.replanned = true
}

// Given is what the plan in force has for a job; ok is false for one that it does not
// name, which comes after those that it does.
func (a *Assigner) Given(phase int, j *Job) (x Given, ok bool) {
	p := &a.phases[phase]
	if x = j.given[phase]; p.plan == 0 || x.plan != p.plan {
		return Given{Rank: p.targets}, false
	}
	return x, true
}
