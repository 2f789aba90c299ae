package core

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core/census"
	"github.com/quernmr/quern/wire"
)

// A job's predicted end is compared with its real one when the job succeeds: as it was predicted in the
// first half of the job's life, and as late as is known. Each next prediction that is kept was made at
// twice the age of the one before or later, so two of them suffice.

// keptPredictions are the last two, oldest first. Their ages are 0 if there are none.
type keptPredictions [2]struct{ age, life time.Duration }

func (k *keptPredictions) add(age, life time.Duration) {
	if age > 0 && age >= 2*k[1].age {
		k[0], k[1].age, k[1].life = k[1], age, life
	}
}

// errorOf returns the error of the prediction in the first half of a life, as a part of this life.
func (k *keptPredictions) errorOf(life time.Duration) (part float64, ok bool) {
	for i := len(k) - 1; i >= 0; i-- {
		if k[i].age > 0 && 2*k[i].age <= life {
			return float64((k[i].life - life).Abs()) / float64(life), true
		}
	}
	return 0, false
}

// keepPrediction keeps the last forecast's prediction for a job.
func (l *leader) keepPrediction(j *job) {
	if o := l.forecasts.last.Of(j.facts.N()); o != nil && o.End != never {
		j.tally.predictions.add(l.forecasts.at-j.spec.arrived, o.End-j.spec.arrived)
	}
}

// countForecastError counts the error for a job that has succeeded.
func (l *leader) countForecastError(j *job) {
	if j.facts.End().Outcome != wire.Succeeded {
		return
	}
	for phase := range j.measures.Phases {
		l.overheads.AddWarmUp(&j.measures.Phases[phase])
	}
	l.load.AddJob(l.now, time.Duration(j.facts.End().Elapsed)*time.Millisecond, [2]time.Duration{j.measures.Phases[0].All.Took, j.measures.Phases[1].All.Took})
	if part, ok := j.tally.predictions.errorOf(time.Duration(j.facts.End().Elapsed) * time.Millisecond); ok {
		l.c.counts.ForecastErrors.Add(int64(part * census.WholeLife))
	}
}
