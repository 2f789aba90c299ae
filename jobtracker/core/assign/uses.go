package assign

// PoolUse counts the jobs of a pool that were added and not dropped, and by phase the slots that they use, and
// their tasks that wait for slots, apart from those of jobs with tasks that may not be launched.
type PoolUse struct {
	Jobs           int
	Slots, Waiting [2]int
}

// PoolUses returns what the jobs of each pool use, by the pool's name. Tasks that wait are as the last round, or
// PlaceChanged, found them. It costs O(pools).
func (a *Assigner) PoolUses() map[string]PoolUse {
	all := make(map[string]PoolUse, len(a.uses))
	for name, u := range a.uses {
		all[name] = u.PoolUse
	}
	return all
}

// poolUse is a PoolUse that its jobs point to.
type poolUse struct {
	name string
	PoolUse
}

// countUse counts a job in its pool.
func (a *Assigner) countUse(j *Job) {
	name, _ := a.cluster.Pool(j)
	u := a.uses[name]
	if u == nil {
		u = &poolUse{name: name}
		a.uses[name] = u
	}
	u.add(j, 1)
	j.use = u
}

// dropUse is the opposite of countUse.
func (a *Assigner) dropUse(j *Job) {
	if j.use.add(j, -1); j.use.Jobs == 0 {
		delete(a.uses, j.use.name)
	}
}

func (u *poolUse) add(j *Job, sign int) {
	u.Jobs += sign
	for phase := range u.Slots {
		u.Slots[phase] += sign * j.usedSlots[phase]
		u.Waiting[phase] += sign * int(j.toLaunch[phase])
	}
}

// PoolChanged counts a job in another pool, to which it has moved, and marks it.
func (a *Assigner) PoolChanged(j *Job) {
	a.dropUse(j)
	a.countUse(j)
	a.MarkChanged(j)
}
