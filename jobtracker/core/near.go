package core

import (
	"iter"
	"math/bits"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// input is where the input of a job's maps lies. Of its splits nothing else is kept:
// there are many of them.
type input struct {
	live  []uint16      // nodes with the input of each map that are given work
	nodes taskset.Lists // by map, the indexes of the nodes with its input
	racks taskset.Lists // by map, the numbers of the racks with its input

	atNodes, inRacks places
	closed           bool // the job is in no index any more
}

// places is a job's maps by where their input is. To find those in a place takes no
// search: it is known how many places come before it.
type places struct {
	there []word  // the places with some, in a bit each
	all   []near  // in the order of the places
	maps  []int32 // of all places, end to end
}

// word is 64 places.
type word struct {
	bits    uint64
	waiting uint64 // of those, where some were to be launched at the last look
	before  int32  // how many places with some are in the words before
}

// near is the maps of a job with input in one place, a node or a rack, ascending. The
// first of them are here too: mostly there are no others.
type near struct {
	from, to int32    // in places.maps
	low      [2]int32 // those before are not among the ones to pick from: not to launch, or not loose
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
	p.all, p.maps = make([]near, n), make([]int32, len(all))
	for _, place := range all {
		p.find(place).to++ // how many, for now
	}
	from := int32(0)
	for i := range p.all {
		n := p.all[i].to
		p.all[i] = near{from: from, to: from, low: [2]int32{from, from}}
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
func (p *places) find(place int32) *near {
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
func (p *places) get(n *near, i int32) int {
	if k := int(i - n.from); k < len(n.first) {
		return int(n.first[k])
	}
	return int(p.maps[i])
}

// back has a map looked at again.
func (p *places) back(place int32, which, m int) {
	p.there[place>>6].waiting |= 1 << (place & 63)
	n := p.find(place)
	i, _ := slices.BinarySearch(p.maps[n.from:n.to], int32(m))
	n.low[which] = min(n.low[which], n.from+int32(i))
}

// The sets of maps that one is picked from, as indexes of near.low.
const (
	amongPending = iota
	amongLoose
)

func (j *job) among(which int) *taskset.Set {
	if which == amongLoose {
		return &j.loose
	}
	return &j.pending
}

// pickAt is the lowest map in a place that is in one of the sets and may run on t, or -1.
// It costs amortized O(1), but for maps that have failed on t. A job that refuses slots is
// asked at each that becomes free, mostly in vain, which a bit tells.
func (j *job) pickAt(p *places, place int32, which int, t *tracker, strict bool) int {
	if !p.waits(place) {
		return -1
	}
	n := p.find(place)
	from, low := j.among(which), &n.low[which]
	for *low < n.to && !from.Has(p.get(n, *low)) {
		*low++
	}
	if *low == n.to && which == amongPending {
		p.there[place>>6].waiting &^= 1 << (place & 63)
	}
	for i := *low; i < n.to; i++ {
		if m := p.get(n, i); from.Has(m) && j.mayRun(m, t, strict) {
			return m
		}
	}
	return -1
}

// pickNear is the lowest map to launch whose input is on t's node, or -1.
func (j *job) pickNear(t *tracker, strict bool) int {
	return j.pickAt(&j.in.atNodes, t.place, amongPending, t, strict)
}

// pickInRack is the lowest map of a set whose input is in t's rack, or -1.
func (j *job) pickInRack(which int, t *tracker, strict bool) int {
	return j.pickAt(&j.in.inRacks, t.rackNumber, which, t, strict)
}

// pickAny is the lowest one of a set, or -1.
func (j *job) pickAny(which int, t *tracker, strict bool) int {
	for m := range j.among(which).All() {
		if j.mayRun(m, t, strict) {
			return m
		}
	}
	return -1
}

// mayRun says whether a map may run on a tracker: strictly only where it has not failed,
// else there too once it has waited long enough for another.
func (j *job) mayRun(m int, t *tracker, strict bool) bool {
	return !j.avoids(&j.maps[m].task, t) || !strict && j.mishaps(&j.maps[m].task).elsewhere == 0
}

// learnRacks takes the racks in that the file system names in a job's splits.
func (l *Live) learnRacks(splits []Split) {
	news := false
	for i := range splits {
		s := &splits[i]
		for k, host := range s.Hosts {
			if k < len(s.Racks) && l.topo.Learn(host, s.Racks[k]) {
				news = true
			}
		}
	}
	if !news {
		return
	}
	for _, t := range l.byIndex {
		if t != nil {
			l.setRack(t)
		}
	}
}

// setRack notes where a tracker stands, by what is known of racks.
func (l *Live) setRack(t *tracker) {
	t.rack = l.topo.Rack(t.Host, t.Tracker.Rack)
	t.rackNumber = l.rackOf(t.rack)
}

// rackOf numbers the names of racks.
func (l *Live) rackOf(rack string) int32 {
	n, ok := l.racks[rack]
	if !ok {
		n = int32(len(l.racks))
		l.racks[rack] = n
	}
	return n
}

// levelOf is how near map m of a job is to its input on a tracker, as [locality.Level]
// has it, without a look at names. Input that is nowhere in particular has no level.
func (j *job) levelOf(m int, t *tracker) wire.Level {
	nodes := j.in.nodes.At(m)
	switch {
	case len(nodes) == 0:
		return 0
	case taskset.Has(nodes, t.place):
		return wire.NodeLocal
	case taskset.Has(j.in.racks.At(m), t.rackNumber):
		return wire.RackLocal
	}
	return wire.Remote
}

// countLevel notes how near a launched map is to its input. Of one adopted from
// an earlier leader it is counted once the splits are read.
func (l *Live) countLevel(a *attempt) {
	if a.id.Task.Kind == wire.Map && a.job.in != nil && !a.job.in.closed {
		a.level = a.job.levelOf(a.id.Task.N, a.tracker)
		a.job.levels[a.level]++
	}
}

// node is a machine with trackers, or with input of jobs.
type node struct {
	host     string
	trackers []*tracker
	working  int         // trackers that are given work
	jobs     taskset.Set // seats of those that have input there
	index    int32       // in Live.byNode and Live.pull
}

// wholePull is a map to launch in Live.pull; one with input on r nodes pulls each of them
// with an r-th.
const wholePull = 840

func pullOf(nodes int) int32 { return int32(max(1, wholePull/max(1, nodes))) }

// nodeOf finds the node of a host, or makes it.
func (l *Live) nodeOf(host string) *node {
	n := l.nodes[host]
	if n == nil {
		i := slices.Index(l.byNode, nil)
		if i < 0 {
			i = len(l.byNode)
			l.byNode, l.pull = append(l.byNode, nil), append(l.pull, 0)
		}
		n = &node{host: host, index: int32(i)}
		l.nodes[host], l.byNode[i], l.pull[i] = n, n, 0
	}
	return n
}

func (l *Live) dropNode(n *node) {
	if len(n.trackers) == 0 && n.jobs.Len() == 0 {
		delete(l.nodes, n.host)
		l.byNode[n.index] = nil
	}
}

// settleOn notes that a tracker is on a node, or is there no more.
func (l *Live) settleOn(t *tracker, there bool) {
	n := t.node
	if there {
		n = l.nodeOf(t.host)
		t.node, t.place = n, n.index
		n.trackers = append(n.trackers, t)
		return
	}
	n.trackers = slices.DeleteFunc(n.trackers, func(x *tracker) bool { return x == t })
	l.dropNode(n)
}

// worked notes that a tracker is given work from now on, or no more. Maps with input
// on no node that is wait for none.
func (l *Live) worked(t *tracker, works bool) {
	n := t.node
	switch {
	case works:
		l.working++
		if n.working++; n.working > 1 {
			return
		}
	default:
		l.working--
		l.allBack() // perhaps it was the last that they could wait for
		if n.working--; n.working > 0 {
			return
		}
	}
	for seat := range n.jobs.All() {
		j := l.seats[seat]
		for _, m := range j.in.atNodes.at(n.index) {
			if works {
				j.in.live[m]++
				continue
			}
			if j.in.live[m]--; j.in.live[m] == 0 && j.pending.Has(int(m)) {
				l.loosen(j, int(m))
			}
		}
	}
}

// indexSplits makes the indexes by node and by rack, and enters the maps that
// wait already.
func (l *Live) indexSplits(j *job, splits []Split) {
	hosts, racks := 0, 0
	for m := range splits {
		hosts, racks = hosts+len(splits[m].Hosts), racks+len(splits[m].Racks)
	}
	in := &input{
		live:  make([]uint16, len(splits)),
		nodes: taskset.NewLists(hosts), racks: taskset.NewLists(racks),
	}
	for m := range splits {
		s := &splits[m]
		for _, host := range s.Hosts {
			in.nodes.Add(l.nodeOf(locality.HostKey(host)).index)
		}
		for _, rack := range s.Racks {
			if rack != "" {
				in.racks.Add(l.rackOf(rack))
			}
		}
		in.nodes.End()
		in.racks.End()
		for _, i := range in.nodes.At(m) {
			if l.byNode[i].working > 0 {
				in.live[m]++
			}
		}
	}
	in.atNodes, in.inRacks = placesOf(&in.nodes), placesOf(&in.racks)
	j.in = in
	for i := range in.atNodes.each() {
		l.byNode[i].jobs.Add(int(j.seat))
	}
	for m := range j.pending.All() {
		l.enter(j, m)
	}
}

// dropNears takes a job out of the nodes.
func (l *Live) dropNears(j *job) {
	in := j.in
	if in == nil || in.closed {
		return
	}
	for m := range j.pending.All() {
		l.unpull(j, m)
	}
	for i := range in.atNodes.each() {
		n := l.byNode[i]
		n.jobs.Remove(int(j.seat))
		l.dropNode(n)
	}
	in.closed = true
	in.atNodes, in.inRacks = places{}, places{}
}

// indexed says whether a job's maps are in the indexes by place.
func (j *job) indexed() bool { return j.in != nil && !j.in.closed }

// enter notes a map that is to be launched from now on. The free slots on the nodes
// with its input are offered anew.
func (l *Live) enter(j *job, m int) {
	if !j.indexed() {
		return
	}
	nodes := j.in.nodes.At(m)
	for _, i := range nodes {
		j.in.atNodes.back(i, amongPending, m)
		l.pull[i] += pullOf(len(nodes))
		for _, t := range l.byNode[i].trackers {
			l.idle.Remove(t.index)
			if l.free[mapPhase].Has(t.index) {
				l.fresh.Add(t.index)
			}
		}
	}
	j.backInRacks(amongPending, m)
	l.beginWait(j, m)
}

// backInRacks has a map looked at again that comes into a set.
func (j *job) backInRacks(which, m int) {
	for _, rack := range j.in.racks.At(m) {
		j.in.inRacks.back(rack, which, m)
	}
}

// leave ends that.
func (l *Live) leave(j *job, m int) {
	if !j.indexed() {
		return
	}
	j.loose.Remove(m)
	if j.pending.Len() == 0 {
		l.askAgain(j)
	}
	l.unpull(j, m)
}

// unpull takes back what a map to launch has added to Live.pull.
func (l *Live) unpull(j *job, m int) {
	nodes := j.in.nodes.At(m)
	for _, i := range nodes {
		l.pull[i] -= pullOf(len(nodes))
		if l.pull[i] > 0 {
			continue
		}
		for _, t := range l.byNode[i].trackers {
			l.idle.Set(t.index, l.free[mapPhase].Has(t.index))
		}
	}
}

// offerAll has the free slots near a job's maps offered anew: it may be given some
// from now on.
func (l *Live) offerAll(j *job) {
	if !j.indexed() {
		return
	}
	for i := range j.in.atNodes.each() {
		for _, t := range l.byNode[i].trackers {
			if l.free[mapPhase].Has(t.index) {
				l.fresh.Add(t.index)
			}
		}
	}
}
