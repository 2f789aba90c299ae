package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// Status returns the status of a job; ok is false for an unknown job. On followers it has only
// what Facts have.
func (c *Core) Status(id wire.JobID) (s wire.JobStatus, ok bool) { return c.StatusAt(c.now, id) }

// StatusAt returns the status at a time, which may be later than the last Step.
func (c *Core) StatusAt(now time.Duration, id wire.JobID) (s wire.JobStatus, ok bool) {
	f := c.facts.Find(id)
	if f == nil {
		return wire.JobStatus{}, false
	}
	s = c.predictedStatus(f, now)
	if c.leader != nil && !f.Ended() {
		c.leader.detail(c.leader.jobs[f.N()], &s, max(now, c.now))
	}
	return s, true
}

// predictedStatus returns a job's status with its predicted end, as in lists.
func (c *Core) predictedStatus(f *facts.Job, now time.Duration) wire.JobStatus {
	now = max(now, c.now)
	s := c.statusOf(f, now)
	if c.leader != nil && !f.Ended() {
		s.Prediction = c.leader.predictionOf(c.leader.jobs[f.N()], c.leader.recentForecast(now, statusForecastAge), now)
	}
	return s
}

// statusOf returns a job's status as in lists, without its predicted end.
func (c *Core) statusOf(f *facts.Job, now time.Duration) wire.JobStatus {
	s := wire.JobStatus{ID: c.facts.ID(f.N()), Name: f.Name(), State: c.facts.State(f)}
	s.Maps.Total, s.Reduces.Total = max(f.Maps(), 0), f.Reduces()
	s.Submitted = f.Submission().At()
	s.Settings, s.Suspended = f.Submission().Settings(), f.Submission().Suspended() && !f.Ended()
	s.Owner, s.Access = f.Submission().Owner(), c.access(f)
	s.Flow, s.After = c.flowOf(f), c.inputsOf(f)
	if f.Reduces() == 0 {
		s.Maps.Done = f.CommittedTasks()
	} else {
		s.Reduces.Done = f.CommittedTasks()
	}
	setGivenUp(f, &s)
	stoppedBy := 0
	switch {
	case f.Ended():
		end := f.End()
		endedStatus(end, &s)
		stoppedBy = end.With
	case c.leader != nil:
		c.leader.status(c.leader.jobs[f.N()], &s, now)
	}
	if f.Stopping() {
		s.Error, stoppedBy = f.Stop().Reason, f.Stop().With
	}
	if stoppedBy != 0 {
		s.StoppedBy = c.facts.ID(stoppedBy)
	}
	return s
}

// flowOf returns the id of a job's flow; zero: it is alone.
func (c *Core) flowOf(f *facts.Job) (id wire.FlowID) {
	if f.Submission().Jobs() > 1 {
		id = wire.FlowID(c.facts.ID(f.Submission().First()))
	}
	return id
}

// inputsOf returns the ids of the jobs from which a job reads output.
func (c *Core) inputsOf(f *facts.Job) (ids []wire.JobID) {
	for _, earlier := range c.facts.After(f) {
		ids = append(ids, c.facts.ID(earlier.N()))
	}
	return ids
}

// setGivenUp adds the tasks that were given up.
func setGivenUp(f *facts.Job, s *wire.JobStatus) {
	var lists []string
	for i, counts := range []*wire.TaskCounts{&s.Maps, &s.Reduces} {
		set := f.GivenUpTasks(kindOf(i))
		if counts.GivenUp = set.Len(); counts.GivenUp == 0 {
			continue
		}
		name := phaseNames[i]
		if counts.GivenUp > 1 {
			name += "s"
		}
		lists = append(lists, name+" "+set.Ranges(maxGivenUpText))
	}
	s.GivenUpTasks = strings.Join(lists, "; ")
	for _, c := range f.GivenUpCauses() {
		s.GivenUp = append(s.GivenUp, wire.Truncate(c.Cause, wire.MaxTrouble))
	}
}

// maxGivenUpText is the maximum bytes of a list of tasks in a status.
const maxGivenUpText = 1000

// endedStatus fills in the part of a status that the log has of an ended job.
func endedStatus(x facts.Ended, s *wire.JobStatus) {
	s.Error, s.Troubles = x.Error, slices.Clone(x.Troubles)
	s.Elapsed = time.Duration(x.Elapsed) * time.Millisecond
	s.Counters = make(wire.Counters)
	for _, c := range x.Counters {
		s.Counters.Add(c.Group, c.Name, c.Value)
	}
	s.Read = wire.Progress{Done: x.Read, Total: x.Read}
	s.Shuffled = wire.Progress{Done: x.Shuffled, Total: x.Shuffled}
	s.Reduced = s.Shuffled
	s.Maps.Done, s.Maps.Running, s.Reduces.Running = x.Maps, 0, 0
	s.Maps.FailedAttempts = int(s.Counters.Get(wire.JobCounters, wire.FailedMaps))
	s.Reduces.FailedAttempts = int(s.Counters.Get(wire.JobCounters, wire.FailedReduces))
}

// statusForecastAge is the maximum age of the forecast in a status.
const statusForecastAge = 500 * time.Millisecond

