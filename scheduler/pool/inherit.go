package pool

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/wire"
)

// defaultThreshold is Hadoop's default of fairSharePreemptionThreshold.
const defaultThreshold = 0.5

// resolve makes the table: pools get the defaults of the file and what they inherit from the pools
// around them.
func (r *reader) resolve() {
	slices.SortFunc(r.pools, func(a, b given) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(r.table.Users, func(a, b UserLimit) int { return cmp.Compare(a.Name, b.Name) })
	r.addDefault()
	root := &r.root
	root.rules = root.rules.or(r.preemption)
	threshold := defaultThreshold
	root.threshold = cmp.Or(root.threshold, &threshold)
	resolved := map[string]*given{"": root}
	for i := range r.pools {
		p := &r.pools[i] // outer pools come first
		outer := root
		for name, ok := before(p.Name); ok && outer == root; name, ok = before(name) {
			if o := resolved[name]; o != nil {
				o.Inner, outer = true, o
			}
		}
		p.inherit(outer, r)
		resolved[p.Name] = p
	}
	for i := range r.pools {
		p := &r.pools[i]
		if !p.Inner {
			r.applyDefaults(p)
		}
		r.table.Pools = append(r.table.Pools, p.resolved())
	}
	if root.Max != [2]int{Unlimited, Unlimited} || root.MaxRunning != Unlimited {
		root.Inner = true
		r.table.Pools = append(r.table.Pools, root.Pool)
		slices.SortFunc(r.table.Pools, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
	}
}

// addDefault adds the default pool if it has other settings than a pool that is not in the table.
func (r *reader) addDefault() {
	if _, ok := r.lines[wire.DefaultPool]; ok {
		return
	}
	root, none := &r.root, given{}
	if r.jobsDefault != Unlimited || r.maxDefault != Unlimited || root.submit != nil || root.administer != nil ||
		root.rules != none.rules || r.preemption != none.rules || root.Max != [2]int{Unlimited, Unlimited} {
		p := given{Pool: unlimited(wire.DefaultPool)}
		at, _ := slices.BinarySearchFunc(r.pools, p.Name, func(x given, name string) int { return cmp.Compare(x.Name, name) })
		r.pools = slices.Insert(r.pools, at, p)
	}
}

// applyDefaults applies the file's defaults to a pool that does not override them.
func (r *reader) applyDefaults(p *given) {
	if !p.jobs {
		p.MaxRunning = r.jobsDefault
	}
	if r.maxDefault == Unlimited || p.resources {
		return
	}
	for phase := range p.Max {
		if p.Max[phase] == Unlimited {
			p.Max[phase] = max(r.maxDefault, p.Min[phase])
		}
	}
}

// inherit adds what a pool inherits from the one around it.
func (p *given) inherit(outer *given, r *reader) {
	p.rules = p.rules.or(outer.rules)
	if len(p.submit) > 0 && !isAll(p.submit) && isAll(outer.submit) {
		r.warnAt(p.line, "aclSubmitApps of pool %s has no effect: a pool around it admits all users", p.Name)
	}
	p.submit, p.administer = joined(p.submit, outer.submit), joined(p.administer, outer.administer)
}

// or returns the rules with those that are missing taken from the pool around.
func (x rules) or(outer rules) rules {
	return rules{
		minTimeout: cmp.Or(x.minTimeout, outer.minTimeout), fairTimeout: cmp.Or(x.fairTimeout, outer.fairTimeout),
		threshold: cmp.Or(x.threshold, outer.threshold), spared: x.spared || outer.spared,
	}
}

func isAll(users []string) bool { return slices.Contains(users, AllUsers) }

// joined joins two lists of users; nil is no list.
func joined(a, b []string) []string {
	switch {
	case b == nil:
		return a
	case isAll(a) || isAll(b):
		return []string{AllUsers}
	}
	all := append(append([]string{}, a...), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// resolved makes the pool of the table.
func (p *given) resolved() Pool {
	switch {
	case isAll(p.submit):
	case p.submit != nil && len(p.submit) == 0:
		p.Submitters = []string{""} // matches no user
	default:
		p.Submitters = p.submit
	}
	if len(p.administer) > 0 {
		p.Administrators = p.administer
	}
	if x := p.rules; x.minTimeout != nil || x.fairTimeout != nil || x.spared {
		p.Preemption = &Preemption{Threshold: *x.threshold, Spared: x.spared}
		if x.minTimeout != nil {
			p.Preemption.MinTimeout = *x.minTimeout
		}
		if x.fairTimeout != nil {
			p.Preemption.FairTimeout = *x.fairTimeout
		}
	}
	return p.Pool
}
