package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// home gathers one partition of a job.
type home struct {
	job       *job
	disk      *disk
	partition int
	gen       wire.Generation
	maps      int

	held    taskset.Set    // maps with an output that is held
	wanted  taskset.Set    // maps that are queued, or set aside
	entries map[int]*entry // other maps with work or trouble; a queued map may have an entry too

	digest uint64 // sum over the held outputs
	bytes  int64
	runs   []*run    // of the held outputs, in order of arrival
	levels []int     // number of runs, by run.level
	hot    *wire.Hot // hot groups of the merged runs; never changed

	merging  *merge
	failures int // failed merges

	reported    wire.HomeReport // last report
	changed     bool            // in Core.changedHomes
	unreported  bool            // in Core.unreported
	mergeQueued bool            // in Core.mergeQueue
	dropped     bool
}

// entry is one map's output in a home, while there is more to know of it than a bit. Most outputs wait
// in a queue or are held: a home has only bits for them.
type entry struct {
	home       *home
	mapN       int // number of the map
	state      entryState
	ticket     int    // of its valid retry
	tries      int    // failed attempts to fetch
	fetch      *fetch // in state fetching
	lostReason string // reason in the last wire.OutputLost; empty: not lost
	corrupt    bool   // as in that report
	attempt    int    // of the lost output
}

type entryState uint8

const (
	idle     entryState = iota // the leader has named no output, or it is queued
	retrying                   // in Core.retries
	fetching                   // or being looked up in place
	missing                    // it was on this tracker and is lost; the leader must name another output
)

// entry returns the entry of a map, and adds it if needed.
func (h *home) entry(m int) *entry {
	e := h.entries[m]
	if e == nil {
		e = &entry{home: h, mapN: m}
		h.entries[m] = e
	}
	return e
}

func (j *job) home(partition int) *home {
	i, ok := j.homeIndex(partition)
	if !ok {
		return nil
	}
	return j.homes[i]
}

func (j *job) homeIndex(partition int) (int, bool) {
	return slices.BinarySearchFunc(j.homes, partition, func(h *home, p int) int { return cmp.Compare(h.partition, p) })
}

func (h *home) report() wire.HomeReport {
	return wire.HomeReport{
		Job: h.job.id, Partition: h.partition, Generation: h.gen,
		Maps: h.held.Len(), Digest: h.digest, Bytes: h.bytes, Complete: h.reported.Complete, Hot: h.hot,
	}
}

// complete reports whether a reduce can read the home. It must have every map's output, in
// at most maxRuns runs unless merges fail.
func (c *Core) complete(h *home) bool {
	return h.held.Len() == h.maps && (len(h.runs) <= c.cfg.maxRuns() || h.failures >= maxMergeFailures)
}

// setHome creates a home. With a higher generation it replaces an existing home: the
// leader may distrust the contents of that home.
func (c *Core) setHome(m *wire.SetHome) {
	j := c.job(m.Job)
	if j.dropped || m.Maps < 0 {
		return
	}
	if h := j.home(m.Partition); h != nil {
		if !h.gen.Less(m.Generation) {
			if h.gen == m.Generation {
				h.reported = h.report()
				r := h.reported
				c.send(&r)
			}
			return
		}
		c.dropHome(h)
	}
	if d := c.pickDisk(); d != nil && !c.noUsableDisk() {
		c.beginHome(j, d, m.Partition, m.Generation, m.Maps)
	}
}

func (c *Core) beginHome(j *job, d *disk, partition int, gen wire.Generation, n int) {
	h := &home{job: j, disk: d, partition: partition, gen: gen, maps: n, entries: make(map[int]*entry)}
	h.reported = h.report()
	j.partitions = max(j.partitions, partition+1)
	i, _ := j.homeIndex(partition)
	j.homes = slices.Insert(j.homes, i, h)
	for m := range n {
		c.requestOutput(h, m)
	}
	c.markChanged(h)
}

// dropHome forgets a home. Its files are removed when they are not in use.
func (c *Core) dropHome(h *home) {
	h.dropped = true
	for _, m := range slices.Sorted(maps.Keys(h.entries)) {
		c.forgetEntry(h, m)
	}
	for m := range h.wanted.All() {
		h.unqueue(m)
		c.forgetUnreachable(h.job, m)
	}
	for len(h.runs) > 0 {
		c.removeRun(h, h.runs[len(h.runs)-1])
	}
	i, _ := h.job.homeIndex(h.partition)
	h.job.homes = slices.Delete(h.job.homes, i, i+1)
	c.cancelUnwantedBatches(h.job)
}

