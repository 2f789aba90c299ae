package schedulers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/wire"
)

// predict runs each batch twice under FLEX, so that the second run has history, and evaluates
// the predictions of the second run.
func (b *bench) predict() error {
	seeds := b.Seeds(5)
	fmt.Printf("Seeds %v: the batches of the first section, each twice under FLEX; predictions are those of the second run.\n\n", seeds)
	predicted := &predictions{byJob: make(map[string][]prediction)}
	var mu sync.Mutex // guards outcomes
	var outcomes []*outcome
	s := testbed.Shape{Trackers: 4, Maps: flexSlots / 4, Reduces: 1}
	err := inLanes(b, s, seeds, func(c *testbed.Cluster, seed uint64) error {
		if err := c.API.Schedule(b.Ctx, wire.Scheduling{Scheduler: "flex", Metric: "sum-response", Delay: "none"}); err != nil {
			return err
		}
		for again := range 2 {
			drawn := draw(seed)
			for i, j := range drawn.jobs {
				j.name, j.clusterWeight = fmt.Sprintf("known%d-%d", seed, i), 1
			}
			o, err := b.run(c, drawn, func(ctx context.Context, _ []wire.JobID) { predicted.watch(ctx, c) })
			if err != nil {
				return err
			}
			if again == 1 {
				mu.Lock()
				outcomes = append(outcomes, o)
				mu.Unlock()
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.printPredictions(predicted, outcomes)
	return nil
}

// predictions is the predicted ends that mrsubmit explain shows, polled while jobs run.
type predictions struct {
	mu    sync.Mutex
	byJob map[string][]prediction // by job, in order of time
}

type prediction struct{ at, end time.Time }

// explainPoll is the polling interval.
const explainPoll = 100 * time.Millisecond

// watch polls the predictions until ctx ends.
func (f *predictions) watch(ctx context.Context, c *testbed.Cluster) {
	tick := time.NewTicker(explainPoll)
	defer tick.Stop()
	for {
		all, err := c.API.Explanations(ctx)
		now := time.Now()
		if err == nil {
			f.mu.Lock()
			for _, x := range all {
				if !x.End.IsZero() {
					f.byJob[x.Job] = append(f.byJob[x.Job], prediction{now, x.End})
				}
			}
			f.mu.Unlock()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// errorAtHalf returns the relative error of the last prediction in the first half of a job's
// life; ok is false if there is none.
func (f *predictions) errorAtHalf(id wire.JobID, began time.Time, response float64) (relative float64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	half := began.Add(seconds(response / 2))
	for _, s := range f.byJob[id.String()] {
		if s.at.After(half) {
			break
		}
		relative, ok = s.end.Sub(began).Seconds()/response-1, true
	}
	return relative, ok
}

// printPredictions prints the share of jobs with a good prediction.
func (b *bench) printPredictions(f *predictions, outcomes []*outcome) {
	within, all, missing := 0, 0, 0
	for _, o := range outcomes {
		for i, id := range o.ids {
			relative, ok := f.errorAtHalf(id, o.began, o.ends[i])
			b.Logf("%v ended after %.2f s, predicted with an error of %+.0f %%", id, o.ends[i], 100*relative)
			all++
			switch {
			case !ok:
				missing++
			case relative >= -0.25 && relative <= 0.25:
				within++
			}
		}
	}
	testbed.Table("predicted at half of a job's life", "share of jobs", "target")
	testbed.Row(fmt.Sprintf("within 25 %% of its response: %d jobs, %d without a prediction", all, missing),
		fmt.Sprintf("%.0f %%", 100*float64(within)/float64(all)), "≥ 90 %")
}
