package core

import "github.com/quernmr/quern/jobtracker/core/pastplans"

// PastPlans returns the plans of the last minutes under this leader, for maps and for reduces. Any goroutine may read
// them.
func (c *Core) PastPlans() (all [2]pastplans.View) {
	if c.leader != nil {
		for i := range all {
			all[i] = c.leader.phases[i].past.View()
		}
	}
	return all
}

// samplePlan adds the plan in force, and what jobs have now, to the plans of the last minutes.
func (l *leader) samplePlan(p *phase) {
	if !p.past.Due(l.wall()) {
		return
	}
	s := &pastplans.Sample{At: l.wall(), Slots: l.fleet.slots[p.index]}
	for i := range p.plan.Targets {
		t := &p.plan.Targets[i]
		j := l.job(t.Job)
		if j == nil {
			continue
		}
		if used := j.assign.UsedSlots(p.index); used+t.Slots > 0 {
			if j.planned.sampled == nil {
				j.planned.sampled = &pastplans.Job{ID: j.id, Owner: j.facts.Submission().Owner(), Access: l.c.access(j.facts)}
			}
			s.Entries = append(s.Entries, pastplans.Entry{Job: j.planned.sampled, Planned: int32(t.Slots), Used: int32(used)})
		}
	}
	p.past.Add(s)
	l.charge(len(s.Entries) / 8)
}
