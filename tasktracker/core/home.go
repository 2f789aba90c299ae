package core

import (
	"cmp"
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

	have   int // entries held
	digest uint64
	bytes  int64
	runs   []*run // that hold them, as they came
	levels []int  // how many runs have been merged so often

	merging  *merge
	failures int // merges that failed

	reported                      wire.HomeReport // last
	touched, untold, inLine, gone bool            // whether in the lists of Core; not used any more
}

// entry is one map's place in a home.
type entry struct {
	home    *home
	m       int // the map
	state   entryState
	ticket  int    // of its place in a queue; one with another ticket is void
	tries   int    // failed ones
	fetch   *fetch // while fetching
	lost    string // what the leader was told of the output, once it was
	corrupt bool   // likewise

	// While held.
	attempt int
	digest  uint64
	bytes   int64
	run     *run // nil: no records
}

type entryState uint8

const (
	unknown  entryState = iota // where its output is
	queued                     // for its host
	resting                    // after a failure
	fetching                   // or looked up in place
	gone                       // from this tracker, until the leader names another output
	held
)

func (j *job) home(partition int) *home {
	i, ok := j.homeAt(partition)
	if !ok {
		return nil
	}
	return j.homes[i]
}

func (j *job) homeAt(partition int) (int, bool) {
	return slices.BinarySearchFunc(j.homes, partition, func(h *home, p int) int { return cmp.Compare(h.partition, p) })
}

func (h *home) report() wire.HomeReport {
	return wire.HomeReport{
		Job: h.job.id, Partition: h.partition, Generation: h.gen,
		Maps: h.have, Digest: h.digest, Bytes: h.bytes, Complete: h.reported.Complete,
	}
}

// complete says whether a reduce can read the home: it holds every map's output,
// in not too many runs, unless they cannot be merged.
func (c *Core) complete(h *home) bool {
	return h.have == h.maps && (len(h.runs) <= c.cfg.maxRuns() || h.failures >= maxMergeFailures)
}

// setHome begins a home. A higher generation of one that is here gathers from
// nothing: the leader may have reason not to trust what this one holds.
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
				c.tell(&r)
			}
			return
		}
		c.dropHome(h)
	}
	if d := c.place(); d != nil && !c.withdrawn() {
		c.beginHome(j, d, m.Partition, m.Generation, m.Maps)
	}
}

func (c *Core) beginHome(j *job, d *disk, partition int, gen wire.Generation, maps int) {
	h := &home{job: j, disk: d, partition: partition, gen: gen, maps: maps, entries: make([]entry, maps)}
	h.reported = h.report()
	i, _ := j.homeAt(partition)
	j.homes = slices.Insert(j.homes, i, h)
	for m := range h.entries {
		e := &h.entries[m]
		e.home, e.m = h, m
		c.want(e)
	}
	c.touch(h)
}

// dropHome forgets a home and removes its files as they fall out of use.
func (c *Core) dropHome(h *home) {
	h.gone = true
	for i := range h.entries {
		e := &h.entries[i]
		c.cancelFetch(e)
		e.state, e.ticket = unknown, next(&c.last.ticket)
	}
	for len(h.runs) > 0 {
		c.removeRun(h, h.runs[len(h.runs)-1])
	}
	i, _ := h.job.homeAt(h.partition)
	h.job.homes = slices.Delete(h.job.homes, i, i+1)
}

// outputs takes in where map outputs are. What is named again has a new output,
// or is to be tried again.
func (c *Core) outputs(m *wire.Outputs) {
	j := c.job(m.Job)
	if j.dropped {
		return
	}
	for _, o := range m.Outputs {
		old, known := j.outputs[o.Map]
		j.outputs[o.Map] = o
		for _, h := range j.homes {
			if o.Map >= 0 && o.Map < h.maps {
				c.rechoose(&h.entries[o.Map], old, o)
			}
		}
		if known && old.Attempt != o.Attempt {
			c.retire(j, old)
		}
	}
}

