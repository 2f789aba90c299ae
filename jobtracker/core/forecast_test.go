package core

import (
	"flag"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

var forecastSeeds = flag.Int("forecast-seeds", 2, "how many mixes TestForecast draws for each policy")

var forecastPolicies = flag.String("forecast-policies", "fair flex srpt hmhs", "the policies of TestForecast")

// TestForecast tests the end that a history has predicted at half of a job's life. For nine of
// ten jobs it is off by at most a quarter of the response time, under any policy. Without earlier
// jobs of the same name, long reduces allow only six of ten. The mixes are from the FLEX paper.
func TestForecast(t *testing.T) {
	for mix, minShare := range map[string]float64{
		"maps": 0.9, "maps+history": 0.9, "reduces": 0.6, "reduces+history": 0.9,
		"shuffle": 0.6, "shuffle+history": 0.9, "arrivals": 0.6, "arrivals+history": 0.9,
	} {
		t.Run(mix, func(t *testing.T) {
			good, total := 0, 0
			for name := range strings.FieldsSeq(*forecastPolicies) {
				right, jobs := countRight(t, mix, name)
				t.Logf("%s: %d of %d", name, right, jobs)
				good += right
				total += jobs
			}
			if float64(good) < minShare*float64(total) {
				t.Errorf("%d of %d predicted ends are off by at most a quarter, want %.0f %%", good, total, 100*minShare)
			}
		})
	}
}

// TestMixRepeats tests that a seed always gives the same attempts and predictions, under any
// policy.
func TestMixRepeats(t *testing.T) {
	for _, name := range menu.Names() {
		one, two := pacedMix(t, "shuffle+history", name, 1), pacedMix(t, "shuffle+history", name, 1)
		if one.seq != two.seq {
			t.Errorf("%s: %d events, then %d", name, one.seq, two.seq)
		}
		for i, r := range one.records {
			if other := two.records[i]; !reflect.DeepEqual(r, other) {
				t.Errorf("%s: history %d is of %v, which took %v; in the second run of %v, which took %v",
					name, i, r.Job.ID, r.Job.Elapsed, other.Job.ID, other.Job.Elapsed)
				break
			}
		}
	}
}

func countRight(t *testing.T, mix, name string) (right, jobs int) {
	for seed := range uint64(*forecastSeeds) {
		for _, r := range pacedMix(t, mix, name, seed+1).records {
			jobs++
			if off := endError(t, r); off <= 0.25 {
				right++
			} else if testing.Verbose() {
				t.Logf("%s, seed %d: %s is off by %.0f %% of %v", name, seed+1, r.Job.Name, 100*off, r.Job.Elapsed)
			}
		}
	}
	return right, jobs
}

// pacedMix runs ten jobs. In a mix with history it runs them twice, so that their names are known.
func pacedMix(t *testing.T, mix, name string, seed uint64) *paced {
	return watchedMix(t, mix, name, seed, nil)
}

// watchedMix is pacedMix, and calls watch every 100 ms.
func watchedMix(t *testing.T, mix, name string, seed uint64, watch func(p *paced)) *paced {
	p := newPaced(t, seed, wire.Scheduling{Scheduler: name}, 4, 10, 5)
	if watch != nil {
		p.watch(watch)
	}
	kind, known := strings.CutSuffix(mix, "+history")
	if kind == "shuffle" {
		p.fetchRate = 20e6
	}
	p.workerStart = 150 * time.Millisecond
	const jobs = 10
	var drawn []*pacedJob
	for i := range jobs {
		drawn = append(drawn, p.draw(kind, i))
		p.submit(drawn[i])
	}
	p.run(jobs)
	if known {
		p.records = nil
		for i, j := range drawn {
			again := *j
			again.submitAt = p.now + j.submitAt + time.Duration(i)
			p.submit(&again)
		}
		p.run(jobs)
	}
	return p
}

func (p *paced) watch(see func(p *paced)) {
	see(p)
	p.after(100*time.Millisecond, func() { p.watch(see) })
}

func (p *paced) draw(kind string, i int) *pacedJob {
	j := &pacedJob{name: fmt.Sprintf("j%d", i), maps: 10 + p.rnd.IntN(60), spread: 0.3}
	if p.rnd.Float64() < 0.1 || i == 4 {
		j.maps = 200 + p.rnd.IntN(300)
	}
	j.taskTime[mapPhase] = time.Duration((0.4 + 0.3*p.rnd.Float64()) * 1e9)
	if kind == "maps" {
		return j
	}
	j.maps = max(1, j.maps/4)
	j.taskTime[mapPhase] = time.Duration((0.5 + p.rnd.Float64()) * 2e9)
	j.reduces = 1 + p.rnd.IntN(8)
	j.taskTime[reducePhase] = time.Duration((0.5 + p.rnd.Float64()) * 3e9)
	j.bytes = int64(float64(p.rnd.IntN(10)) * 1e6)
	if kind == "arrivals" {
		j.submitAt = time.Duration(i) * 4 * time.Second
	}
	return j
}

// endError returns the error of the end predicted at half of a job's life, divided by its life.
func endError(t *testing.T, r *history.Record) float64 {
	half := r.Submitted + (r.Ended-r.Submitted)/2
	var last *history.Planned
	for i := range r.Plans {
		if p := &r.Plans[i]; p.At <= half && p.End != 0 && (last == nil || p.At >= last.At) {
			last = p
		}
	}
	if last == nil {
		t.Logf("%s has no prediction at half of its life: %v of %v", r.Job.Name, len(r.Plans), r.Job.Elapsed)
		return math.Inf(1)
	}
	if !slices.IsSortedFunc(r.Plans, func(a, b history.Planned) int { return int(a.At - b.At) }) {
		t.Errorf("%s: plans are out of order", r.Job.Name)
	}
	return math.Abs(float64(last.End-r.Ended)) / float64(r.Ended-r.Submitted)
}

// TestHistoryHasNoForecast tests that writing a history does not predict the ends of all jobs,
// which is expensive in large clusters.
func TestHistoryHasNoForecast(t *testing.T) {
	p := newPaced(t, 1, wire.Scheduling{}, 1, 1, 1)
	p.submit(&pacedJob{name: "j", maps: 2, taskTime: [2]time.Duration{time.Second}})
	p.run(1)
	l := p.core.leader
	l.forecasts.last = nil
	l.writeHistory(l.order[0])
	if l.forecasts.last != nil {
		t.Error("writing a history predicts the ends of all jobs")
	}
}
