package assign

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/taskset"
)

// input is the locality index of one job: the nodes and racks with the input of its maps.
type input struct {
	live  []uint16      // by map, the number of nodes with its input and a tracker that takes the job's maps
	nodes taskset.Lists // by map, the indexes of the nodes with its input
	racks taskset.Lists // by map, the numbers of the racks with its input

	onNodes, inRacks places
	cleared          bool // by Clear
}

// places maps each place, which is a node or rack, to the job's maps with input there. A word
// counts the set bits in the words before it, so a lookup needs no search.
type places struct {
	words []word   // one bit per place, set if maps have input there
	all   []mapsAt // one for each set bit, in order
	maps  []int32  // of all places, end to end
}

// word has 64 places.
type word struct {
	bits    uint64
	waiting uint64 // like bits, but cleared if pickAt found no pending map
	before  int32  // number of set bits in the words before
}

// mapsAt has the maps of a job with input in one place, ascending. head repeats the first ones:
// mostly there are no others.
type mapsAt struct {
	from, to int32    // in places.maps
	low      [2]int32 // by set: maps before this index of places.maps are not in the set
	head     [4]int32
}

// placesOf makes places from lists of places by map.
func placesOf(byMap *taskset.Lists) (p places) {
	all := byMap.Members()
	if len(all) == 0 {
		return p
	}
	p.words = make([]word, slices.Max(all)>>6+1)
	for _, place := range all {
		p.words[place>>6].bits |= 1 << (place & 63)
	}
	n := 0
	for w := range p.words {
		p.words[w].before, p.words[w].waiting = int32(n), p.words[w].bits
		n += bits.OnesCount64(p.words[w].bits)
	}
	p.all, p.maps = make([]mapsAt, n), make([]int32, len(all))
	for _, place := range all {
		p.find(place).to++ // a count; the next loop turns it into an index
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
		copy(n.head[:], p.maps[n.from:n.to])
	}
	return p
}

// mayHaveMaps reports whether a place may have pending maps.
func (p *places) mayHaveMaps(place int32) bool {
	return int(place>>6) < len(p.words) && p.words[place>>6].waiting&(1<<(place&63)) != 0
}

// find returns the maps in one place, or nil.
func (p *places) find(place int32) *mapsAt {
	if int(place>>6) >= len(p.words) {
		return nil
	}
	w, bit := &p.words[place>>6], uint64(1)<<(place&63)
	if w.bits&bit == 0 {
		return nil
	}
	return &p.all[w.before+int32(bits.OnesCount64(w.bits&(bit-1)))]
}

// each yields the places with maps.
func (p *places) each() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range p.words {
			for ; w.bits != 0; w.bits &= w.bits - 1 {
				if !yield(i<<6 + bits.TrailingZeros64(w.bits)) {
					return
				}
			}
		}
	}
}

// at returns the maps in one place.
func (p *places) at(place int32) []int32 {
	n := p.find(place)
	if n == nil {
		return nil
	}
	return p.maps[n.from:n.to]
}

// get returns places.maps[i], for an i of n.
func (p *places) get(n *mapsAt, i int32) int {
	if k := int(i - n.from); k < len(n.head) {
		return int(n.head[k])
	}
	return int(p.maps[i])
}

// lowerMark notes that a map was added to a set, for pickAt.
func (p *places) lowerMark(place int32, which set, m int) {
	p.words[place>>6].waiting |= 1 << (place & 63)
	n := p.find(place)
	i, _ := slices.BinarySearch(p.maps[n.from:n.to], int32(m))
	n.low[which] = min(n.low[which], n.from+int32(i))
}

// set selects the set of maps from which pickAt picks. It is an index of mapsAt.low.
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

// pickAt returns the lowest map in a place that is in a set and may run on t, or -1. It costs
// amortized O(1), except for maps that have failed on t. The waiting bits make it fast for deferred
// jobs, which have no local map for most free slots.
func (a *Assigner) pickAt(j *Job, p *places, place int32, which set, t *Tracker, strict bool) int {
	if !p.mayHaveMaps(place) || j.Banned(t) {
		return -1
	}
	n := p.find(place)
	from, low := j.among(which), &n.low[which]
	for *low < n.to && !from.Has(p.get(n, *low)) {
		*low++
	}
	if *low == n.to && which == pending {
		p.words[place>>6].waiting &^= 1 << (place & 63)
	}
	for i := *low; i < n.to; i++ {
		if m := p.get(n, i); from.Has(m) && a.mayLaunch(j, m, t, strict) {
			return m
		}
	}
	return -1
}

// pickLocal returns the lowest pending map with input on t's node, or -1.
func (a *Assigner) pickLocal(j *Job, t *Tracker, strict bool) int {
	return a.pickAt(j, &j.in.onNodes, t.nodeIndex, pending, t, strict)
}

// pickInRack returns the lowest map of a set with input in t's rack, or -1.
func (a *Assigner) pickInRack(j *Job, which set, t *Tracker, strict bool) int {
	return a.pickAt(j, &j.in.inRacks, t.rack, which, t, strict)
}

// pickAny returns the lowest map of a set that may run on t, or -1.
func (a *Assigner) pickAny(j *Job, which set, t *Tracker, strict bool) int {
	if j.Banned(t) {
		return -1
	}
	for m := range j.among(which).All() {
		if a.mayLaunch(j, m, t, strict) {
			return m
		}
	}
	return -1
}

// mayLaunch reports whether a map may run on a tracker. If strict, it may not where it has failed.
func (a *Assigner) mayLaunch(j *Job, m int, t *Tracker, strict bool) bool {
	return !j.Banned(t) && (!j.failed.Has(m) || a.cluster.MayRetry(j, m, t, strict))
}

// SetFailed notes that a map has failed. It then waits for no local slot, and MayRetry decides
// where it may run.
func (j *Job) SetFailed(m int) { j.failed.Add(m) }
