package pool

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// Use is how many slots of a phase the jobs of a pool have, and how many they could use.
type Use struct{ Running, Demand int }

// LimitsInner reports whether pools with others in them have a maximum of slots.
func (t *Table) LimitsInner() bool {
	return slices.ContainsFunc(t.Pools, func(p Pool) bool { return p.Inner && p.Max != [2]int{Unlimited, Unlimited} })
}

// Parts divides the maxima of inner pools among the pools in them, by weight: it returns the maximum
// of each pool that takes jobs and is in a limited one. A pool with more than its part takes no slots
// until it has fewer. The parts of the others leave room for it, so the pools together never exceed
// the maximum around them, whichever takes slots next. Slots that a pool cannot use go to the pools
// beside it. Jobs in pools that have left the table, or have become inner ones, get parts too.
func (t *Table) Parts(phase int, use map[string]Use) map[string]int {
	parts := make(map[string]int)
	inner := make(map[string][]*Pool) // by the pool around them
	byName := make(map[string]*Pool, len(t.Pools))
	for i := range t.Pools {
		byName[t.Pools[i].Name] = &t.Pools[i]
	}
	has := func(name string) bool { return byName[name] != nil }
	for i := range t.Pools {
		p := &t.Pools[i]
		if p.Name != Root {
			outer := around(p.Name, has)
			inner[outer] = append(inner[outer], p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(use)) {
		if outer, left := leftIn(name, byName[name], has); left {
			p := unlimited(name)
			inner[outer] = append(inner[outer], &p)
		}
	}
	var total func(p *Pool) Use
	total = func(p *Pool) Use {
		if !p.Inner {
			u := use[p.Name]
			u.Demand = max(u.Running, min(u.Demand, p.most(phase)))
			return u
		}
		var u Use
		for _, x := range inner[p.Name] {
			y := total(x)
			u.Running += y.Running
			u.Demand += y.Demand
		}
		u.Demand = max(u.Running, min(u.Demand, p.most(phase)))
		return u
	}
	var divide func(outer string, most int)
	divide = func(outer string, most int) {
		uses := make([]Use, len(inner[outer]))
		for i, p := range inner[outer] {
			uses[i] = total(p)
		}
		slots := parted(inner[outer], uses, most)
		for i, p := range inner[outer] {
			part := p.Max[phase]
			if most != Unlimited {
				part = min(slots[i], p.most(phase)) // it may have more slots than its maximum, which was higher
			}
			if p.Inner {
				divide(p.Name, part)
			} else if most != Unlimited {
				parts[p.Name] = part
			}
		}
	}
	if i := slices.IndexFunc(t.Pools, func(p Pool) bool { return p.Name == Root }); i >= 0 {
		divide(Root, t.Pools[i].Max[phase])
	} else {
		divide("", Unlimited)
	}
	return parts
}

// NeedsPart reports whether jobs of a pool that takes no jobs any more share a maximum of slots around them.
func (t *Table) NeedsPart(name string) bool {
	if name = cmp.Or(name, wire.DefaultPool); len(t.Pools) == 0 {
		return false
	}
	i := slices.IndexFunc(t.Pools, func(p Pool) bool { return p.Name == name })
	var p *Pool
	if i >= 0 {
		p = &t.Pools[i]
	}
	outer, left := leftIn(name, p, t.has)
	for ; left && outer != ""; outer = t.Around(outer) {
		if p, _ := t.Find(outer); p.Max != [2]int{Unlimited, Unlimited} {
			return true
		}
	}
	return false
}

// leftIn returns the pool around the jobs of a pool that takes no jobs any more: it has left the table and is nil,
// or has become an inner one. has reports whether the table has a pool.
func leftIn(name string, p *Pool, has func(name string) bool) (outer string, left bool) {
	if p == nil {
		return around(name, has), true
	}
	return name, p.Inner
}

// parted divides a maximum among pools.
func parted(pools []*Pool, uses []Use, most int) []int {
	if most == Unlimited {
		return nil
	}
	shares, running := make([]scheduler.Share, len(pools)), 0
	for i, p := range pools {
		shares[i] = scheduler.Share{Max: uses[i].Demand, Weight: p.Weight}
		running += uses[i].Running
	}
	parts := scheduler.Waterline(shares, most)
	for i, part := range parts {
		if shares[i].Min = uses[i].Running; shares[i].Min > part {
			shares[i].Max = shares[i].Min
		}
	}
	for i, slots := range scheduler.Waterline(shares, max(most, running)) {
		if uses[i].Running <= parts[i] {
			parts[i] = slots
		}
	}
	return parts
}

// LimitsRunning reports whether users, or pools with others in them, have a maximum of running jobs.
func (t *Table) LimitsRunning() bool {
	return len(t.Users) > 0 || slices.ContainsFunc(t.Pools, func(p Pool) bool { return p.Inner && p.MaxRunning != Unlimited })
}

// RunningLimit is a maximum of jobs that may have slots at a time.
type RunningLimit struct {
	Of  string // "user NAME" or "pool NAME"
	Max int
}

// RunningLimits returns the limits of a user's jobs in a pool: those of the user, the pool and the
// pools around it.
func (t *Table) RunningLimits(user, in string) (limits []RunningLimit) {
	if most := t.MaxRunningOf(user); most != Unlimited {
		limits = append(limits, RunningLimit{"user " + user, most})
	}
	for name := cmp.Or(in, wire.DefaultPool); name != ""; name = t.Around(name) {
		if p, _ := t.Find(name); p.MaxRunning != Unlimited {
			limits = append(limits, RunningLimit{"pool " + name, p.MaxRunning})
		}
	}
	return limits
}
