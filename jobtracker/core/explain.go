package core

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/wire"
)

// Explain explains the number of a job's slots, its waits and its predicted end. ok is false for
// an unknown job. Ended jobs, and followers, have few details.
func (c *Core) Explain(now time.Duration, id wire.JobID) (x wire.Explanation, ok bool) {
	f := c.facts.Find(id)
	if f == nil {
		return x, false
	}
	x = c.explainFacts(f)
	if l := c.leader; l != nil && l.jobs[f.N()] != nil {
		now = max(now, c.now)
		l.explain(&x, now, f.N(), l.recentForecast(now, 0))
		for i := range x.Phases {
			x.Phases[i].Speeds = l.speeds(l.jobs[f.N()], i)
		}
	}
	return x, true
}

// explainFacts makes the part of an Explanation that Facts know.
func (c *Core) explainFacts(j *facts.Job) wire.Explanation {
	x := wire.Explanation{
		Job: c.facts.ID(j.N()), Name: j.Name(), Owner: j.Submission().Owner(), Access: c.access(j), Pool: poolName(j.Submission()), State: c.facts.State(j),
		Suspended: j.Submission().Suspended() && !j.Ended(), Submitted: j.Submission().At(), Settings: j.Submission().Settings(),
	}
	if d := j.Submission().Settings().Deadline; d != 0 {
		x.Deadline = j.Submission().At() + d.Milliseconds()
	}
	if j.Ended() {
		x.End = j.Submission().At() + j.End().Elapsed
	}
	return x
}

// explain adds the part that only the leader knows.
func (l *leader) explain(x *wire.Explanation, now time.Duration, number int, all forecast.Forecast) {
	o, j := estimateOf(all, number), l.jobs[number]
	x.Scheduling = l.sharing.Requested
	if x.Prediction = l.predictionOf(j, all, now); x.Prediction.Known() {
		x.End = l.wallOf(j.spec.arrived + x.Prediction.Likely)
	}
	for i := range l.phases {
		if i == mapPhase || j.facts.Reduces() > 0 {
			x.Phases = append(x.Phases, l.explainPhase(j, i, o, now))
		}
	}
	x.Shuffle = l.explainShuffle(j)
	x.Holds = append(l.flowHolds(j, all), l.holds(j)...)
	if reason := l.waitReason(j, now); reason != "" && len(x.Holds) == 0 {
		x.Holds = append(x.Holds, wire.Hold{Reason: "it waits " + reason})
	}
}

// flowHolds lists the jobs of the flow that a job waits for.
func (l *leader) flowHolds(j *job, all forecast.Forecast) (list []wire.Hold) {
	if l.facts.State(j.facts) != wire.Waiting {
		return nil
	}
	for _, f := range l.facts.After(j.facts) {
		if estimate := all.Of(f.N()); estimate != nil {
			h := wire.Hold{Reason: fmt.Sprintf("it waits for its input, the output of %v (%s)", l.facts.ID(f.N()), f.Name())}
			if estimate.Measured {
				h.Expected = l.wallOf(estimate.End)
			}
			list = append(list, h)
		}
	}
	return list
}

func (l *leader) explainPhase(j *job, i int, o *forecast.Estimate, now time.Duration) wire.PhaseExplanation {
	p := &l.phases[i]
	target, inPlan := l.assign.PlanShare(p.index, &j.assign)
	x := wire.PhaseExplanation{
		Phase: p.kind, Tasks: j.totalTasks(i), Done: j.totalTasks(i) - j.tasksLeft(i), Running: j.assign.UsedSlots(i), Waiting: l.toLaunch(j, i),
		Target: target.Slots, TaskSeconds: o.Tasks[i].Time.Seconds(), RemainingSeconds: o.Work[i], Source: o.Tasks[i].Source,
	}
	if inPlan {
		x.Place, x.Of = target.Rank+1, len(p.plan.Targets)
	}
	if k, ok := slices.BinarySearchFunc(p.snapshotJobs, j.id.N, func(s plannedBounds, n int) int { return s.n - n }); ok {
		x.Min, x.Max = p.snapshotJobs[k].min, p.snapshotJobs[k].max
		if in := p.snapshotJobs[k].pool; in > 0 {
			x.PoolMin, x.Max = p.snapshotPools[in-1].Min, min(x.Max, p.snapshotPools[in-1].Max)
		}
	}
	x.SpeculationOff = !j.spec.ForKind(p.kind).Speculative
	var oldest *attempt
	for a := range j.runningAttempts(i) {
		if oldest == nil || a.began < oldest.began || a.began == oldest.began && a.id.Compare(oldest.id) < 0 {
			oldest = a
		}
		if l.adopted(a) {
			x.Adopted++
		}
		if a.second {
			x.Speculative++
		}
	}
	if oldest != nil {
		age := time.Duration(l.wallOf(now)-oldest.began) * time.Millisecond
		x.Oldest = &wire.OldestAttempt{Attempt: oldest.id, Tracker: oldest.tracker.Name, Age: max(age, 0)}
	}
	if i == mapPhase && j.assign.HasSplits() {
		x.Wait = l.assign.MaxLocalWait(&j.assign)
	}
	switch {
	case !o.Measured, j.tasksLeft(i) == 0 && j.facts.Maps() >= 0:
	case i == reducePhase && o.End != never:
		x.End = l.wallOf(o.End - l.overheads.Close)
	case i == mapPhase:
		x.End = l.wallOf(o.MapsEnd)
	}
	return x
}

// speeds lists how long a job's tasks of a phase took on each registered tracker.
func (l *leader) speeds(j *job, phase int) (list []wire.TrackerSpeed) {
	sums := l.trackerTimes(j, phase).Trackers
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if l.fleet.trackers[name] != nil {
			list = append(list, wire.TrackerSpeed{Tracker: name, Tasks: sums[name].Tasks, TaskSeconds: sums[name].Mean().Seconds()})
		}
	}
	return list
}

// explainShuffle returns nil for a job without reduces.
func (l *leader) explainShuffle(j *job) *wire.ShuffleExplanation {
	if j.facts.Reduces() == 0 {
		return nil
	}
	s := j.shuffle()
	x := &wire.ShuffleExplanation{Ready: s.Produced - s.Gathered, Remaining: s.BytesLeft(), Total: s.Total}
	if j.outputs.input > 0 {
		x.PerByte = float64(s.Produced) / float64(j.outputs.input)
	}
	portions := l.phases[mapPhase].plan.ShuffleShares
	for i := range portions {
		if portions[i].Job == j.id {
			x.Share, x.Place, x.Of = portions[i].Share, i+1, len(portions)
		}
	}
	return x
}

// wallOf converts a time of the core to Unix milliseconds; 0: unknown.
func (l *leader) wallOf(at time.Duration) int64 {
	if at == never {
		return 0
	}
	return l.c.wallAtZero + at.Milliseconds()
}
