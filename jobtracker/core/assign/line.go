package assign

import (
	"slices"

	"github.com/quernmr/quern/jobtracker/core/taskset"
)

// position is a job's sort key in the line of a phase. The zero position means that the job is not
// in line.
type position struct {
	inLine    bool    // it waits for slots, in group.order or group.deferred
	deferred  bool    // it waits for local slots
	group     int32   // see group
	shortfall float64 // missing fraction of its planned slots
	rank      int32   // in the plan
	number    int32   // of the job
}

// compare puts the job with the largest missing fraction of its target first (FLEX, section 1). By
// the missing number alone, the last task of a small job would wait for all tasks of a large
// one. The plan's order decides among equals.
func (s *position) compare(other *position) int {
	switch {
	case s.shortfall > other.shortfall:
		return -1
	case s.shortfall < other.shortfall:
		return 1
	case s.rank != other.rank:
		return int(s.rank - other.rank)
	}
	return int(s.number - other.number)
}

// line has the jobs that wait, by group. It has indexes and not pointers: moving those would need
// write barriers.
type line struct {
	positions []position // by job index
	groups    []*group   // by position.group
	open      int        // jobs in line in the groups that are not full
	turns     []int      // by group, for first: how many jobs it has left out
	firsts    []int32    // memory of firstOfEach
}

// of returns a job's position.
func (s *line) of(j *Job) position {
	if int(j.index) >= len(s.positions) {
		return position{}
	}
	return s.positions[j.index]
}

// place moves a job to another position. It reports whether the job moved and is in line.
func (s *line) place(j *Job, to position) bool {
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
			s.count(at, -1)
		}
		if list != nil {
			*list = slices.Insert(*list, s.find(*list, &to), j.index)
			s.count(to, 1)
		}
	case list != nil:
		shift(*list, s.find(*list, &at), s.find(*list, &to))
	}
	if more := int(j.index) + 1 - len(s.positions); more > 0 {
		s.positions = append(s.positions, make([]position, more)...)
	}
	s.positions[j.index] = to
	return list != nil && !to.deferred
}

// placeAll moves many jobs to where they belong: each list is sorted once. It reports whether any moved and is in
// line.
func (s *line) placeAll(jobs []*Job, where func(j *Job) position) (joined bool) {
	var moves []move
	var moving taskset.Set
	for _, j := range jobs {
		if to := where(j); s.of(j) != to && moving.Add(int(j.index)) {
			moves = append(moves, move{j, to})
			joined = joined || to.inLine && !to.deferred
		}
	}
	if len(moves) == 0 {
		return false
	}
	for _, m := range moves {
		if more := int(m.job.index) + 1 - len(s.positions); more > 0 {
			s.positions = append(s.positions, make([]position, more)...)
		}
	}
	for _, g := range s.groups {
		for _, list := range []*[]int32{&g.order, &g.deferred} {
			*list = slices.DeleteFunc(*list, func(index int32) bool { return moving.Has(int(index)) })
		}
	}
	grown := make(map[*[]int32]bool)
	for _, m := range moves {
		s.positions[m.job.index] = m.to
		if list := s.list(m.to); list != nil {
			*list, grown[list] = append(*list, m.job.index), true
		}
	}
	for list := range grown {
		slices.SortFunc(*list, func(a, b int32) int { return s.positions[a].compare(&s.positions[b]) })
	}
	s.open = 0
	for _, g := range s.groups {
		if !g.full {
			s.open += len(g.order)
		}
	}
	return joined
}

// move is a change of a job's position.
type move struct {
	job *Job
	to  position
}

// count counts a job that joins or leaves a group.
func (s *line) count(at position, n int) {
	if !at.deferred && !s.groups[at.group].full {
		s.open += n
	}
}

// shift moves the element at i to before the element at k.
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

// list returns the list that a position belongs to, or nil.
func (s *line) list(x position) *[]int32 {
	switch {
	case !x.inLine:
		return nil
	case x.deferred:
		return &s.groups[x.group].deferred
	}
	return &s.groups[x.group].order
}

