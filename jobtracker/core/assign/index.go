package assign

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/taskset"
)

// input is the locality index of one job: where the input of its maps is. Of its splits
// nothing else is kept: there are many of them.
type input struct {
	live  []uint16      // nodes with the input of each map that are given work
	nodes taskset.Lists // by map, the indexes of the nodes with its input
	racks taskset.Lists // by map, the numbers of the racks with its input

	onNodes, inRacks places
	closed           bool // nothing of the job is to be launched any more
}

// places is a job's maps by the places of their input, nodes or racks. To find those in a
// place takes no search: it is known how many places come before it.
type places struct {
	there []word   // the places with some, in a bit each
	all   []mapsAt // in the order of the places
	maps  []int32  // of all places, end to end
}

// word is 64 places.
type word struct {
	bits    uint64
	waiting uint64 // of those, where some were to be launched at the last look
	before  int32  // how many places with some are in the words before
}

// mapsAt is the maps of a job with input in one place, ascending. The first of them are
// here too: mostly there are no others.
type mapsAt struct {
	from, to int32    // in places.maps
	low      [2]int32 // those before are in neither of the sets that maps are picked from
	first    [4]int32
}

// placesOf is the maps by their places, of the places by map.
func placesOf(byMap *taskset.Lists) (p places) {
	all := byMap.Members()
	if len(all) == 0 {
		return p
	}
	p.there = make([]word, slices.Max(all)>>6+1)
	for _, place := range all {
		p.there[place>>6].bits |= 1 << (place & 63)
	}
	n := 0
	for w := range p.there {
		p.there[w].before, p.there[w].waiting = int32(n), p.there[w].bits
		n += bits.OnesCount64(p.there[w].bits)
	}
	p.all, p.maps = make([]mapsAt, n), make([]int32, len(all))
	for _, place := range all {
		p.find(place).to++ // how many, for now
	}
	from := int32(0)
	for i := range p.all {
		n := p.all[i].to
		p.all[i] = mapsAt{from: from, to: from, low: [2]int32{from, from}}
		from += n
	}
	for m := range byMap.Len() {
		for _, place := range byMap.At(m) {
			n := p.find(place)
			p.maps[n.to] = int32(m)
			n.to++
		}
	}
	for i := range p.all {
		n := &p.all[i]
		copy(n.first[:], p.maps[n.from:n.to])
	}
	return p
}

// waits says whether some maps in a place may be to be launched.
func (p *places) waits(place int32) bool {
	return int(place>>6) < len(p.there) && p.there[place>>6].waiting&(1<<(place&63)) != 0
}

// find is the maps in one place, or nil.
func (p *places) find(place int32) *mapsAt {
	if int(place>>6) >= len(p.there) {
		return nil
	}
	w, bit := &p.there[place>>6], uint64(1)<<(place&63)
	if w.bits&bit == 0 {
		return nil
	}
	return &p.all[w.before+int32(bits.OnesCount64(w.bits&(bit-1)))]
}

// each yields the places with some.
func (p *places) each() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range p.there {
			for ; w.bits != 0; w.bits &= w.bits - 1 {
				if !yield(i<<6 + bits.TrailingZeros64(w.bits)) {
					return
				}
			}
		}
	}
}

// at is the maps in one place.
func (p *places) at(place int32) []int32 {
	n := p.find(place)
	if n == nil {
		return nil
	}
	return p.maps[n.from:n.to]
}

// get is map i of places.maps, which is in n.
func (p *places) get(n *mapsAt, i int32) int {
	if k := int(i - n.from); k < len(n.first) {
		return int(n.first[k])
	}
	return int(p.maps[i])
}

// back has a map looked at again.
func (p *places) back(place int32, which set, m int) {
	p.there[place>>6].waiting |= 1 << (place & 63)
	n := p.find(place)
	i, _ := slices.BinarySearch(p.maps[n.from:n.to], int32(m))
	n.low[which] = min(n.low[which], n.from+int32(i))
}

// set is one of the sets of maps that maps are picked from, as an index of mapsAt.low.
type set int

const (
	pending set = iota
	relaxed
)

func (j *Job) among(which set) *taskset.Set {
	if which == relaxed {
		return &j.relaxed
	}
	return &j.pending
}

// pickAt is the lowest map in a place that is in one of the sets and may run on t, or -1.
// It costs amortized O(1), but for maps that have failed on t. A deferred job is asked at
// each slot that becomes free, mostly in vain, which a bit tells.
func (a *Assigner) pickAt(j *Job, p *places, place int32, which set, t *Tracker, strict bool) int {
	if !p.waits(place) {
		return -1
	}
	n := p.find(place)
	from, low := j.among(which), &n.low[which]
	for *low < n.to && !from.Has(p.get(n, *low)) {
		*low++
	}
	if *low == n.to && which == pending {
		p.there[place>>6].waiting &^= 1 << (place & 63)
	}
	for i := *low; i < n.to; i++ {
		if m := p.get(n, i); from.Has(m) && a.mayLaunch(j, m, t, strict) {
			return m
		}
	}
	return -1
}

// pickLocal is the lowest map to launch whose input is on t's node, or -1.
func (a *Assigner) pickLocal(j *Job, t *Tracker, strict bool) int {
	return a.pickAt(j, &j.in.onNodes, t.nodeIndex, pending, t, strict)
}

// pickInRack is the lowest map of a set whose input is in t's rack, or -1.
func (a *Assigner) pickInRack(j *Job, which set, t *Tracker, strict bool) int {
	return a.pickAt(j, &j.in.inRacks, t.rack, which, t, strict)
}

// pickAny is the lowest map of a set, or -1.
func (a *Assigner) pickAny(j *Job, which set, t *Tracker, strict bool) int {
	for m := range j.among(which).All() {
		if a.mayLaunch(j, m, t, strict) {
			return m
		}
	}
	return -1
}

// mayLaunch says whether a map may run on a tracker: if strict, only where it has not failed.
func (a *Assigner) mayLaunch(j *Job, m int, t *Tracker, strict bool) bool {
	return !j.failed.Has(m) || a.cluster.MayRetry(j, m, t, strict)
}

// SetFailed notes that a map has failed somewhere: it waits for no local slot any more, and
// MayRetry is asked where it may run.
func (j *Job) SetFailed(m int) { j.failed.Add(m) }
