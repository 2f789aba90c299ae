package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/scheduler/menu"
)

// forecasting keeps the last forecast of all jobs, and is the work of making the next one. A forecast of
// many jobs comes later than it is asked for: until then the last one is used. It lacks jobs
// that were submitted since.
type forecasting struct {
	jobRound
	last  forecast.Forecast // nil: no forecast yet
	at    time.Duration     // when it began
	input []forecast.Job    // of the next one; reused memory: it is large

	making     bool // the next one
	cluster    forecast.Cluster
	running    [2]runningTasks
	usual      [2]forecast.Mean // of all jobs and profiles, by phase
	prediction *forecast.Prediction
}

func (l *leader) makeForecasting() {
	l.forecasts.jobRound = jobRound{l: l, visit: l.forecasts.add, cost: oneEntry}
}

// recentForecast returns a forecast that is younger than maxAge. With many jobs it may return an older one, or
// nil, and begins the next one.
func (l *leader) recentForecast(now, maxAge time.Duration) forecast.Forecast {
	f := &l.forecasts
	if f.last != nil && now-f.at < maxAge {
		return f.last
	}
	if !f.making {
		f.begin(now)
		if !l.hasManyJobs() {
			l.charge(l.works.Finish(f))
		}
	}
	return f.last
}

// hasManyJobs reports whether a forecast of all jobs takes several Steps.
func (l *leader) hasManyJobs() bool { return len(l.order) > l.works.budget/2 }

// begin begins the next forecast.
func (f *forecasting) begin(now time.Duration) {
	l := f.l
	f.making = true
	f.cluster = forecast.Cluster{Now: now, Slots: l.fleet.slots, Bandwidth: l.bandwidth(), Overheads: l.overheads, Load: l.load, Later: menu.LaterOf(l.sharing.Policy)}
	f.running = [2]runningTasks{l.newRunningTasks(mapPhase, now), l.newRunningTasks(reducePhase, now)}
	f.usual = [2]forecast.Mean{}
	f.input = slices.Grow(f.input, len(l.order)) // in the visits, each growth would copy all jobs before
	f.round.Request()
	l.works.Add(f)
}

// Advance implements pieces.Work.
func (f *forecasting) Advance(budget int) (spent int, done bool) {
	if f.prediction == nil {
		spent, done = f.jobRound.Advance(budget)
		if !done {
			return spent, false
		}
		f.complete()
		if spent > budget/2 {
			return spent, false
		}
	}
	n, done := f.prediction.Advance(budget - spent)
	if done {
		f.last, f.at = f.prediction.Result(), f.cluster.Now
		clear(f.input) // it has pointers
		f.prediction, f.input, f.making = nil, f.input[:0], false
	}
	return spent + n, done
}

// add adds a job to the input.
func (f *forecasting) add(j *job) {
	f.l.keepPrediction(j)
	f.input = append(f.input, forecast.Job{})
	x := &f.input[len(f.input)-1]
	f.l.forecastJob(j, x)
	for phase := range f.running {
		p := &x.Phases[phase]
		*p = f.running[phase].forecastPhase(j)
		f.usual[phase].Add(p.Task(f.l.overheads.WarmUp).Time)
	}
}

// complete adds what all jobs together determine, and begins the prediction.
func (f *forecasting) complete() {
	l := f.l
	for phase := range f.usual {
		l.addProfiles(&f.usual[phase], phase)
		f.cluster.Fallback[phase] = f.usual[phase].Task()
	}
	if portions := l.phases[mapPhase].plan.ShuffleShares; len(portions) > 0 {
		turns := make(map[int]int, len(portions))
		for i := range portions {
			turns[portions[i].Job.N] = i + 1
		}
		for i := range f.input {
			f.input[i].Shuffle.Turn = turns[f.input[i].N]
		}
	}
	f.prediction = forecast.NewPrediction(&f.cluster, f.input)
}

// estimateOf returns a job's estimate in a forecast. If the forecast lacks the job, nothing is predicted.
func estimateOf(all forecast.Forecast, n int) *forecast.Estimate {
	if o := all.Of(n); o != nil {
		return o
	}
	return &forecast.Estimate{N: n, MapsEnd: never, ShuffleEnd: never, End: never}
}
