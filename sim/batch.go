package sim

import (
	"cmp"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// batchFetched ends a batch. It has the faults of fetched; besides, its answer may be full, or end early.
func (t *taskTracker) batchFetched(x *transfer, c core.FetchBatch) {
	w := t.w
	from := cmp.Or(w.trackerOf(core.Fetch{Output: c.Outputs[0]}), t)
	local := c.Local != nil
	end := func(ev core.BatchDone) {
		ev.Fetch = c.Fetch
		t.endFetch(x, ev.Fetch, ev)
	}
	switch {
	case x.done:
		return
	case !from.up || !w.connected(t.name, from.name) || !local && w.fault(w.rates.fetches):
		end(core.BatchDone{Error: "no answer from " + from.name})
		return
	case from.machine.refusesFetches && !local:
		end(core.BatchDone{Error: "status 503 from " + from.name})
		return
	case from.stops > 0, from.machine.stallsFetches && !local:
		t.later(3*time.Second, func() {
			end(core.BatchDone{Error: "no progress from " + from.name, Stalled: true})
		})
		return
	case !t.hasSpace(c.File):
		end(core.BatchDone{Error: "no space left on device", DiskFailed: true})
		return
	case !t.disk.works(c.File):
		end(core.BatchDone{Error: "input/output error", DiskFailed: true})
		return
	}
	ev := core.BatchDone{Ended: len(c.Outputs)}
	if w.fault(w.rates.fetches) {
		ev.Ended = w.rnd.IntN(len(c.Outputs) + 1)
		if !local && w.chance(0.5) {
			ev.Error = "connection reset by " + from.name
		}
	}
	from.batchRuns(c, &ev, t.disk)
	end(ev)
}

// batchRuns adds the runs of a batch to its event and to a disk.
func (t *taskTracker) batchRuns(c core.FetchBatch, ev *core.BatchDone, to *disk) {
	parts := make(map[int64][]piece)
	outputs := make(map[int][]int32)
	for i, o := range c.Outputs[:ev.Ended] {
		name, f := t.output(core.Fetch{Job: c.Job, Output: o})
		failed := core.BatchFailure{BatchPair: core.BatchPair{Output: i, Partition: -1}}
		switch {
		case f != nil && !t.disk.works(name):
			failed.Error = "input/output error at " + t.name
		case f == nil:
			failed.Error, failed.Missing = "no such output", true
		case f.damaged && t.w.sabotage != skipChecksums:
			failed.Error, failed.Corrupt = "bad checksum", true
		}
		if failed.Error != "" {
			ev.Failed = append(ev.Failed, failed)
			continue
		}
		for _, p := range c.Partitions {
			if records(c.Job, o.Map, p) {
				offset := int64(p) * segmentLength
				parts[offset] = append(parts[offset], f.read(0)...)
				outputs[p] = append(outputs[p], int32(i))
			}
		}
	}
	for _, p := range c.Partitions {
		if len(outputs[p]) > 0 {
			segment := wire.Segment{File: c.File, Offset: int64(p) * segmentLength, Length: segmentLength}
			ev.Runs = append(ev.Runs, core.BatchRun{Partition: p, Outputs: outputs[p], Segment: segment})
		}
	}
	if len(ev.Runs) > 0 {
		to.files[c.File] = &file{pieces: []piece{}, parts: parts}
	}
}
