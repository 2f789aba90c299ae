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
	if s := p.submit; s != nil && !s.All && len(s.Users)+len(s.Groups) > 0 && isAll(outer.submit) {
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

func isAll(list *wire.ACL) bool { return list != nil && list.All }

// joined joins two lists of users and groups; nil is no list.
func joined(a, b *wire.ACL) *wire.ACL {
	switch {
	case b == nil:
		return a
	case isAll(a) || isAll(b):
		return &wire.ACL{All: true}
	case a == nil:
		a = new(wire.ACL)
	}
	return &wire.ACL{Users: union(a.Users, b.Users), Groups: union(a.Groups, b.Groups)}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// resolved makes the pool of the table.
func (p *given) resolved() Pool {
	switch s := p.submit; {
	case s == nil || s.All:
	case len(s.Users) == 0:
		p.Submitters, p.SubmitterGroups = []string{""}, s.Groups // "" matches no user
	default:
		p.Submitters, p.SubmitterGroups = s.Users, s.Groups
	}
	switch a := p.administer; {
	case a == nil:
	case a.All:
		p.Administrators = []string{AllUsers}
	default:
		p.Administrators, p.AdministratorGroups = a.Users, a.Groups
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
