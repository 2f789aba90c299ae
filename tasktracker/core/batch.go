package core

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/quernmr/quern/wire"
)

// A batch is one fetch of small partitions: those of several homes, of several outputs of one tracker. A reduce would
// read many small files otherwise, so a batch merges the outputs first, in memory. While a batch runs, its homes
// still want its maps, but these are in no queue: a map is in one batch at most. Outputs of this tracker are copied by
// batches too, because a file would be opened for each of their partitions otherwise.

// Limits of a batch. Its outputs are expected to have at most batchBytes for its homes; the other tracker keeps the
// exact limit.
const (
	smallPartition     = 64 << 10 // mean bytes of a partition of an output
	manyMaps           = 64       // a home with more would read many small files
	batchBytes         = 8 << 20
	maxBatchMaps       = 256
	maxBatchPartitions = 1000
)

// batch is a running [FetchBatch].
type batch struct {
	homes     []*home // on one disk
	outputs   []wire.MapOutput
	sources   []*attempt // with the outputs, if they are of this tracker
	cancelled bool
}

// runFile is a file with runs of several homes. It is removed with the last of them.
type runFile struct {
	path string
	runs int
}

// inBatches reports whether a home fetches an output by batches.
func (c *Core) inBatches(h *home, o *wire.MapOutput) bool {
	return h.maps > min(manyMaps, c.cfg.MergeFactor) && h.job.partitionBytes(o) <= smallPartition
}

// partitionBytes estimates the bytes of a partition of an output. The tracker does not know how many partitions there
// are, only the last one of its homes.
func (j *job) partitionBytes(o *wire.MapOutput) int64 { return o.Bytes / int64(j.partitions) }

// startBatch starts a batch with the first map of a queue; false: it must be fetched alone. See hasNext.
func (c *Core) startBatch(q *queue) bool {
	j, m := q.job, int(q.waiting[0])
	o := j.outputs[m].MapOutput
	first := j.homes[slices.IndexFunc(j.homes, func(h *home) bool { return h.wanted.Has(m) })]
	if !c.inBatches(first, &o) {
		if o.Tracker == c.cfg.Tracker { // the leader has named another, larger one
			c.lookUpQueued(q, o)
			return true
		}
		return false
	}
	b := &batch{homes: j.batchHomes(first, &o)}
	for _, m := range q.takeBatch(c, b.homes) {
		o := j.outputs[m].MapOutput
		if o.Tracker == c.cfg.Tracker {
			source := c.outputHere(j, o)
			if source == nil {
				c.lookUpQueued(q, o)
				continue
			}
			source.inPlaceUses++
			b.sources = append(b.sources, source)
		}
		j.inBatch.Add(m)
		b.outputs = append(b.outputs, o)
	}
	if len(b.outputs) > 0 {
		c.doBatch(q, b)
	}
	return true
}

// doBatch starts a batch.
func (c *Core) doBatch(q *queue, b *batch) {
	j, d := q.job, b.homes[0].disk
	f := &fetch{id: next(&c.last.fetch), startedAt: c.now, job: j, queue: q, batch: b}
	f.file = path.Join(d.jobDir(j.id), "batches", fmt.Sprint(f.id))
	c.fetches[f.id] = f
	j.batches = append(j.batches, f)
	j.busy++
	c.countFetch(q, 1)
	if b.sources != nil {
		c.copying++
	}
	cmd := FetchBatch{Fetch: f.id, Job: j.id, Outputs: b.outputs, File: f.file}
	for _, h := range b.homes {
		cmd.Partitions = append(cmd.Partitions, h.partition)
	}
	for i, a := range b.sources {
		cmd.Local = append(cmd.Local, MapOutputPath(a.disk.path, j.id, b.outputs[i].Map, b.outputs[i].Attempt))
	}
	c.do(cmd)
}

// outputHere returns the attempt of this tracker with an output; nil: it is not here.
func (c *Core) outputHere(j *job, o wire.MapOutput) *attempt {
	if a := c.attempts[mapAttempt(j.id, o)]; a != nil && a.hasOutput() {
		return a
	}
	return nil
}

// lookUpQueued looks up an output of this tracker for all homes that want it.
func (c *Core) lookUpQueued(q *queue, o wire.MapOutput) {
	if q.job.inQueue.Remove(o.Map) {
		q.waiting = slices.DeleteFunc(q.waiting, func(m int32) bool { return int(m) == o.Map })
	}
	for _, h := range q.job.homes {
		if h.wanted.Has(o.Map) {
			h.unqueue(o.Map)
			c.lookUp(h, o)
		}
	}
	c.endedQueues = append(c.endedQueues, q)
}

// batchHomes returns homes that want an output, as many as fit into a batch, all on the disk of the first.
func (j *job) batchHomes(first *home, o *wire.MapOutput) (homes []*home) {
	most := min(maxBatchPartitions, batchBytes/max(j.partitionBytes(o), 1))
	for _, h := range j.homes {
		if h.wanted.Has(o.Map) && h.disk == first.disk && h.maps == first.maps && int64(len(homes)) < most {
			homes = append(homes, h)
		}
	}
	return homes
}

