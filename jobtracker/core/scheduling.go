package core

import (
	"fmt"
	"strings"

	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler/pool"
)

// sharing is the scheduling in force, and the pool table that may come into force next.
type sharing struct {
	admission.Scheduling
	pendingPools *pool.Table // the last table that was read; nil: it is in force
	poolsError   string      // why the newest pool table is not in force
	limits       poolLimits
}

// useScheduling uses the scheduling in Facts, by default Config.Scheduling. It drops the plans of
// the earlier scheduling.
func (l *leader) useScheduling() {
	l.sharing.Scheduling = admission.LookUp(l.facts.Scheduled().Scheduling.WithDefaults(l.c.cfg.Scheduling))
	for i := range l.phases {
		p := &l.phases[i]
		l.dropPlan(p)
		l.recordPlan(p)
		p.planNow(l.now)
	}
	l.assign.SetRule(l.sharing.Rule)
	for _, j := range l.order {
		j.partitions.checkMovesNow()
	}
}

// noPlanReason says why the plan in force is old, or missing.
func (l *leader) noPlanReason() string {
	texts := []string{l.sharing.Unknown}
	for i := range l.phases {
		if reason := l.phases[i].noPlanReason; reason != "" {
			texts = append(texts, fmt.Sprintf("%ss: %s", l.phases[i].kind, reason))
		}
	}
	return strings.TrimPrefix(strings.Join(texts, "; "), "; ")
}

// scheduleKey is the key of all requests to change the scheduling.
const scheduleKey = "schedule"

func (l *leader) schedule(r Schedule) {
	if err := admission.CheckScheduling(r.Scheduling); err != nil {
		l.reply(r, err)
		return
	}
	l.proposeInOrder(scheduleKey, r)
}

func (l *leader) scheduleApplied(x *facts.SchedulingChanged, changed bool) {
	if changed {
		l.useScheduling()
	}
	l.appliedInOrder(scheduleKey, x, changed)
}
