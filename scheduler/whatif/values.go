package whatif

import (
	"cmp"

	"github.com/quernmr/quern/scheduler"
)

// Value is the value of a metric.
type Value struct {
	Metric scheduler.Metric
	Value  float64
}

// Summary has the values of metrics if jobs end at some times.
type Summary struct {
	Values       []Value // of all metrics, as schedulers compute them: responses count from now
	MeanResponse float64 // seconds from the submission to the end
	MeanStretch  float64 // of the responses
	LastEnd      float64 // seconds from now
	Late         int     // submissions that miss their deadline
	Submissions  int     // a flow counts once
}

// submission is a job or a flow, which ends with its last job.
type submission struct {
	goal  scheduler.Goal
	end   float64
	alone float64
}

// Summarize computes the values for ends of jobs, see [Prediction].
func (s *State) Summarize(ends []float64) Summary {
	alone := make(map[int]float64, len(s.Flows))
	for _, f := range s.Flows {
		alone[f.First] = f.Alone
	}
	index := make(map[int]int)
	var all []submission
	for i := range s.Jobs {
		j := &s.Jobs[i]
		first := cmp.Or(j.Flow, j.ID.N)
		k, known := index[first]
		if !known {
			k = len(all)
			index[first] = k
			all = append(all, submission{goal: j.Goal, alone: alone[first]})
		}
		all[k].end = max(all[k].end, ends[i])
	}
	x := Summary{Submissions: len(all)}
	times := make([]float64, len(all))
	for i := range all {
		u := &all[i]
		times[i] = u.end
		response := u.end + (s.Now - u.goal.Submitted).Seconds()
		x.MeanResponse += response / float64(len(all))
		if u.alone > 0 {
			x.MeanStretch += response / u.alone / float64(len(all))
		}
		x.LastEnd = max(x.LastEnd, u.end)
		if u.goal.Deadline != 0 && u.end > (u.goal.Deadline-s.Now).Seconds() {
			x.Late++
		}
	}
	costs := make([]scheduler.Cost, len(all))
	for _, m := range scheduler.Metrics() {
		for i := range all {
			costs[i] = m.Cost(all[i].goal, all[i].alone, s.Now)
		}
		x.Values = append(x.Values, Value{m, m.Aggregate.Combine(costs, times)})
	}
	return x
}