// takeBatch takes the first map, and others that all of these homes want.
func (q *queue) takeBatch(c *Core, homes []*home) (maps []int) {
	j, left := q.job, int64(batchBytes)
	for _, m := range q.waiting[:min(len(q.waiting), 4*maxBatchMaps)] {
		o := &j.outputs[int(m)].MapOutput
		size := j.partitionBytes(o) * int64(len(homes))
		switch {
		case len(maps) > 0 && (size > left || !c.inBatches(homes[0], o)):
			continue
		case slices.ContainsFunc(homes, func(h *home) bool { return !h.wanted.Has(int(m)) }):
			continue
		}
		left -= size
		j.inQueue.Remove(int(m))
		if maps = append(maps, int(m)); len(maps) == maxBatchMaps {
			break
		}
	}
	slices.Sort(maps)
	q.waiting = slices.DeleteFunc(q.waiting, func(m int32) bool { return !j.inQueue.Has(int(m)) })
	return maps
}

// cancelBatch cancels the batch with a map, which no home wants any more from there.
func (c *Core) cancelBatch(f *fetch) {
	if !f.batch.cancelled {
		f.batch.cancelled = true
		c.do(CancelFetch{f.id})
	}
}

// cancelBatchWith cancels the batch with a map: its output is elsewhere now.
func (c *Core) cancelBatchWith(j *job, m int) {
	if !j.inBatch.Has(m) {
		return
	}
	for _, f := range j.batches {
		if slices.ContainsFunc(f.batch.outputs, func(o wire.MapOutput) bool { return o.Map == m }) {
			c.cancelBatch(f)
		}
	}
}

// cancelUnwantedBatches cancels the batches of a job that have no home any more.
func (c *Core) cancelUnwantedBatches(j *job) {
	for _, f := range j.batches {
		if !slices.ContainsFunc(f.batch.homes, func(h *home) bool { return !h.dropped }) {
			c.cancelBatch(f)
		}
	}
}

// fresh reports whether a home still wants an output of a batch.
func (f *fetch) fresh(h *home, o *wire.MapOutput) bool {
	named := f.job.outputs[o.Map]
	return !h.dropped && named != nil && named.MapOutput == *o && h.wanted.Has(o.Map)
}

// batchDone takes what a batch has fetched, and queues the rest again.
func (c *Core) batchDone(ev BatchDone) {
	f := c.fetches[ev.Fetch]
	if f == nil || f.batch == nil {
		return
	}
	b, j := f.batch, f.job
	delete(c.fetches, f.id)
	j.batches = slices.DeleteFunc(j.batches, func(x *fetch) bool { return x == f })
	c.countFetch(f.queue, -1)
	if b.sources != nil {
		c.copying--
	}
	for _, o := range b.outputs {
		j.inBatch.Remove(o.Map)
	}
	ev.Ended = min(ev.Ended, len(b.outputs))
	took := c.takeBatchRuns(f, &ev)
	if took && b.sources == nil {
		host := f.queue.host
		host.failures, host.pausedUntil = 0, 0
		c.lastFetched[host.tracker] = c.now
	}
	failed := c.batchFailures(f, &ev)
	for _, p := range ev.Large {
		if o, h := &b.outputs[p.Output], f.homeOf(p.Partition); h != nil && f.fresh(h, o) {
			h.unqueue(o.Map)
			c.lookUp(h, *o)
		}
	}
	c.queueRest(f, &ev, cmp.Or(ev.Error, failed))
	for _, a := range b.sources {
		c.releaseInPlace(a)
	}
	c.endWork(j)
}

// homeOf returns the home of a partition in a batch; nil: it was dropped.
func (f *fetch) homeOf(partition int) *home {
	for _, h := range f.batch.homes {
		if h.partition == partition && !h.dropped {
			return h
		}
	}
	return nil
}

// takeBatchRuns adds the runs of a batch to its homes, and reports whether there was any output.
func (c *Core) takeBatchRuns(f *fetch, ev *BatchDone) (took bool) {
	skip := make(map[BatchPair]bool)
	for _, x := range ev.Failed {
		skip[x.BatchPair] = true
	}
	for _, p := range ev.Large {
		skip[p] = true
	}
	runs := make(map[int][]*BatchRun, len(ev.Runs))
	for i := range ev.Runs {
		runs[ev.Runs[i].Partition] = append(runs[ev.Runs[i].Partition], &ev.Runs[i])
	}
	file := &runFile{path: f.file}
	for _, h := range f.batch.homes {
		if !c.takeHome(f, h, file, runs[h.partition], ev.Ended, skip) {
			for _, r := range runs[h.partition] {
				if r.Segment.File != f.file {
					c.do(Remove{r.Segment.File})
				}
			}
			continue
		}
		took = true
	}
	if file.runs == 0 {
		c.do(Remove{f.file})
	}
	return took
}

