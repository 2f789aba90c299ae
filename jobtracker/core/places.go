package core

import (
	"slices"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// Map outputs are at places: each incarnation of a tracker is a place of its own. So outputs of a lost process
// that are still to be dropped are not confused with those that the tracker's next process reports.

// places has the places with map outputs. Those of ended incarnations are reused after their last output.
type places struct {
	all    []place
	unused []int32
}

// place is where an incarnation of a tracker has its map outputs.
type place struct {
	trackerName
	hash uint64 // wire.PlaceHash
	gone bool   // the incarnation has ended: its outputs are being dropped
}

// nowhere is the place of outputs that nothing needs any more: their job commits or stops.
const nowhere = 0

// of returns the place of a new incarnation.
func (s *places) of(f facts.Tracker) int32 {
	if len(s.all) == 0 {
		s.all = append(s.all, place{})
	}
	p := place{trackerName: trackerName{f.Name, f.Addr}, hash: wire.PlaceHash(f.Name, f.Addr)}
	if n := len(s.unused); n > 0 {
		i := s.unused[n-1]
		s.unused, s.all[i] = s.unused[:n-1], p
		return i
	}
	s.all = append(s.all, p)
	return int32(len(s.all) - 1)
}

// free makes a place without outputs reusable.
func (s *places) free(i int32) { s.unused = append(s.unused, i) }

// isGone reports whether a chosen output is on no tracker any more, and is still to be dropped.
func (l *leader) isGone(o *output) bool { return o.place != 0 && l.fleet.places.all[o.place-1].gone }

// isOn reports whether a chosen output is on a tracker.
func (o *output) isOn(t *tracker) bool { return o.place == t.place+1 }

// outputVisits is the work of visiting the chosen outputs that are at a place: there may be very many. Then it
// tells jobs about it.
type outputVisits struct {
	l     *leader
	place int32
	refs  []outputRef // that are left; nothing changes the array, see recordOutput
	stops func() bool // it is no longer wanted; nil: it is
	visit func(j *job, m int)
	jobs  func() []int // lists the jobs to tell, by number, when all outputs were visited; nil: none
	tell  func(j *job)
	end   func()

	visited bool
	told    []int // that are left
}

// Advance implements pieces.Work.
func (v *outputVisits) Advance(budget int) (spent int, done bool) {
	if v.stops != nil && v.stops() {
		return 0, true
	}
	for ; spent < budget && len(v.refs) > 0; spent++ {
		o := v.refs[0]
		v.refs = v.refs[1:]
		if j := v.l.jobs[int(o.job)]; j != nil && j.maps[o.m].output.place == v.place+1 {
			v.visit(j, int(o.m))
		}
	}
	if len(v.refs) > 0 {
		return spent, false
	}
	if !v.visited {
		v.visited = true
		if v.jobs != nil {
			v.told = v.jobs()
			slices.Sort(v.told)
			spent += len(v.told) / 8
		}
	}
	for ; spent < budget && len(v.told) > 0; spent += 2 {
		if j := v.l.jobs[v.told[0]]; j != nil {
			v.tell(j)
		}
		v.told = v.told[1:]
	}
	if len(v.told) > 0 {
		return max(spent, 1), false
	}
	if v.end != nil {
		v.end()
	}
	v.l.works.stepAgain = true // a draining tracker may leave
	return spent, true
}

// visitOutputs begins to visit the outputs of a tracker. If the tracker is lost meanwhile, it drops them.
func (l *leader) visitOutputs(t *tracker, v *outputVisits) {
	v.l, v.place, v.refs = l, t.place, t.outputs
	l.works.Add(v)
}
