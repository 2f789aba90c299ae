package core

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/wire"
)

// predictionOf returns what users see of a job's forecast at a time, which may be later than the forecast.
// Everything that shows a predicted end shows this one.
func (l *leader) predictionOf(j *job, all forecast.Forecast, now time.Duration) wire.Prediction {
	o := all.Of(j.facts.N())
	since := func(at time.Duration) time.Duration { return max(at, now) - j.spec.arrived }
	if o != nil && o.Range != (forecast.Range{}) {
		return wire.Prediction{Earliest: since(o.Range.Earliest), Likely: max(since(o.Range.Likely), 1), Latest: max(since(o.Range.Latest), 1)}
	}
	p := wire.Prediction{Unknown: l.unpredicted(j, all)}
	if o != nil && o.Soonest != 0 && p.Unknown != "" {
		p.Earliest = since(o.Soonest)
	}
	return p
}

// unpredicted says why the end of a job is not predicted. A forecast is older than what the leader knows of the tasks: short
// tasks may have run since.
func (l *leader) unpredicted(j *job, all forecast.Forecast) string {
	succeeded := j.outputs.chosen > 0 || j.facts.SettledTasks() > 0
	switch o := all.Of(j.facts.N()); {
	case j.facts.Stopping():
		return ""
	case j.facts.Submission().Suspended():
		return "suspended"
	case o == nil:
		return "the forecast does not have it yet"
	case !succeeded && j.workingTasks(mapPhase)+j.workingTasks(reducePhase) > 0:
		return "first tasks still running"
	case o.Measured:
		return "" // no slots, or a change of leader: WaitReason tells
	case succeeded:
		return "no forecast yet since its first tasks ended"
	case !j.isUnstarted():
		return "no task has succeeded yet"
	}
	return "no task has run yet"
}
