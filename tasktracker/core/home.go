package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quernmr/quern/wire"
)

// home gathers one partition of a job.
type home struct {
	job       *job
	disk      *disk
	partition int
	gen       wire.Generation
	maps      int
	entries   []entry // by map

	heldCount int // number of entries that are held
	digest    uint64
	bytes     int64
	runs      []*run // runs of the held entries, in order of arrival
	levels    []int  // number of runs, by run.level

	merging  *merge
	failures int // failed merges

	reported    wire.HomeReport // last report
	changed     bool            // in Core.changedHomes
	unreported  bool            // in Core.unreported
	mergeQueued bool            // in Core.mergeQueue
	dropped     bool
}

// entry is one map's output in a home.
type entry struct {
	home       *home
	mapN       int // number of the map
	state      entryState
	ticket     int    // of its valid queuePos
	tries      int    // failed attempts to fetch
	fetch      *fetch // in state fetching
	lostReason string // reason in the last wire.OutputLost; empty: not lost
	loss       loss   // as in that report

	// In state held. A lost output has its attempt too.
	attempt int
	digest  uint64
	bytes   int64
	run     *run // nil: no records
}

type entryState uint8

const (
	unnamed  entryState = iota // the leader has named no output
	queued                     // in a queue of its host
	retrying                   // in Core.retries
	fetching                   // or being looked up in place
	missing                    // it was on this tracker and is lost; the leader must name another output
	held
)

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
		Maps: h.heldCount, Digest: h.digest, Bytes: h.bytes, Complete: h.reported.Complete,
	}
}

// complete reports whether a reduce can read the home. It must have every map's output, in
// at most maxRuns runs unless merges fail.
func (c *Core) complete(h *home) bool {
	return h.heldCount == h.maps && (len(h.runs) <= c.cfg.maxRuns() || h.failures >= maxMergeFailures)
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

func (c *Core) beginHome(j *job, d *disk, partition int, gen wire.Generation, maps int) {
	h := &home{job: j, disk: d, partition: partition, gen: gen, maps: maps, entries: make([]entry, maps)}
	h.reported = h.report()
	i, _ := j.homeIndex(partition)
	j.homes = slices.Insert(j.homes, i, h)
	for m := range h.entries {
		e := &h.entries[m]
		e.home, e.mapN = h, m
		c.requestOutput(e)
	}
	c.markChanged(h)
}

// dropHome forgets a home. Its files are removed when they are not in use.
func (c *Core) dropHome(h *home) {
	h.dropped = true
	for i := range h.entries {
		e := &h.entries[i]
		c.cancelFetch(e)
		e.state, e.ticket = unnamed, next(&c.last.ticket)
	}
	for len(h.runs) > 0 {
		c.removeRun(h, h.runs[len(h.runs)-1])
	}
	i, _ := h.job.homeIndex(h.partition)
	h.job.homes = slices.Delete(h.job.homes, i, i+1)
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
		old, known := j.outputs[o.Map]
		j.outputs[o.Map] = o
		for _, h := range j.homes {
			if o.Map >= 0 && o.Map < h.maps {
				c.outputChanged(&h.entries[o.Map], old, o)
			}
		}
		if known && old.Attempt != o.Attempt {
			c.dropReplaced(j, old)
		}
	}
}

// outputChanged adapts an entry to its map's new output. It keeps a copy with the same
// digest, which has the same records, but no output in place, which may be damaged.
func (c *Core) outputChanged(e *entry, old, o wire.MapOutput) {
	switch e.state {
	case held:
		if e.digest != o.Digest || e.inPlace() && e.attempt != o.Attempt {
			c.discard(e)
		}
		return
	case queued:
		if old.Tracker == o.Tracker && old.Addr == o.Addr {
			return
		}
	case fetching:
		if e.fetch.output == o {
			return
		}
		c.cancelFetch(e)
	}
	e.tries, e.lostReason = 0, ""
	c.requestOutput(e)
}

// unreadable forgets a map output that a reduce could not read, so that no new home uses
// it. Entries that use it in place are discarded. Verified copies and merges stay: the
// leader replaces the home of that reduce.
func (c *Core) unreadable(lost *wire.OutputLost) {
	j := c.jobs[lost.Job]
	if j == nil || j.dropped {
		return
	}
	o, known := j.outputs[lost.Map]
	if !known || o.Attempt != lost.Attempt {
		return
	}
	delete(j.outputs, lost.Map)
	for _, h := range j.homes {
		if lost.Map >= h.maps {
			continue
		}
		e := &h.entries[lost.Map]
		switch {
		case e.inPlace() && e.attempt == lost.Attempt:
			c.discard(e)
		case e.state != held:
			c.cancelFetch(e)
			c.requestOutput(e)
		}
	}
	c.dropReplaced(j, o)
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
	c.hold(e, f.output, segment.Length)
	if records == 0 {
		c.discardFetched(f)
		return
	}
	segment.Map, segment.Attempt = e.mapN, e.attempt
	c.addRun(h, &run{id: next(&c.last.run), maps: []int{e.mapN}, segment: segment, source: f.source})
}

// hold records an output in its home. The caller adds its run, if it has records.
func (c *Core) hold(e *entry, o wire.MapOutput, bytes int64) {
	h := e.home
	e.state, e.tries, e.lostReason = held, 0, ""
	e.attempt, e.digest, e.bytes, e.run = o.Attempt, o.Digest, bytes, nil
	h.heldCount++
	h.digest += e.digest
	h.bytes += e.bytes
	c.markChanged(h)
}

// inPlace reports whether the entry uses a map output of this tracker in place.
func (e *entry) inPlace() bool { return e.state == held && e.run != nil && e.run.source != nil }

// discard drops an entry's output and all outputs in the same merged run, and fetches them
// again.
func (c *Core) discard(e *entry) {
	maps := []int{e.mapN}
	if e.run != nil {
		maps = e.run.maps
		c.removeRun(e.home, e.run)
	}
	for _, m := range maps {
		c.forgetHeld(&e.home.entries[m])
	}
	for _, m := range maps {
		c.requestOutput(&e.home.entries[m])
	}
}

func (c *Core) forgetHeld(e *entry) {
	h := e.home
	e.state, e.run = unnamed, nil
	h.heldCount--
	h.digest -= e.digest
	h.bytes -= e.bytes
	c.markChanged(h)
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
