package gather

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// FetchBatch starts to fetch partitions of several map outputs of one tracker, which may be this one.
func (g *Gather) FetchBatch(ctx context.Context, c core.FetchBatch) {
	g.start(ctx, workKey{fetch: c.Fetch}, func(ctx context.Context) core.Event {
		began := time.Now()
		ev := g.fetchBatch(ctx, c)
		if c.Local == nil {
			g.counts.addBatch(&ev, ctx.Err() != nil, time.Since(began))
		}
		return ev
	})
}

// hotLeast is the least size of a group that a run of a batch tells of: a key that is hot may have few bytes in each.
const hotLeast = wire.MinHotBytes / 16

func (g *Gather) fetchBatch(ctx context.Context, c core.FetchBatch) core.BatchDone {
	if err := makeHome(c.File); err != nil {
		exhausted := g.exhausted(err)
		return core.BatchDone{Fetch: c.Fetch, Error: err.Error(), DiskFailed: !exhausted, Exhausted: exhausted}
	}
	b := &shuffle.Batch{Job: c.Job, Partitions: c.Partitions}
	for _, o := range c.Outputs {
		b.Outputs = append(b.Outputs, shuffle.BatchOutput{Map: o.Map, Attempt: o.Attempt})
	}
	into := shuffle.BatchOptions{File: c.File, Largest: func() shuffle.Largest { return shuffle.NewLargest(wire.MaxHotGroups, hotLeast) }}
	var got shuffle.Gathered
	var err error
	if c.Local != nil {
		next := 0 // the outputs are read in their order
		got, err = shuffle.ReadBatch(b, into, func(wire.JobID, int, int) (string, error) {
			next++
			return c.Local[next-1], nil
		})
	} else {
		got, err = shuffle.FetchBatch(ctx, g.scheme+c.Outputs[0].Addr, b, into, g.options(c.Job))
	}
	ev := core.BatchDone{Fetch: c.Fetch, Ended: got.Ended}
	var failed core.FetchDone
	if err != nil {
		failed = g.fetchFailed(c.Fetch, err)
		ev.Error, ev.Stalled, ev.DiskFailed, ev.Exhausted = failed.Error, failed.Stalled, failed.DiskFailed, failed.Exhausted
	}
	for i := range got.Runs {
		r := &got.Runs[i]
		ev.Runs = append(ev.Runs, core.BatchRun{Partition: r.Partition, Outputs: r.Outputs, Segment: r.Segment, Hot: hotOf(&r.Largest)})
	}
	for _, f := range got.Failed {
		_, corrupt := errors.AsType[*shuffle.CorruptError](f.Err)
		ev.Failed = append(ev.Failed, core.BatchFailure{
			BatchPair: core.BatchPair(f.BatchPair), Error: f.Err.Error(), Corrupt: corrupt, Missing: errors.Is(f.Err, fs.ErrNotExist),
		})
	}
	for _, p := range got.Large {
		if c.Local != nil {
			ev.Large = append(ev.Large, core.BatchPair(p))
		}
	}
	if c.Local == nil {
		g.fetchLarge(ctx, c, got.Large, failed, &ev)
	}
	return ev
}

// fetchLarge fetches partitions that are too large for an answer to a batch, which ended with last. After a failure that
// may be the peer's or this tracker's, it does not try the others: each might take until it stalls.
func (g *Gather) fetchLarge(ctx context.Context, c core.FetchBatch, large []shuffle.BatchPair, last core.FetchDone, ev *core.BatchDone) {
	for _, p := range large {
		if last.Error == "" || last.Corrupt || last.Missing {
			last = g.fetchOne(ctx, c, p, ev)
		}
		if last.Error == "" {
			continue
		}
		ev.Stalled, ev.DiskFailed, ev.Exhausted = ev.Stalled || last.Stalled, ev.DiskFailed || last.DiskFailed, ev.Exhausted || last.Exhausted
		ev.Failed = append(ev.Failed, core.BatchFailure{
			BatchPair: core.BatchPair(p), Error: last.Error, Corrupt: last.Corrupt, Missing: last.Missing,
		})
	}
}

// fetchOne fetches a partition of an output into a file of its own.
func (g *Gather) fetchOne(ctx context.Context, c core.FetchBatch, p shuffle.BatchPair, ev *core.BatchDone) core.FetchDone {
	o := c.Outputs[p.Output]
	file := fmt.Sprintf("%s-%d-%d", c.File, o.Map, p.Partition)
	one := g.fetch(ctx, core.Fetch{Fetch: c.Fetch, Output: o, Job: c.Job, Partition: p.Partition, File: file})
	if one.Error == "" {
		ev.Runs = append(ev.Runs, core.BatchRun{Partition: p.Partition, Outputs: []int32{int32(p.Output)}, Segment: one.Segment})
	}
	return one
}