// outputs records the locations of map outputs. If a map already had an output, that one
// was replaced, or must be tried again.
func (c *Core) outputs(m *wire.OutputList) {
	outputs, err := m.Block.Outputs()
	if err != nil {
		c.hangup(fmt.Sprintf("map outputs of %v: %v", m.Job, err))
		return
	}
	j := c.job(m.Job)
	if j.dropped {
		return
	}
	for _, o := range outputs {
		if o.Map >= 0 && o.Map < wire.MaxTasks {
			c.output(j, o)
		}
	}
}

func (c *Core) output(j *job, o wire.MapOutput) {
	old := j.outputs[o.Map]
	if old == nil {
		old = new(namedOutput)
		j.outputs[o.Map] = old
	}
	before := *old
	refetch := c.discardChanged(j, before, o)
	if before.Addr != o.Addr {
		j.leaveQueue(o.Map, before.Addr)
		c.cancelBatchWith(j, o.Map)
	}
	*old = namedOutput{MapOutput: o, named: true}
	delete(j.unreachable, o.Map)
	for _, h := range j.homes {
		if o.Map < h.maps && !h.held.Has(o.Map) {
			c.outputChanged(h, before, o)
		}
	}
	c.requeue(j, o.Map)
	for _, r := range refetch {
		c.requestOutput(r.home, r.m)
	}
	if before.named && before.Attempt != o.Attempt {
		c.dropReplaced(j, before.MapOutput)
	}
}

// homeMap is a map's output in a home.
type homeMap struct {
	home *home
	m    int
}

// discardChanged discards held outputs of a map that the new output replaces. Homes keep a copy with the
// same digest, which has the same records, but no output in place, which may be damaged. It returns
// the other outputs that were merged with them, which must be fetched again.
func (c *Core) discardChanged(j *job, old namedOutput, o wire.MapOutput) (refetch []homeMap) {
	if old.Digest == o.Digest && old.Attempt == o.Attempt {
		return nil
	}
	for _, h := range j.homes {
		if h.held.Has(o.Map) && (old.Digest != o.Digest || h.inPlace(o.Map) != nil && h.inPlace(o.Map).id.N != o.Attempt) {
			for _, m := range c.forgetHeld(h, o.Map) {
				if m != o.Map {
					refetch = append(refetch, homeMap{h, m})
				}
			}
		}
	}
	return refetch
}

// outputChanged adapts a home, which does not hold the output of a map, to a new output.
func (c *Core) outputChanged(h *home, old namedOutput, o wire.MapOutput) {
	e := h.entries[o.Map]
	if h.wanted.Has(o.Map) {
		if old.Tracker == o.Tracker && old.Addr == o.Addr {
			return
		}
		h.unqueue(o.Map)
	}
	if e != nil && e.state == fetching && e.fetch.output == o {
		return
	}
	c.forgetEntry(h, o.Map)
	c.requestOutput(h, o.Map)
}

// forgetEntry ends a home's work on an output, and its tries and troubles.
func (c *Core) forgetEntry(h *home, m int) {
	if e := h.entries[m]; e != nil {
		c.cancelFetch(e)
		e.ticket = next(&c.last.ticket)
		delete(h.entries, m)
		c.forgetUnreachable(h.job, m)
	}
}

// unreadable forgets a map output that a reduce could not read, so that no new home uses
// it. Homes that use it in place discard it. Verified copies and merges stay: the leader
// replaces the home of that reduce.
func (c *Core) unreadable(lost *wire.OutputLost) {
	j := c.jobs[lost.Job]
	if j == nil || j.dropped {
		return
	}
	o := j.outputs[lost.Map]
	if o == nil || !o.named || o.Attempt != lost.Attempt {
		return
	}
	o.named = false
	for _, h := range j.homes {
		if lost.Map >= h.maps {
			continue
		}
		switch source := h.inPlace(lost.Map); {
		case source != nil && source.id.N == lost.Attempt:
			c.discard(h, lost.Map)
		case !h.held.Has(lost.Map):
			if h.wanted.Has(lost.Map) {
				h.unqueue(lost.Map)
			}
			if e := h.entries[lost.Map]; e != nil {
				c.cancelFetch(e)
			}
			c.requestOutput(h, lost.Map)
		}
	}
	c.forgetUnreachable(j, lost.Map)
	c.dropReplaced(j, o.MapOutput)
}

