package assign

import (
	"slices"
	"sort"
)

// position is a job's sort key in the line of a phase. The zero position means that the job is not
// in line.
type position struct {
	inLine    bool    // it waits for slots, in line.order or line.deferred
	deferred  bool    // it waits for local slots
	shortfall float64 // missing fraction of its planned slots
	rank      int32   // in the plan
	number    int32   // of the job
	group     int32   // index of its group, which compare ignores
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

// line holds jobs in the order of their positions. It has indexes and not pointers: moving those
// would need write barriers. The jobs in line are in groups, so that a search skips all jobs of a
// group that can use no free slot.
type line struct {
	positions []position // by job index
	groups    []*group   // by index; nil if unused
	byKey     map[groupKey]int32
	deferred  []int32 // indexes of the deferred jobs, sorted by position
}

// groupKey has what the jobs of a group have in common. They can use the same free slots.
type groupKey struct {
	class *class
}

// group has the jobs in line with the same key.
type group struct {
	groupKey
	order []int32 // their indexes, sorted by position
}

// groupOf returns the index of the group with a key.
func (s *line) groupOf(key groupKey) int32 {
	i, ok := s.byKey[key]
	if !ok {
		i = int32(insert(&s.groups, &group{groupKey: key}))
		s.byKey[key] = i
	}
	return i
}

// Len counts the jobs in line.
func (s *line) Len() (n int) {
	for _, g := range s.groups {
		if g != nil {
			n += len(g.order)
		}
	}
	return n
}

// dropGroups forgets the groups of a class without jobs.
func (a *Assigner) dropGroups(phase int, c *class) {
	s := &a.phases[phase].line
	for i, g := range s.groups {
		if g != nil && g.class == c {
			delete(s.byKey, g.groupKey)
			s.groups[i] = nil
		}
	}
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
		}
		if list != nil {
			*list = slices.Insert(*list, s.find(*list, &to), j.index)
		}
	case list != nil:
		shift(*list, s.find(*list, &at), s.find(*list, &to))
	}
	if more := int(j.index) + 1 - len(s.positions); more > 0 {
		s.positions = append(s.positions, make([]position, more)...)
	}
	s.positions[j.index] = to
	return list != nil && list != &s.deferred
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
		return &s.deferred
	}
	return &s.groups[x.group].order
}

// find returns the index of a position in a list, or where to insert it.
func (s *line) find(list []int32, x *position) int {
	return sort.Search(len(list), func(i int) bool { return s.positions[list[i]].compare(x) >= 0 })
}

// sort gives all jobs new shortfalls and ranks. Each job stays in its list, until place moves it.
func (s *line) sort(where func(index int32) position) {
	s.sortList(s.deferred, where)
	for _, g := range s.groups {
		if g != nil {
			s.sortList(g.order, where)
		}
	}
}

func (s *line) sortList(list []int32, where func(index int32) position) {
	for _, index := range list {
		at, to := &s.positions[index], where(index)
		at.shortfall, at.rank = to.shortfall, to.rank
	}
	s.sortByPosition(list)
}

func (s *line) sortByPosition(list []int32) {
	slices.SortFunc(list, func(a, b int32) int { return s.positions[a].compare(&s.positions[b]) })
}

// skips counts the jobs that a search passes over at the beginning of each group, by its index.
type skips []int32

// add passes over one more job of a group.
func (s *skips) add(group int32) {
	for len(*s) <= int(group) {
		*s = append(*s, 0)
	}
	(*s)[group]++
}

// next returns the first job in line that is not skipped, of the groups that can use a free slot: any
// one, or one of tracker t if t is not nil. It looks at one job of each group.
func (a *Assigner) next(phase int, skip skips, t *Tracker) *Job {
	s := &a.phases[phase].line
	var first *position
	var job int32
	for i, g := range s.groups {
		k := 0
		if i < len(skip) {
			k = int(skip[i])
		}
		if g == nil || k >= len(g.order) || !g.canUse(phase, t) {
			continue
		}
		if x := &s.positions[g.order[k]]; first == nil || x.compare(first) < 0 {
			first, job = x, g.order[k]
		}
	}
	if first == nil {
		return nil
	}
	return a.jobs[job]
}