// find returns the index of a position in a list, or where to insert it.
func (s *line) find(list []int32, x *position) int {
	low, high := 0, len(list)
	for low < high {
		if mid := int(uint(low+high) >> 1); s.positions[list[mid]].compare(x) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// sort gives all jobs new shortfalls and ranks. Each job stays in its list, until place moves it.
func (s *line) sort(where func(index int32) position) {
	for _, g := range s.groups {
		for _, list := range [][]int32{g.order, g.deferred} {
			for _, index := range list {
				at, to := &s.positions[index], where(index)
				at.shortfall, at.rank = to.shortfall, to.rank
			}
			slices.SortFunc(list, func(a, b int32) int { return s.positions[a].compare(&s.positions[b]) })
		}
	}
}

// Spare reports whether a phase has a free slot that a job may take although none of its tasks
// waits. If not urgent, no task of another job may wait either.
func (a *Assigner) Spare(j *Job, phase int, urgent bool) bool {
	a.updateLines()
	p := &a.phases[phase]
	if j.FreeFor(phase).Len() == 0 || !a.mayTake(j, phase) {
		return false
	}
	return urgent || p.line.open == 0 && !p.line.someDeferred() && !a.queuesWait(phase)
}

// InLine lists the jobs in line for slots of a phase, in order.
func (a *Assigner) InLine(phase int) []*Job {
	s := &a.phases[phase].line
	var order []int32
	for _, g := range s.groups {
		if !g.full {
			order = append(order, g.order...)
		}
	}
	slices.SortFunc(order, func(x, y int32) int { return s.positions[x].compare(&s.positions[y]) })
	all := make([]*Job, len(order))
	for i, index := range order {
		all[i] = a.jobs[index]
	}
	return all
}

// positionOf computes a job's position in the plan in force. Jobs that are not in the plan come
// after the others, in order of arrival.
func (a *Assigner) positionOf(phase int, j *Job) position {
	return a.position(phase, j, a.ToLaunch(phase, j))
}

func (a *Assigner) position(phase int, j *Job, toLaunch int) position {
	reserved, queued := 0, 0
	if phase == Map {
		reserved, queued = j.reserved, j.queued[Map]
	}
	if !j.mayRun || phase == Map && j.shutOut || toLaunch <= reserved+queued {
		return position{}
	}
	x, _ := a.PlanShare(phase, j)
	missing := max(x.Slots-j.usedSlots[phase]-reserved, 0)
	return position{
		inLine: true, deferred: phase == Map && j.deferred, group: j.group,
		shortfall: float64(missing) / float64(max(x.Slots, 1)), rank: int32(x.Rank), number: j.number,
	}
}

// ToLaunch counts a job's tasks that wait for slots of a phase.
func (a *Assigner) ToLaunch(phase int, j *Job) int {
	if phase == Map {
		return j.pending.Len()
	}
	return j.ready + a.cluster.ToGather(j)
}

// MarkChanged marks a job: its positions are updated before the next slots are assigned, while
// jobs without changes cost nothing. Dropped jobs are ignored: queues may still contain them, and
// their index may belong to another job.
func (a *Assigner) MarkChanged(j *Job) {
	if !j.changed && a.jobs[j.index] == j {
		j.changed = true
		a.changed = append(a.changed, j)
	}
}

// Changed counts the marked jobs: the cost of the events so far.
func (a *Assigner) Changed() int { return len(a.changed) }

// Placed counts how often a job was placed so far: most of the cost of rounds.
func (a *Assigner) Placed() int { return a.placed }

// PlaceChanged updates the positions of the marked jobs before the next round does. So the first round after
// many jobs were added is short.
func (a *Assigner) PlaceChanged() { a.updateLines() }

// updateLines updates the positions of the marked jobs.
func (a *Assigner) updateLines() {
	for i := range a.phases {
		if p := &a.phases[i]; p.replanned {
			p.replanned = false
			a.requeue(i)
		}
	}
	a.updatePools()
	many := len(a.changed) >= a.manyPlaces
	for k := 0; k < len(a.changed); k++ {
		j := a.changed[k]
		j.changed = false
		a.placed++
		runnable := a.cluster.Runnable(j)
		j.mayRun = runnable && !j.barred
		if !j.mayRun {
			a.recall(j) // else it would still get local slots
		}
		takesAny := j.mayRun && j.queued[Map] < max(1, j.pending.Len())
		if takesAny && !j.usesAnySlot {
			a.uncheckLocal(j)
		}
		j.usesAnySlot = takesAny
		for i := range a.phases {
			toLaunch := 0
			if runnable {
				toLaunch = a.ToLaunch(i, j)
			}
			if !j.mayRun || toLaunch == 0 {
				j.waits[i] = false
			}
			if !j.dropped {
				j.use.Waiting[i] += toLaunch - int(j.toLaunch[i])
				j.toLaunch[i] = int32(toLaunch)
			}
			if !many && a.phases[i].line.place(j, a.position(i, j, toLaunch)) {
				a.cluster.PlanSoon(i)
			}
		}
	}
	for i := range a.phases {
		if many && a.phases[i].line.placeAll(a.changed, func(j *Job) position { return a.position(i, j, int(j.toLaunch[i])) }) {
			a.cluster.PlanSoon(i)
		}
	}
	a.changed = a.changed[:0]
}

// mayRun reports whether any task of a job may be launched.
func (a *Assigner) mayRun(j *Job) bool { return !j.barred && a.cluster.Runnable(j) }

// mayTake reports whether a job may take another slot of a phase.
func (a *Assigner) mayTake(j *Job, phase int) bool { return a.mayRun(j) && !j.pool.Full(phase) }

// PlanShare is a job's share of a plan.
type PlanShare struct {
	plan  uint64 // number of the plan
	Slots int
	Rank  int // among the plan's targets
}

// Target is the number of slots for a job in a plan. Job is nil if the job has ended.
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
			t.Job.planShare[phase] = PlanShare{plan: plan, Slots: t.Slots, Rank: i}
		}
	}
	a.sortByPlan(phase)
}

// DropPlan ends the plan in force.
func (a *Assigner) DropPlan(phase int) {
	a.ForgetPlan(phase)
	a.sortByPlan(phase)
}

// ForgetPlan ends the plan in force when no job waits for slots. It keeps the queues, and
// returns whether a plan was in force.
func (a *Assigner) ForgetPlan(phase int) bool {
	p := &a.phases[phase]
	was := p.plan
	p.plan, p.targets, p.queues = 0, 0, nil
	return was != 0
}

// sortByPlan sorts all jobs by a new plan.
func (a *Assigner) sortByPlan(phase int) {
	p := &a.phases[phase]
	p.line.sort(func(index int32) position { return a.positionOf(phase, a.jobs[index]) })
	p.replanned = true
}

// PlanShare returns a job's share of the plan in force. If the job is not in the plan, ok is false
// and Rank is after all others.
func (a *Assigner) PlanShare(phase int, j *Job) (x PlanShare, ok bool) {
	p := &a.phases[phase]
	if x = j.planShare[phase]; p.plan == 0 || x.plan != p.plan {
		return PlanShare{Rank: p.targets}, false
	}
	return x, true
}
