package core

import (
	"github.com/quernmr/quern/jobtracker/core/health"
	"github.com/quernmr/quern/wire"
)

// unreadable returns the job with a chosen map output that a tracker could not read; nil if the
// output is not chosen any more.
func (l *leader) unreadable(r *wire.OutputLost) *job {
	j := l.job(r.Job)
	if j == nil || !j.facts.Running() || r.Map < 0 || r.Map >= len(j.maps) || j.facts.Reduces() == 0 {
		return nil
	}
	if m := &j.maps[r.Map]; !m.output.atHand() || m.output.attempt != r.Attempt {
		return nil
	}
	return j
}

// outputLost handles a map output that tracker t could not read. The map reruns if the output is
// damaged, or if t is not clearly at fault. Otherwise the job's homes on t move.
func (l *leader) outputLost(t *tracker, r *wire.OutputLost) {
	j := l.unreadable(r)
	if j == nil {
		return
	}
	server := l.outputOf(j, r.Map).Tracker
	if r.Corrupt || server == t.Name {
		l.rerunLost(j, r)
		return
	}
	if t.hosting.homes[j] == nil {
		return // its homes have moved
	}
	at, reason := l.fetches.Fail(t.Name, server, l.usableTrackers(), l.now)
	switch {
	case at == health.FaultFetcher && l.blameFetches(t, reason):
	case at == health.FaultServer:
		l.blameFetches(l.fleet.trackers[server], reason)
		l.rerunLost(j, r)
	case at != health.FaultHome || !l.moveHomes(j, t):
		l.rerunLost(j, r)
	}
}

// usableTrackers counts the trackers that can run tasks.
func (l *leader) usableTrackers() (n int) {
	for _, t := range l.fleet.byIndex {
		if t != nil && t.usable() {
			n++
		}
	}
	return n
}

// blameFetches excludes a tracker, if enough others remain. It reports whether the tracker is
// excluded or will be.
func (l *leader) blameFetches(t *tracker, reason string) bool {
	if t.Excluded != "" {
		return true
	}
	if others := l.otherTrackers(t); !others.EnoughRemain() {
		return false
	}
	l.fetches.Forget(t.Name)
	l.exclude(t, reason)
	return true
}

// moveHomes moves a job's incomplete homes away from a tracker. It reports whether each of them
// could move.
func (l *leader) moveHomes(j *job, t *tracker) bool {
	moved := true
	for p := range t.hosting.homes[j].All() {
		h := &j.partitions.homes[p]
		if _, grant := j.facts.Grant(p); h.complete || grant || j.reduces[p].runs() {
			continue
		}
		j.avoid(&j.reduces[p], t.Name)
		if !l.hasAlternative(j, &j.reduces[p]) {
			moved = false
			continue
		}
		l.rehome(j, p)
	}
	return moved
}
