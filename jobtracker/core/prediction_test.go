package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/forecast"
	"github.com/quernmr/quern/wire"
)

// watched is what the status of a job has said about its end.
type watched struct {
	elapsed    time.Duration
	prediction wire.Prediction
}

// TestRanges tests the ranges that the status names at half of a job's life, under any policy. More than eight of ten hold
// the true end, if there is a range: without earlier jobs of the same names, jobs that wait for slots have none yet, and
// in jobs with one measured task ranges are wide. A range is narrow if at most a quarter of the job's life lies on either
// side of its middle.
func TestRanges(t *testing.T) {
	for mix, want := range map[string]struct{ held, narrow float64 }{
		"maps": {0.7, 0.25}, "maps+history": {0.85, 0.4}, "reduces": {0.85, 0.05}, "reduces+history": {0.9, 0.4},
		"shuffle": {0.85, 0.02}, "shuffle+history": {0.85, 0.4}, "arrivals": {0.9, 0}, "arrivals+history": {0.9, 0.2},
	} {
		t.Run(mix, func(t *testing.T) {
			held, narrow, total := 0, 0, 0
			for name := range strings.FieldsSeq(*forecastPolicies) {
				for seed := range uint64(*forecastSeeds) {
					h, n, jobs := judgeRanges(t, mix, name, seed+1)
					held, narrow, total = held+h, narrow+n, total+jobs
				}
			}
			t.Logf("%d of %d ranges hold the end, %d are narrow", held, total, narrow)
			if float64(held) < want.held*float64(total) || float64(narrow) < want.narrow*float64(total) {
				t.Errorf("%d of %d ranges hold the end, want %.0f %%; %d are narrow, want %.0f %%", held, total, 100*want.held, narrow, 100*want.narrow)
			}
		})
	}
}

// judgeRanges runs a mix, and counts the ranges at half of the jobs' lives that hold the end, and that are narrow.
func judgeRanges(t *testing.T, mix, name string, seed uint64) (held, narrow, jobs int) {
	seen := make(map[wire.JobID][]watched)
	p := watchedMix(t, mix, name, seed, func(p *paced) {
		for _, j := range p.core.leader.order {
			if s, ok := p.core.StatusAt(p.now, j.id); ok && !s.State.Ended() {
				seen[j.id] = append(seen[j.id], watched{s.Elapsed, s.Prediction})
			}
		}
	})
	for _, r := range p.records {
		var at wire.Prediction
		life := time.Duration(r.Ended-r.Submitted) * time.Millisecond
		for _, w := range seen[r.Job.ID] {
			if w.elapsed <= life/2 {
				at = w.prediction
			}
		}
		jobs++
		switch {
		case !at.Known():
			t.Logf("%s, seed %d: %s has no range at half of %v: %s", name, seed, r.Job.Name, life, at.Unknown)
			continue
		case at.Earliest <= life && life <= at.Latest:
			held++
		default:
			t.Logf("%s, seed %d: %s ends after %v, not %v to %v", name, seed, r.Job.Name, life, at.Earliest, at.Latest)
		}
		if at.Latest-at.Earliest <= life/2 {
			narrow++
		}
	}
	return held, narrow, jobs
}

// TestUnpredicted: until a job has a predicted end, a reason is given. It is true of the tasks, although the forecast is older.
func TestUnpredicted(t *testing.T) {
	p := newPaced(t, 1, wire.Scheduling{}, 1, 2, 1)
	failures := 0
	p.submit(&pacedJob{name: "n", maps: 2, reduces: 1, taskTime: [2]time.Duration{150 * time.Millisecond, 600 * time.Millisecond},
		fails: func(*pacedTracker, wire.TaskID) bool { failures++; return failures <= 4 }}) // the third attempts wait
	seen := make(map[string]bool)
	var old forecast.Forecast // made before a task has run
	var watch func()
	watch = func() {
		p.after(10*time.Millisecond, watch)
		l := p.core.leader
		if len(l.order) == 0 {
			return
		}
		j := l.order[0]
		if old == nil {
			old = slices.Clone(l.recentForecast(p.now, 0))
		}
		s, ok := p.core.StatusAt(p.now, j.id)
		if !ok || s.State.Ended() {
			return
		}
		want := "no task has run yet"
		switch {
		case s.Maps.Done > 0:
			want = "no forecast yet since its first tasks ended"
		case s.Maps.Running > 0:
			want = "first tasks still running"
		case p.failed > 0:
			want = "no task has succeeded yet"
		}
		seen[want] = true
		if got := l.predictionOf(j, old, p.now).Unknown; got != want {
			t.Errorf("at %v, with %d maps done, %d running and %d failed attempts: %q, want %q", p.now, s.Maps.Done, s.Maps.Running, p.failed, got, want)
		}
	}
	p.after(0, watch)
	p.run(1)
	if len(seen) != 4 {
		t.Errorf("only these reasons were wanted: %v", seen)
	}
}