// canUse reports whether jobs of a group can use a free slot: any one, or one of tracker t.
func (g *group) canUse(phase int, t *Tracker) bool {
	if t == nil {
		return g.class.free[phase].Len() > 0
	}
	return g.class.free[phase].Has(int(t.index))
}

// firstOf returns the first job of a class in line, or nil.
func (a *Assigner) firstOf(c *class, phase int) *Job {
	s := &a.phases[phase].line
	var first *position
	var job int32
	for _, g := range s.groups {
		if g == nil || g.class != c || len(g.order) == 0 {
			continue
		}
		if x := &s.positions[g.order[0]]; first == nil || x.compare(first) < 0 {
			first, job = x, g.order[0]
		}
	}
	if first == nil {
		return nil
	}
	return a.jobs[job]
}

// Spare reports whether a phase has a free slot that a job may take although none of its tasks
// waits. If not urgent, no task of another job may wait either.
func (a *Assigner) Spare(j *Job, phase int, urgent bool) bool {
	a.updateLines()
	p := &a.phases[phase]
	waits := p.line.Len()+len(p.line.deferred) > 0 || a.queuesWait(phase)
	return j.FreeFor(phase).Len() > 0 && a.mayTake(j, phase) && (urgent || !waits)
}

// InLine lists the jobs in line for slots of a phase.
func (a *Assigner) InLine(phase int) []*Job {
	s := &a.phases[phase].line
	var order []int32
	for _, g := range s.groups {
		if g != nil {
			order = append(order, g.order...)
		}
	}
	s.sortByPosition(order)
	return a.jobsOf(order)
}

func (a *Assigner) jobsOf(list []int32) []*Job {
	all := make([]*Job, len(list))
	for i, index := range list {
		all[i] = a.jobs[index]
	}
	return all
}

// positionOf computes a job's position in the plan in force. Jobs that are not in the plan come
// after the others, in order of arrival.
func (a *Assigner) positionOf(phase int, j *Job) position {
	reserved, queued := 0, 0
	if phase == Map {
		reserved, queued = j.reserved, j.queued[Map]
	}
	if !j.mayTake[phase] || phase == Map && j.shutOut || a.ToLaunch(phase, j) <= reserved+queued {
		return position{}
	}
	x, _ := a.PlanShare(phase, j)
	missing := max(x.Slots-j.usedSlots[phase]-reserved, 0)
	return position{
		inLine: true, deferred: phase == Map && j.deferred,
		shortfall: float64(missing) / float64(max(x.Slots, 1)), rank: int32(x.Rank), number: j.number,
		group: a.phases[phase].line.groupOf(groupKey{j.class[phase]}),
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

// updateLines updates the positions of the marked jobs.
func (a *Assigner) updateLines() {
	for i := range a.phases {
		if p := &a.phases[i]; p.replanned {
			p.replanned = false
			a.requeue(i)
		}
	}
	joined := 0
	for k := 0; k < len(a.changed); k++ {
		if k == joined && len(a.pools) > 0 {
			for ; joined < len(a.changed); joined++ {
				a.joinPool(a.changed[joined])
			}
			a.barExcess() // may mark other jobs
		}
		j := a.changed[k]
		j.changed = false
		may := a.mayRun(j)
		for i := range j.mayTake {
			j.mayTake[i] = may && !j.pool.Full(i)
		}
		if !j.mayTake[Map] {
			a.recall(j) // else it would still get local slots
		}
		takesAny := j.mayTake[Map] && j.queued[Map] < max(1, j.pending.Len())
		if takesAny && !j.usesAnySlot {
			a.uncheckLocal(j)
		}
		j.usesAnySlot = takesAny
		for i := range a.phases {
			if !j.mayTake[i] || a.ToLaunch(i, j) == 0 {
				j.waits[i] = false
			}
			if a.phases[i].line.place(j, a.positionOf(i, j)) {
				a.cluster.PlanSoon(i)
			}
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
