package core

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/quernmr/quern/wire"
)

// run is a sorted run of a home: one map's output, or several merged.
type run struct {
	id      int
	level   int   // how often its records were merged here
	maps    []int // whose outputs it holds
	segment wire.Segment
	source  *attempt // whose output it is, in place; nil: a file of the home
	uses    int      // attempts and merges that read it
	removed bool     // not part of the home any more
}

// merge is a merge under way.
type merge struct {
	id   int
	home *home
	job  *job
	runs []*run
	file string
}

// maxMergeFailures is after how many failed merges a home does without: its
// reduce may still read many runs at once.
const maxMergeFailures = 3

func (c *Core) addRun(h *home, r *run) {
	for _, m := range r.maps {
		h.entries[m].run = r
	}
	h.runs = append(h.runs, r)
	for len(h.levels) <= r.level {
		h.levels = append(h.levels, 0)
	}
	h.levels[r.level]++
}

// inMapOrder sorts runs by their lowest map: the order of equal keys then depends
// on when outputs came only where runs were merged.
func inMapOrder(runs []*run) []*run {
	runs = slices.Clone(runs)
	slices.SortFunc(runs, func(a, b *run) int { return cmp.Compare(slices.Min(a.maps), slices.Min(b.maps)) })
	return runs
}

// removeRun takes a run out of its home; the file goes when its last reader ends.
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
		c.leavePlace(r.source)
	default:
		c.do(Remove{r.segment.File})
	}
}

// mergeDue says whether runs should be merged: while the home gathers when more
// than a merge takes have been merged equally often, later only when they are too
// many for a reduce.
func (c *Core) mergeDue(h *home) bool {
	if h.failures >= maxMergeFailures {
		return false
	}
	if h.have == h.maps {
		return len(h.runs) > c.cfg.maxRuns()
	}
	return slices.ContainsFunc(h.levels, func(n int) bool { return n > c.cfg.MergeFactor })
}

// startMerges serves homes in the order in which they came to need it.
func (c *Core) startMerges() {
	for len(c.mergers) > 0 && len(c.merges) < c.cfg.Merges {
		h := c.mergers[0]
		c.mergers = slices.Delete(c.mergers, 0, 1)
		h.inLine = false
		if !h.gone && c.mergeDue(h) {
			c.startMerge(h)
		}
	}
}

// startMerge merges the runs merged least often, the oldest of them.
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
	stale := h.gone || slices.ContainsFunc(m.runs, func(r *run) bool { return r.removed })
	switch {
	case stale && ev.Error == "":
		c.do(Remove{m.file})
	case stale:
	case ev.Error == "":
		c.merged(m, ev.Segment)
	case ev.Corrupt != nil:
		c.corruptRun(m, ev)
	case ev.Local:
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
	if !h.gone {
		c.touch(h)
	}
	c.done(m.job)
}

// disks are those that a merge reads and writes, each once.
func (m *merge) disks() []*disk {
	disks := []*disk{m.home.disk}
	for _, r := range m.runs {
		if r.source != nil && !slices.Contains(disks, r.source.disk) {
			disks = append(disks, r.source.disk)
		}
	}
	return disks
}

// merged puts a run in the place of those it was merged from.
func (c *Core) merged(m *merge, segment wire.Segment) {
	out := &run{id: m.id, segment: segment}
	out.segment.Map, out.segment.Attempt = -1, m.id
	for _, r := range m.runs {
		out.level = max(out.level, r.level+1)
		out.maps = append(out.maps, r.maps...)
		c.removeRun(m.home, r)
	}
	c.addRun(m.home, out)
}

// corruptRun gathers again what a damaged run held. An output damaged in place
// can only be made again.
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
	e := &m.home.entries[r.maps[0]]
	if r.source == nil {
		c.discard(e)
		return
	}
	c.removeRun(m.home, r)
	c.loseHeld(e)
	e.state = gone
	c.complain(e, e.attempt, ev.Error, true)
}