// takeHome adds the runs of a batch to a home. If an output in them has been replaced, it takes none.
func (c *Core) takeHome(f *fetch, h *home, file *runFile, runs []*BatchRun, ended int, skip map[BatchPair]bool) (took bool) {
	outputs := f.batch.outputs
	for _, r := range runs {
		if slices.ContainsFunc(r.Outputs, func(i int32) bool { return !f.fresh(h, &outputs[i]) }) {
			return false
		}
	}
	for i := range outputs[:ended] {
		o := &outputs[i]
		if len(skip) > 0 && (skip[BatchPair{i, -1}] || skip[BatchPair{i, h.partition}]) || !f.fresh(h, o) {
			continue
		}
		took = true
		h.unqueue(o.Map)
		c.hold(h, *o)
	}
	if !took {
		return false
	}
	h.disk.strikes = 0
	for _, r := range runs {
		c.addBatchRun(f, h, file, r)
	}
	return true
}

// addBatchRun adds a run of a batch to a home, which holds its outputs already.
func (c *Core) addBatchRun(f *fetch, h *home, file *runFile, r *BatchRun) {
	out := &run{id: next(&c.last.run), bytes: r.Segment.Length, segment: r.Segment, hot: r.Hot}
	for _, i := range r.Outputs {
		out.maps = append(out.maps, int32(f.batch.outputs[i].Map))
	}
	out.segment.Map, out.segment.Attempt = -1, out.id
	if len(r.Outputs) == 1 {
		o := &f.batch.outputs[r.Outputs[0]]
		out.segment.Map, out.segment.Attempt = o.Map, o.Attempt
	}
	if r.Segment.File == file.path {
		out.file = file
		file.runs++
	}
	h.bytes += out.bytes
	if f.batch.sources == nil {
		c.fetchMeter.bytes += float64(out.bytes)
	}
	c.addRun(h, out)
	if r.Hot != nil && len(r.Hot.Groups) > 0 || h.hot != nil && len(h.hot.Groups) > 0 {
		h.updateHot()
	}
}

// batchFailures retries or reports the outputs that failed, as fetchFailed does. It returns the reason why the whole
// host may be at fault.
func (c *Core) batchFailures(f *fetch, ev *BatchDone) (host string) {
	for i := range ev.Failed {
		x := &ev.Failed[i]
		o := &f.batch.outputs[x.Output]
		c.machine.failedFetches++
		if !x.Corrupt && !x.Missing {
			if f.batch.sources == nil {
				host = x.Error
				continue
			}
			c.suspect(f.batch.sources[x.Output].disk)
		}
		for _, h := range f.batch.homes {
			if (x.Partition < 0 || x.Partition == h.partition) && f.fresh(h, o) {
				c.partFailed(f, h, o, x)
			}
		}
	}
	return host
}

// partFailed retries a partition of an output, or reports the output lost.
func (c *Core) partFailed(f *fetch, h *home, o *wire.MapOutput, x *BatchFailure) {
	h.unqueue(o.Map)
	e := h.entry(o.Map)
	switch {
	case f.batch.sources != nil:
		e.state = missing
		c.reportLost(e, o.Attempt, x.Error, x.Corrupt)
	case x.Missing, e.tries > 0:
		c.reportAndRetry(e, x.Error, x.Corrupt)
	default:
		e.tries++
		c.retryLater(e, c.cfg.RetryBase)
	}
}

// queueRest queues the outputs that homes still want. If this tracker could not write, it waits before, or uses its
// own outputs in place, which needs no space.
func (c *Core) queueRest(f *fetch, ev *BatchDone, failed string) {
	j := f.job
	var rest []int32
	for i := range f.batch.outputs {
		o := &f.batch.outputs[i]
		if i < ev.Ended && j.unreachable != nil {
			delete(j.unreachable, o.Map)
		}
		c.forgetUnreachable(j, o.Map)
		if o.Map < len(j.wants) && j.wants[o.Map] > 0 {
			rest = append(rest, int32(o.Map))
		}
	}
	if failed == "" || f.batch.cancelled {
		c.requeueAll(j, rest)
		return
	}
	c.machine.failedFetches++
	switch {
	case f.batch.sources != nil:
		for _, m := range rest {
			if o := j.outputs[int(m)].MapOutput; o.Tracker == c.cfg.Tracker {
				c.lookUpQueued(f.queue, o)
			} else {
				c.requeue(j, int(m))
			}
		}
	case ev.DiskFailed, ev.Exhausted:
		c.wait(aside{j, f.queue.host.addr, rest, c.now + c.cfg.RetryBase})
	default:
		c.requeueAll(j, rest)
		c.hostFailed(f, FetchDone{Error: failed, Stalled: ev.Stalled})
	}
	if ev.DiskFailed {
		c.strike(f.batch.homes[0].disk, failed)
	}
}

func (c *Core) requeueAll(j *job, maps []int32) {
	for _, m := range maps {
		c.requeue(j, int(m))
	}
}
