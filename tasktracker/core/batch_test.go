package core

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// largeOutput is the size of outputs that are in no batch.
const largeOutput = 1 << 40

// endOf returns the event that ends a fetch or a batch, with an error or with empty partitions.
func endOf(c *Core, id int, failed string) Event {
	f := c.fetches[id]
	switch {
	case f.batch == nil:
		return FetchDone{Fetch: id, Error: failed}
	case failed != "":
		return BatchDone{Fetch: id, Error: failed}
	}
	return BatchDone{Fetch: id, Ended: len(f.batch.outputs)}
}

// batchDone is the verb "batch": it ends a batch. Without further arguments, each home gets a run with all outputs.
//
//	batch f=1 ended=2 error=text stalled disk-failed exhausted fails=1/0 corrupt missing large=1/0
//
// fails and large name the place of an output in the batch, and a partition.
func (s *scenario) batchDone(a args) Event {
	f := s.core.fetches[a.int("f", 1)]
	ev := BatchDone{Fetch: a.int("f", 1), Error: a.text("error"), Stalled: a.d.HasArg("stalled"), DiskFailed: a.d.HasArg("disk-failed"),
		Exhausted: a.d.HasArg("exhausted")}
	if f == nil || f.batch == nil {
		return ev
	}
	if ev.Ended = a.int("ended", len(f.batch.outputs)); ev.DiskFailed {
		ev.Ended = 0
	}
	pair := func(text string) BatchPair {
		var p BatchPair
		if _, err := fmt.Sscan(strings.ReplaceAll(text, "/", " "), &p.Output, &p.Partition); err != nil {
			a.t.Fatal(err)
		}
		return p
	}
	if text := a.text("fails"); text != "" {
		ev.Failed = []BatchFailure{{BatchPair: pair(text), Error: "broken", Corrupt: a.d.HasArg("corrupt"), Missing: a.d.HasArg("missing")}}
	}
	if text := a.text("large"); text != "" {
		ev.Large = []BatchPair{pair(text)}
	}
	addRuns(&ev, f.file, len(f.batch.homes), func(i int) int { return f.batch.homes[i].partition })
	return ev
}

// addRuns adds a run for each home, with all outputs that have ended and not failed.
func addRuns(ev *BatchDone, file string, homes int, partition func(i int) int) {
	for i := range homes {
		r := BatchRun{Partition: partition(i), Segment: wire.Segment{File: file, Offset: int64(10 * i), Length: 10}}
		for o := range ev.Ended {
			is := func(p BatchPair) bool { return p.Output == o && (p.Partition == -1 || p.Partition == r.Partition) }
			if !slices.ContainsFunc(ev.Failed, func(f BatchFailure) bool { return is(f.BatchPair) }) && !slices.ContainsFunc(ev.Large, is) {
				r.Outputs = append(r.Outputs, int32(o))
			}
		}
		if len(r.Outputs) > 0 {
			ev.Runs = append(ev.Runs, r)
		}
	}
}

// fetchEnds ends a fetch, a look-up or a batch at random.
func (w *world) fetchEnds() {
	id, ok := pick(w.t, w.fetches, cmp.Compare[int])
	if !ok {
		return
	}
	f := w.fetches[id]
	delete(w.fetches, id)
	if f.batch != nil {
		w.batchEnds(f.batch)
		return
	}
	ev := FetchDone{Fetch: id, Records: 1, Segment: wire.Segment{File: f.File, Length: 5}}
	switch {
	case w.percent(20):
		ev = FetchDone{Fetch: id, Error: "broken", Corrupt: w.percent(50), Missing: w.percent(20), Stalled: w.percent(20), DiskFailed: w.percent(20),
			Exhausted: w.percent(20)}
	default:
		ev.Records = int64(rapid.IntRange(0, 3).Draw(w.t, "records"))
		w.files[f.File] = true
	}
	w.step(ev)
}

// batchEnds ends a batch at random.
func (w *world) batchEnds(b *FetchBatch) {
	ev := BatchDone{Fetch: b.Fetch, Ended: len(b.Outputs)}
	if w.percent(20) {
		ev.Ended = rapid.IntRange(0, len(b.Outputs)).Draw(w.t, "ended")
		ev.Error, ev.Stalled, ev.Exhausted = "broken", w.percent(20), w.percent(20)
		if w.percent(20) {
			ev.DiskFailed, ev.Ended = true, 0
		}
	}
	pair := func() BatchPair {
		return BatchPair{rapid.IntRange(0, ev.Ended-1).Draw(w.t, "output"), rapid.SampledFrom(append(slices.Clone(b.Partitions), -1)).Draw(w.t, "partition")}
	}
	if ev.Ended > 0 && w.percent(20) {
		ev.Failed = []BatchFailure{{BatchPair: pair(), Error: "broken", Corrupt: w.percent(50), Missing: w.percent(20)}}
	}
	if ev.Ended > 0 && b.Local != nil && len(ev.Failed) == 0 && w.percent(20) {
		if p := pair(); p.Partition >= 0 {
			ev.Large = []BatchPair{p}
		}
	}
	addRuns(&ev, b.File, len(b.Partitions), func(i int) int { return b.Partitions[i] })
	w.files[b.File] = len(ev.Runs) > 0
	if !w.files[b.File] {
		delete(w.files, b.File)
	}
	w.step(ev)
}
