package core

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/health"
	"github.com/quernmr/quern/wire"
)

// outputLost handles a map output that tracker t could not read. The map reruns, unless t could
// not reach the server and is at fault itself. Then the job's homes on t move.
func (l *leader) outputLost(t *tracker, r *wire.OutputLost) {
	j := l.jobOfOutput(r)
	if j == nil {
		return
	}
	if l.isGone(&j.maps[r.Map].output) {
		return // it is about to be dropped
	}
	server := l.fleet.trackers[l.outputOf(j, r.Map).Tracker]
	if !r.Unreachable || server == t {
		l.rerunLost(j, r, nil)
		return
	}
	if t.hosting.homes[j] == nil {
		return // its homes have moved
	}
	at, reason := l.fetches.Fail(t.Name, server.Name, l.inService(r.Reached), l.usableTrackers(), l.now)
	switch {
	case at == health.FaultFetcher && l.excludeFetching(t, reason):
	case (at == health.FaultFetcher || at == health.FaultHome) && l.moveHomes(j, t):
	default:
		unreached := l.fetches.Unreached(t.Name)
		excluded := (at == health.FaultServer || at == health.FaultUnread) && l.excludeFetching(server, reason)
		l.rerunLost(j, r, unreached)
		if excluded && at == health.FaultUnread {
			l.dropUnread(server, reason)
		}
	}
}

// dropUnread drops all map outputs of a tracker that most others cannot read, and the maps that run
// there: otherwise each of the others would have to find out for each output. The maps rerun
// elsewhere if a home needs them.
func (l *leader) dropUnread(server *tracker, reason string) {
	if server.dropsUnread {
		return
	}
	server.dropsUnread = true
	dropped := make(map[int]int) // by job
	l.visitOutputs(server, &outputVisits{
		visit: func(j *job, m int) {
			if j.facts.Running() {
				l.rejectOutput(j, m, reason)
				dropped[j.facts.N()]++
			}
		},
		jobs: func() []int { return slices.Collect(maps.Keys(dropped)) },
		tell: func(j *job) {
			j.faults.AddTrouble(fmt.Sprintf("%s of tracker %s dropped: %s", plural(dropped[j.facts.N()], "map output"), server.Name, reason))
		},
		end: func() { server.dropsUnread = false },
	})
	for _, a := range server.attempts {
		if a.id.Task.Kind == wire.Map && a.job.facts.Reduces() > 0 {
			l.killAttempt(a, "most task trackers cannot fetch map outputs from this one")
		}
	}
}

// jobOfOutput returns the running job that has chosen a map output of a tracker, or nil.
func (l *leader) jobOfOutput(r *wire.OutputLost) *job {
	j := l.job(r.Job)
	if j == nil || !j.facts.Running() || r.Map < 0 || r.Map >= len(j.maps) || j.facts.Reduces() == 0 {
		return nil
	}
	if m := &j.maps[r.Map]; m.output.place == 0 || m.output.attempt != r.Attempt {
		return nil
	}
	return j
}

// leave makes a task wait for a slot on another tracker than those that are unreached or slow. If the
// task avoids all trackers, it avoids only these from now on. It reports whether there are others.
func (l *leader) leave(j *job, tk *task, trackers ...string) bool {
	for _, name := range trackers {
		j.avoid(tk, name)
	}
	if !l.hasAlternative(j, tk) {
		j.faults.AvoidOnly(tk.key(), trackers)
	}
	if !l.hasAlternative(j, tk) {
		return false
	}
	l.awaitAlternative(j, tk)
	return true
}

// awaitAlternative makes a task wait for a slot on a tracker that it does not avoid.
func (l *leader) awaitAlternative(j *job, tk *task) {
	if j.faults.AvoidLonger(tk.key(), l.now) {
		l.alarmRetries(j)
	}
}

// inService counts the trackers that are not out of service and will not be.
func (l *leader) inService(names []string) (n int) {
	for _, name := range names {
		if t := l.fleet.trackers[name]; t != nil && !t.outOfService() && !l.exclusionProposed(t) {
			n++
		}
	}
	return n
}

// usableTrackers counts the trackers that have a connection. It includes those out of service,
// which still serve map outputs.
func (l *leader) usableTrackers() (n int) {
	for _, t := range l.fleet.byIndex {
		if t != nil && t.usable() {
			n++
		}
	}
	return n
}

// excludeFetching excludes a tracker that is at fault for failed fetches, if enough others
// remain. It reports whether the tracker is excluded or will be: its homes then move.
func (l *leader) excludeFetching(t *tracker, reason string) bool {
	if t.Excluded == "" && !l.exclusionProposed(t) {
		if !l.fetches.MayExclude(l.otherTrackers(t)) {
			return false
		}
		l.fetches.Forget(t.Name)
		l.exclude(t, reason)
	}
	return true
}

// moveHomes moves a job's incomplete homes away from a tracker. It reports whether each of them
// could move.
func (l *leader) moveHomes(j *job, t *tracker) bool {
	moved := true
	for p := range t.hosting.homes[j].All() {
		h := &j.partitions.homes[p]
		if _, grant := j.facts.Grant(p); h.complete || grant || j.reduces[p].runsOn(t) {
			continue
		}
		j.avoid(&j.reduces[p], t.Name)
		if !l.hasAlternative(j, &j.reduces[p]) {
			moved = false
			continue
		}
		l.awaitAlternative(j, &j.reduces[p])
		l.rehome(j, p)
	}
	return moved
}