// dropReplaced drops a replaced map output of this tracker.
func (c *Core) dropReplaced(j *job, o wire.MapOutput) {
	a := c.attempts[mapAttempt(j.id, o)]
	if o.Tracker != c.cfg.Tracker || a == nil || !a.hasOutput() {
		return
	}
	c.dropOutput(a)
}

// dropOutput forgets a map output of this tracker. Its files are removed when nothing uses
// them in place.
func (c *Core) dropOutput(a *attempt) {
	if a.stale {
		return
	}
	delete(c.attempts, a.id)
	a.job.attempts = slices.DeleteFunc(a.job.attempts, func(x *attempt) bool { return x == a })
	a.stale = true
	a.inPlaceUses++
	c.releaseInPlace(a)
}

func mapAttempt(job wire.JobID, o wire.MapOutput) wire.AttemptID {
	return wire.AttemptID{Task: wire.TaskID{Job: job, Kind: wire.Map, N: o.Map}, N: o.Attempt}
}

func (c *Core) releaseInPlace(a *attempt) {
	a.inPlaceUses--
	if a.stale && a.inPlaceUses == 0 {
		c.do(Remove{a.dir()})
	}
}

// addFetched adds a fetched output to its home.
func (c *Core) addFetched(e *entry, f *fetch, segment wire.Segment, records int64) {
	h := e.home
	h.disk.strikes = 0
	e.fetch = nil
	c.hold(h, f.output)
	if records == 0 {
		c.discardFetched(f)
		return
	}
	segment.Map, segment.Attempt = e.mapN, f.output.Attempt
	h.bytes += segment.Length
	c.addRun(h, &run{id: next(&c.last.run), maps: []int32{int32(e.mapN)}, bytes: segment.Length, segment: segment, source: f.source})
}

// hold records an output in its home. The caller adds its run, if it has records.
func (c *Core) hold(h *home, o wire.MapOutput) {
	c.forgetEntry(h, o.Map)
	h.held.Add(o.Map)
	h.digest += o.Digest
	c.markChanged(h)
}

// runOf returns the run with a held output, or nil if the output has no records.
func (h *home) runOf(m int) *run {
	for _, r := range h.runs {
		if slices.Contains(r.maps, int32(m)) {
			return r
		}
	}
	return nil
}

// inPlace returns the attempt of this tracker that has a held output which is used in place; nil: none.
func (h *home) inPlace(m int) *attempt {
	if h.held.Has(m) {
		for _, r := range h.runs {
			if r.source != nil && int(r.maps[0]) == m {
				return r.source
			}
		}
	}
	return nil
}

// discard drops an output and all outputs in the same merged run, and fetches them again.
func (c *Core) discard(h *home, m int) {
	for _, m := range c.forgetHeld(h, m) {
		c.requestOutput(h, m)
	}
}

// forgetHeld drops an output and all outputs in the same merged run, and returns their maps.
func (c *Core) forgetHeld(h *home, m int) []int {
	forgotten := []int{m}
	if r := h.runOf(m); r != nil {
		forgotten = forgotten[:0]
		for _, m := range r.maps {
			forgotten = append(forgotten, int(m))
		}
		h.bytes -= r.bytes
		c.removeRun(h, r)
		if r.hot != nil {
			h.updateHot()
		}
	}
	for _, m := range forgotten {
		h.held.Remove(m)
		h.digest -= h.job.outputs[m].Digest
	}
	c.markChanged(h)
	return forgotten
}

func (c *Core) markChanged(h *home) {
	if !h.changed {
		h.changed = true
		c.changedHomes = append(c.changedHomes, h)
	}
}

// updateHomes queues merges that are due, and reports homes that became complete or
// incomplete. Other changes are reported with the progress.
func (c *Core) updateHomes() {
	for _, h := range c.changedHomes {
		h.changed = false
		if h.dropped {
			continue
		}
		if !h.mergeQueued && h.merging == nil && c.mergeDue(h) {
			h.mergeQueued = true
			c.mergeQueue = append(c.mergeQueue, h)
		}
		complete := c.complete(h)
		if complete != h.reported.Complete {
			h.reported.Complete = complete
			h.reported = h.report()
			r := h.reported
			c.send(&r)
		} else if !h.unreported {
			h.unreported = true
			c.unreported = append(c.unreported, h)
		}
	}
	c.changedHomes = nil
	c.startMerges()
}
