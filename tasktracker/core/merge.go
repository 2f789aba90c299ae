package core

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/quernmr/quern/wire"
)

// run is a sorted run of a home: one map's output, or several merged ones.
type run struct {
	id      int
	level   int     // number of merges of its records
	maps    []int32 // it has the outputs of these maps
	bytes   int64   // of these outputs
	segment wire.Segment
	hot     *wire.Hot // the largest groups of equal keys; nil: it was not merged here
	file    *runFile  // it is a part of this file; nil: it has a file of its own
	source  *attempt  // map attempt with the output that is used in place; nil: a file of the home
	uses    int       // number of attempts and merges that read it
	removed bool      // from its home
}

// merge is a running merge.
type merge struct {
	id   int
	home *home
	job  *job
	runs []*run
	file string
}

// maxMergeFailures is the number of failed merges after which a home stops merging. Its
// reduce may still be able to read many runs at once.
const maxMergeFailures = 3

func (c *Core) addRun(h *home, r *run) {
	h.runs = append(h.runs, r)
	for len(h.levels) <= r.level {
		h.levels = append(h.levels, 0)
	}
	h.levels[r.level]++
}

// inMapOrder sorts runs by their lowest map. Unless runs were merged, the order of equal
// keys then does not depend on the order of arrival.
func inMapOrder(runs []*run) []*run {
	runs = slices.Clone(runs)
	slices.SortFunc(runs, func(a, b *run) int { return cmp.Compare(slices.Min(a.maps), slices.Min(b.maps)) })
	return runs
}

// removeRun removes a run from its home. Its file is removed when its last reader ends.
func (c *Core) removeRun(h *home, r *run) {
	h.runs = slices.DeleteFunc(h.runs, func(x *run) bool { return x == r })
	h.levels[r.level]--
	r.removed = true
	if h.merging != nil && slices.Contains(h.merging.runs, r) {
		c.do(CancelMerge{h.merging.id})
	}
	r.uses++
	c.release(r)
}

// release ends one use of a run.
func (c *Core) release(r *run) {
	r.uses--
	switch {
	case !r.removed || r.uses > 0:
	case r.source != nil:
		c.releaseInPlace(r.source)
	case r.file != nil:
		if r.file.runs--; r.file.runs == 0 {
			c.do(Remove{r.file.path})
		}
	default:
		c.do(Remove{r.segment.File})
	}
}

// mergeDue reports whether to merge runs. A merge writes its runs once more, so there is none if a reduce can read a run
// of each map. Otherwise a home that gathers merges if more than MergeFactor runs have the same level. A home with all
// outputs merges if a reduce cannot read so many runs.
func (c *Core) mergeDue(h *home) bool {
	if h.failures >= maxMergeFailures || h.maps <= c.cfg.maxRuns() {
		return false
	}
	if h.held.Len() == h.maps {
		return len(h.runs) > c.cfg.maxRuns()
	}
	return slices.ContainsFunc(h.levels, func(n int) bool { return n > c.cfg.MergeFactor })
}

// startMerges starts merges in the order in which homes requested them.
func (c *Core) startMerges() {
	for len(c.mergeQueue) > 0 && len(c.merges) < c.cfg.Merges {
		h := c.mergeQueue[0]
		c.mergeQueue = slices.Delete(c.mergeQueue, 0, 1)
		h.mergeQueued = false
		if !h.dropped && c.mergeDue(h) {
			c.startMerge(h)
		}
	}
}

// startMerge merges the oldest runs of the lowest level that has too many.
func (c *Core) startMerge(h *home) {
	level := slices.IndexFunc(h.levels, func(n int) bool { return n > c.cfg.MergeFactor })
	runs := slices.Clone(h.runs)
	slices.SortFunc(runs, func(a, b *run) int {
		if a.level == level != (b.level == level) {
			if a.level == level {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.id, b.id))
	})
	m := &merge{id: next(&c.last.run), home: h, job: h.job, runs: runs[:min(c.cfg.MergeFactor, len(runs))]}
	m.runs = inMapOrder(m.runs)
	m.file = path.Join(h.dir(), fmt.Sprintf("merge-%d", m.id))
	segments := make([]wire.Segment, len(m.runs))
	for i, r := range m.runs {
		r.uses++
		segments[i] = r.segment
	}
	c.merges[m.id] = m
	h.merging = m
	h.job.busy++
	c.do(Merge{m.id, segments, m.file})
}

func (c *Core) mergeDone(ev MergeDone) {
	m := c.merges[ev.Merge]
	if m == nil {
		return
	}
	delete(c.merges, m.id)
	h := m.home
	h.merging = nil
	stale := h.dropped || slices.ContainsFunc(m.runs, func(r *run) bool { return r.removed })
	switch {
	case stale && ev.Error == "":
		c.do(Remove{m.file})
	case stale:
	case ev.Error == "":
		c.merged(m, ev.Segment, ev.Hot)
	case ev.Corrupt != nil:
		c.corruptRun(m, ev)
	case ev.DiskFailed:
		h.failures++
		for _, d := range m.disks() {
			c.suspect(d)
		}
	default:
		h.failures++
	}
	for _, r := range m.runs {
		c.release(r)
	}
	if !h.dropped {
		c.markChanged(h)
	}
	c.endWork(m.job)
}

// disks returns the disks that a merge reads and writes, each once.
func (m *merge) disks() []*disk {
	disks := []*disk{m.home.disk}
	for _, r := range m.runs {
		if r.source != nil && !slices.Contains(disks, r.source.disk) {
			disks = append(disks, r.source.disk)
		}
	}
	return disks
}

// merged replaces the runs of a merge by its result.
func (c *Core) merged(m *merge, segment wire.Segment, hot *wire.Hot) {
	out := &run{id: m.id, segment: segment, hot: hot}
	out.segment.Map, out.segment.Attempt = -1, m.id
	for _, r := range m.runs {
		out.level = max(out.level, r.level+1)
		out.maps = append(out.maps, r.maps...)
		out.bytes += r.bytes
		c.removeRun(m.home, r)
	}
	c.addRun(m.home, out)
	m.home.updateHot()
}

// corruptRun fetches the outputs of a damaged run again. For a map output that is damaged
// in place, only its map can help: the leader must rerun it.
func (c *Core) corruptRun(m *merge, ev MergeDone) {
	i := slices.IndexFunc(m.runs, func(r *run) bool {
		return r.segment.File == ev.Corrupt.File && r.segment.Offset == ev.Corrupt.Offset
	})
	if i < 0 {
		m.home.failures++
		return
	}
	r := m.runs[i]
	m.home.failures++
	n := int(r.maps[0])
	if r.source == nil {
		c.discard(m.home, n)
		return
	}
	c.forgetHeld(m.home, n)
	e := m.home.entry(n)
	e.state = missing
	c.reportLost(e, r.source.id.N, ev.Error, true)
}
