package core

import (
	"fmt"
	"strings"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler/pool"
)

// sharing is the scheduling in force, and the pool table that may follow.
type sharing struct {
	admission.Scheduling
	pendingPools *pool.Table // read last, nil when in force
	poolsError   string      // why the newest pool table is not in force
}

// useScheduling takes over the scheduling in force and drops the plans of the earlier one.
// Without a request it is the scheduling that this job tracker was started with.
func (l *Live) useScheduling() {
	l.sharing.Scheduling = admission.LookUp(l.facts.Scheduled().Scheduling.WithDefaults(l.c.cfg.Scheduling))
	for i := range l.phases {
		p := &l.phases[i]
		l.dropPlan(p)
		l.notePlan(p)
		p.planNow(l.now)
	}
	l.assign.SetRule(l.sharing.Rule)
	for _, j := range l.order {
		j.housing.checkMovesNow()
	}
}

// noPlanReason says why an older plan, or none, is in force.
func (l *Live) noPlanReason() string {
	texts := []string{l.sharing.Unknown}
	for i := range l.phases {
		if why := l.phases[i].noPlanReason; why != "" {
			texts = append(texts, fmt.Sprintf("%ss: %s", l.phases[i].kind, why))
		}
	}
	return strings.TrimPrefix(strings.Join(texts, "; "), "; ")
}

// schedule handles a request for another scheduling.
func (l *Live) schedule(r Schedule) {
	if err := admission.CheckScheduling(r.Scheduling); err != nil {
		l.reply(r, err)
		return
	}
	l.proposeInOrder("schedule", r)
}

func (l *Live) scheduleApplied(x *facts.SchedulingChanged, fitted bool) {
	if fitted {
		l.useScheduling()
	}
	l.appliedInOrder("schedule", x, fitted)
}