// status fills in the part of a status that only the leader knows, except the predicted end.
func (l *leader) status(j *job, s *wire.JobStatus, now time.Duration) {
	s.Elapsed = now - j.spec.arrived
	s.Maps.Running, s.Reduces.Running = j.assign.UsedSlots(mapPhase), j.assign.UsedSlots(reducePhase)
	s.Maps.FailedAttempts, s.Reduces.FailedAttempts = j.faults.FailuresOfKind(wire.Map), j.faults.FailuresOfKind(wire.Reduce)
	s.Maps.Done = j.mapsDone()
	done := j.bytesDone()
	s.Read = wire.Progress{Done: done.Read, Total: max(j.splits.input, done.Read)}
	s.Shuffled.Done, s.Reduced.Done = done.Shuffled, done.Reduced
	out := j.knownOutput()
	s.Shuffled.Total = max(out.TotalByMaps(), s.Shuffled.Done)
	s.Reduced.Total = max(s.Shuffled.Total, s.Reduced.Done)
	s.Counters = l.totals(j)
	s.WaitReason, s.Troubles = l.waitReason(j, now), slices.Clone(j.faults.Troubles())
}

// totals sums up the counters of counted tasks and the leader's own counters.
func (l *leader) totals(j *job) wire.Counters {
	total := make(wire.Counters)
	total.Merge(j.tally.counters)
	for i, name := range []string{wire.LaunchedMaps, wire.LaunchedReduces} {
		if n := j.tally.launched[i]; n > 0 {
			total.Add(wire.JobCounters, name, int64(n))
		}
	}
	for i, name := range []string{wire.FailedMaps, wire.FailedReduces} {
		if n := j.faults.FailuresOfKind(kindOf(i)); n > 0 {
			total.Add(wire.JobCounters, name, int64(n))
		}
	}
	if n := j.facts.CommittedTasks() * (len(j.maps) - j.facts.GivenUpTasks(wire.Map).Len()); n > 0 && j.facts.Reduces() > 0 {
		total.Add(wire.TaskCounters, wire.ShuffledMaps, int64(n))
		total.Add(wire.TaskCounters, wire.MergedMapOutputs, int64(n))
	}
	for i, name := range []string{wire.GivenUpMaps, wire.GivenUpReduces} {
		if n := j.facts.GivenUpTasks(kindOf(i)).Len(); n > 0 {
			total.Add(wire.QuernCounters, name, int64(n))
		}
	}
	for i, name := range []string{wire.KilledMaps, wire.KilledReduces} {
		if n := j.tally.killed[i]; n > 0 {
			total.Add(wire.JobCounters, name, int64(n))
		}
	}
	for level, name := range []string{wire.OtherLocalMaps, wire.DataLocalMaps, wire.RackLocalMaps, wire.OtherLocalMaps} {
		if n := j.tally.levels[level]; n > 0 { // like Hadoop, maps without a location count as other
			total.Add(wire.JobCounters, name, int64(n))
		}
	}
	return total
}

// waitReason says why no task of a job runs; empty if one runs.
func (l *leader) waitReason(j *job, now time.Duration) string {
	state := l.facts.State(j.facts)
	until, deferred := j.assign.Deferred()
	reason, withdrawn := l.allWithdrawn()
	switch {
	case state == wire.Waiting:
		for _, f := range l.facts.After(j.facts) {
			if !f.Ended() {
				return fmt.Sprintf("for %v (%s)", l.facts.ID(f.N()), f.Name())
			}
		}
	case j.recovering:
		return "for the inventories of " + strings.Join(slices.Sorted(maps.Keys(l.recovery.awaiting)), ", ")
	case j.facts.Submission().Suspended():
		return "to be resumed"
	case deferred:
		return fmt.Sprintf("for a free map slot on a node with its input, elsewhere in %v", max(until-now, 0).Round(time.Millisecond))
	case j.attempts.Len() > 0:
		return ""
	case !slices.ContainsFunc(l.fleet.byIndex, func(t *tracker) bool { return t != nil && t.usable() }):
		return "for a task tracker"
	case withdrawn:
		return "for a task tracker; " + reason
	case state == wire.Running:
		return j.taskWaitReason()
	}
	if kind, ok := j.queuedService(); ok {
		return fmt.Sprintf("for room on a task tracker for its %v", kind)
	}
	return ""
}

// taskWaitReason says why no task of a running job runs.
func (j *job) taskWaitReason() string {
	switch {
	case !j.assign.HasSplits():
		return "for its splits to be read"
	case len(j.outputs.expected) > 0 && j.assign.Pending() == 0:
		return "for the map outputs of " + strings.Join(slices.Sorted(maps.Keys(j.outputs.expected)), ", ") + ", which restarted"
	case j.assign.Pending() > 0:
		return "for a free map slot"
	case j.assign.Aside() > 0:
		return "for a map slot on a tracker where its maps have not failed"
	case j.assign.Ready() > 0:
		return "for a free reduce slot"
	case j.partitionsToGather() > 0:
		return "for a free reduce slot"
	case j.partitions.homeless.Len() > 0 && !j.spec.Classical:
		return "for a task tracker with reduce slots"
	case j.faults.NextIsRetry():
		return "to relaunch a failed task"
	case j.partitions.ungathered > 0:
		return "for map output to be gathered"
	}
	return ""
}

// State returns the job's state; ok is false for an unknown job.
func (c *Core) State(id wire.JobID) (state wire.State, ok bool) {
	f := c.facts.Find(id)
	if f == nil {
		return 0, false
	}
	return c.facts.State(f), true
}