// rechoose brings an entry into line with its map's output. A copy with the same
// digest has the same records and stays. One used in place does not: the leader
// may have left it because it is damaged.
func (c *Core) rechoose(e *entry, old, o wire.MapOutput) {
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
	e.tries, e.lost = 0, ""
	c.want(e)
}

// unreadable forgets a map output that a reduce could not read, before the leader
// hears of it: a home set meanwhile must not take it up again. What is used in
// place lies in the damaged file and is given up; copies and merges were verified
// as they were made and stay. The reduce's own home is gathered anew by the leader.
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
			c.want(e)
		}
	}
	c.retire(j, o)
}

// retire lets go of a map output of this tracker that was replaced, once nothing
// here uses it in place.
func (c *Core) retire(j *job, o wire.MapOutput) {
	a := c.attempts[mapAttempt(j.id, o)]
	if o.Tracker != c.cfg.Tracker || a == nil || !a.hasOutput() {
		return
	}
	c.dropOutput(a)
}

// dropOutput forgets a map output of this tracker. It may have been forgotten before.
func (c *Core) dropOutput(a *attempt) {
	if a.stale {
		return
	}
	delete(c.attempts, a.id)
	a.job.attempts = slices.DeleteFunc(a.job.attempts, func(x *attempt) bool { return x == a })
	a.stale = true
	a.places++
	c.leavePlace(a)
}

func mapAttempt(job wire.JobID, o wire.MapOutput) wire.AttemptID {
	return wire.AttemptID{Task: wire.TaskID{Job: job, Kind: wire.Map, N: o.Map}, N: o.Attempt}
}

func (c *Core) leavePlace(a *attempt) {
	a.places--
	if a.stale && a.places == 0 {
		c.do(Remove{a.dir()})
	}
}

// hold takes a fetched output in.
func (c *Core) hold(e *entry, f *fetch, segment wire.Segment, records int64) {
	h := e.home
	h.disk.strikes = 0
	e.state, e.fetch, e.tries, e.lost = held, nil, 0, ""
	e.attempt, e.digest, e.bytes, e.run = f.output.Attempt, f.output.Digest, segment.Length, nil
	h.have++
	h.digest += e.digest
	h.bytes += e.bytes
	c.touch(h)
	if records == 0 {
		c.dispose(f)
		return
	}
	segment.Map, segment.Attempt = e.m, e.attempt
	c.addRun(h, &run{id: next(&c.last.run), maps: []int{e.m}, segment: segment, source: f.source})
}

// inPlace says whether what e holds lies in a map output of this tracker.
func (e *entry) inPlace() bool { return e.state == held && e.run != nil && e.run.source != nil }

// discard gives up what an entry holds, with all that was merged with it, and
// gathers it again.
func (c *Core) discard(e *entry) {
	maps := []int{e.m}
	if e.run != nil {
		maps = e.run.maps
		c.removeRun(e.home, e.run)
	}
	for _, m := range maps {
		c.loseHeld(&e.home.entries[m])
	}
	for _, m := range maps {
		c.want(&e.home.entries[m])
	}
}

func (c *Core) loseHeld(e *entry) {
	h := e.home
	e.state, e.run = unknown, nil
	h.have--
	h.digest -= e.digest
	h.bytes -= e.bytes
	c.touch(h)
}

func (c *Core) touch(h *home) {
	if !h.touched {
		h.touched = true
		c.touched = append(c.touched, h)
	}
}

// settleHomes merges where it is due, and tells at once which homes have become
// complete or are not any more; the rest is told now and then.
func (c *Core) settleHomes() {
	for _, h := range c.touched {
		h.touched = false
		if h.gone {
			continue
		}
		if !h.inLine && h.merging == nil && c.mergeDue(h) {
			h.inLine = true
			c.mergers = append(c.mergers, h)
		}
		complete := c.complete(h)
		if complete != h.reported.Complete {
			h.reported.Complete = complete
			h.reported = h.report()
			r := h.reported
			c.tell(&r)
		} else if !h.untold {
			h.untold = true
			c.untold = append(c.untold, h)
		}
	}
	c.touched = nil
	c.startMerges()
}
