package core

import (
	"slices"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// learnRacks takes the racks in that the file system names in a job's splits.
func (l *Live) learnRacks(j *job) {
	news := false
	for i := range j.splits {
		s := &j.splits[i]
		for k, host := range s.Hosts {
			s.Hosts[k] = locality.HostKey(host)
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
			t.rack = l.topo.Rack(t.Host, t.trackerFacts.Rack)
		}
	}
}

// levelOf is how near map m of a job is to its input on a tracker.
func (j *job) levelOf(m int, t *tracker) wire.Level {
	if slices.Contains(j.nodesOf(m), t.node.index) { // which needs no look at names
		return wire.NodeLocal
	}
	s := &j.splits[m]
	return locality.Level(s.Hosts, s.Racks, t.host, t.rack)
}

// countLevel notes how near a launched map is to its input. Of one adopted from
// an earlier leader it is counted once the splits are read.
func (l *Live) countLevel(a *attempt) {
	if a.id.Task.Kind == wire.Map && a.job.splits != nil {
		a.level = a.job.levelOf(a.id.Task.N, a.tracker)
		a.job.levels[a.level]++
	}
}

// node is a machine: the trackers on it, and the jobs with input there.
type node struct {
	host     string
	trackers []*tracker
	working  int     // trackers that are given work
	nears    []*near // by the jobs' numbers,
	numbers  []int32 // which are these: they lie together in memory
	index    int32   // in Live.byNode and Live.pull
}

// whole is a map to launch in Live.pull; one with input on r nodes pulls each of them
// with an r-th.
const whole = 840

func pullOf(nodes int) int32 { return int32(max(1, whole/max(1, nodes))) }

// near is the maps of a job with input in one place, ascending: on a node, or in a
// rack, which is no node.
type near struct {
	job  *job
	node *node
	maps []int32
	low  [2]int // those before are not among the ones to pick from: not to launch, or not loose
}

// The sets of maps that one is picked from, as indexes of near.low.
const (
	amongPending = iota
	amongLoose
)

func (j *job) among(which int) *taskSet {
	if which == amongLoose {
		return &j.loose
	}
	return &j.pending
}

// find is the maps of a job that have input on the node, or nil.
func (n *node) find(j *job) *near {
	i, found := slices.BinarySearch(n.numbers, int32(j.facts.n))
	if !found {
		return nil
	}
	return n.nears[i]
}

// pick is the lowest map that is in one of the sets and may run on t, or -1.
// It costs amortized O(1), but for maps that have failed on t.
func (n *near) pick(which int, t *tracker, strict bool) int {
	if n == nil {
		return -1
	}
	from, low := n.job.among(which), &n.low[which]
	for *low < len(n.maps) && !from.Has(int(n.maps[*low])) {
		*low++
	}
	for _, m := range n.maps[*low:] {
		if from.Has(int(m)) && n.job.mayRun(int(m), t, strict) {
			return int(m)
		}
	}
	return -1
}

// back has a map looked at again.
func (n *near) back(which, m int) {
	i, _ := slices.BinarySearch(n.maps, int32(m))
	n.low[which] = min(n.low[which], i)
}

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
	if len(n.trackers) == 0 && len(n.nears) == 0 {
		delete(l.nodes, n.host)
		l.byNode[n.index] = nil
	}
}

// settleOn notes that a tracker is on a node, or is there no more.
func (l *Live) settleOn(t *tracker, there bool) {
	n := t.node
	if there {
		n = l.nodeOf(t.host)
		t.node = n
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
		if n.working++; n.working > 1 {
			return
		}
	default:
		if n.working--; n.working > 0 {
			return
		}
	}
	for _, near := range n.nears {
		j := near.job
		for _, m := range near.maps {
			if works {
				j.live[m]++
				continue
			}
			if j.live[m]--; j.live[m] == 0 && j.pending.Has(int(m)) {
				l.loosen(j, int(m))
			}
		}
	}
}

// indexSplits makes the indexes by node and by rack, and enters the maps that
// wait already.
func (l *Live) indexSplits(j *job) {
	nears := make(map[*node]*near)
	j.racks = make(map[string]*near)
	j.firsts, j.live = make([]int32, len(j.splits)+1), make([]uint16, len(j.splits))
	for m := range j.splits {
		s := &j.splits[m]
		for k, host := range s.Hosts {
			n := l.nodeOf(host)
			s.Hosts[k] = n.host // one string for all
			here := nears[n]
			if here == nil {
				here = &near{job: j, node: n}
				nears[n] = here
				j.nears = append(j.nears, here)
			}
			if here.add(m) {
				j.places = append(j.places, n.index)
				if n.working > 0 {
					j.live[m]++
				}
			}
		}
		j.firsts[m+1] = int32(len(j.places))
		for _, rack := range s.Racks {
			if rack != "" && j.racks[rack] == nil {
				j.racks[rack] = &near{job: j}
			}
			if rack != "" {
				j.racks[rack].add(m)
			}
		}
	}
	for _, n := range j.nears {
		i, _ := slices.BinarySearch(n.node.numbers, int32(j.facts.n))
		n.node.nears, n.node.numbers = slices.Insert(n.node.nears, i, n), slices.Insert(n.node.numbers, i, int32(j.facts.n))
	}
	for m := range j.pending.All() {
		l.enter(j, m)
	}
}

// add adds a map, once, and says whether it was new.
func (n *near) add(m int) bool {
	if k := len(n.maps); k > 0 && n.maps[k-1] == int32(m) {
		return false
	}
	n.maps = append(n.maps, int32(m))
	return true
}

// nodesOf is the nodes with the input of a map, by their indexes.
func (j *job) nodesOf(m int) []int32 { return j.places[j.firsts[m]:j.firsts[m+1]] }

// dropNears takes a job out of the nodes.
func (l *Live) dropNears(j *job) {
	for m := range j.pending.All() {
		if j.splits != nil {
			l.unpull(j, m)
		}
	}
	for _, n := range j.nears {
		i, _ := slices.BinarySearch(n.node.numbers, int32(j.facts.n))
		n.node.nears, n.node.numbers = slices.Delete(n.node.nears, i, i+1), slices.Delete(n.node.numbers, i, i+1)
		l.dropNode(n.node)
	}
	j.nears, j.places, j.racks = nil, nil, nil
	clear(j.firsts)
}

// enter notes a map that is to be launched from now on. The free slots on the nodes
// with its input are offered anew.
func (l *Live) enter(j *job, m int) {
	if j.splits == nil {
		return
	}
	nodes := j.nodesOf(m)
	for _, i := range nodes {
		n := l.byNode[i]
		n.find(j).back(amongPending, m)
		l.pull[i] += pullOf(len(nodes))
		for _, t := range n.trackers {
			l.idle.Remove(t.index)
			if l.free[mapPhase].Has(t.index) {
				l.fresh.Add(t.index)
			}
		}
	}
	for _, rack := range j.splits[m].Racks {
		if rack != "" {
			j.racks[rack].back(amongPending, m)
		}
	}
	l.beginWait(j, m)
}

// leave ends that.
func (l *Live) leave(j *job, m int) {
	if j.splits == nil {
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
	nodes := j.nodesOf(m)
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
	for _, n := range j.nears {
		for _, t := range n.node.trackers {
			if l.free[mapPhase].Has(t.index) {
				l.fresh.Add(t.index)
			}
		}
	}
}
