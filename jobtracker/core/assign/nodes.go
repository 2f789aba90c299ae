package assign

import (
	"slices"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/locality"
)

// node is a machine with trackers or input.
type node struct {
	host     string
	trackers []*Tracker
	jobs     taskset.Set // indexes of jobs with input there
	index    int32       // in Assigner.byNode and Assigner.demand
}

// demandUnit is the demand of one pending map. Its nodes share it equally, so it is divisible by
// 1 to 8.
const demandUnit = 840

func demandOf(nodes int) int32 { return int32(max(1, demandUnit/max(1, nodes))) }

// nodeOf finds the node of a host, or makes it.
func (a *Assigner) nodeOf(host string) *node {
	n := a.nodes[host]
	if n == nil {
		n = &node{host: host}
		i := insert(&a.byNode, n)
		if i == len(a.demand) {
			a.demand = append(a.demand, 0)
		}
		a.nodes[host], a.demand[i], n.index = n, 0, int32(i)
	}
	return n
}

func (a *Assigner) dropNode(n *node) {
	if len(n.trackers) == 0 && n.jobs.Len() == 0 {
		delete(a.nodes, n.host)
		a.byNode[n.index] = nil
	}
}

// setTakesMaps updates the index after a change of Tracker.takesMaps. It relaxes maps without a
// node that has their input and a tracker that takes them.
func (a *Assigner) setTakesMaps(t *Tracker, takesMaps bool) {
	if takesMaps {
		a.mapTrackers++
	} else {
		a.mapTrackers--
		a.bringAllBack() // maps set aside may have waited for this tracker only
	}
	for index := range t.node.jobs.All() {
		if j := a.jobs[index]; !j.Banned(t) && !t.node.takesMapsOf(j, t) {
			a.setLive(j, t.node, takesMaps)
		}
	}
}

// takesMapsOf reports whether a tracker of the node, except one, takes maps of a job.
func (n *node) takesMapsOf(j *Job, except *Tracker) bool {
	return slices.ContainsFunc(n.trackers, func(t *Tracker) bool { return t != except && t.takesMaps && !j.Banned(t) })
}

// setLive updates a job's maps with input on a node that begins or ceases to have a tracker that
// takes them.
func (a *Assigner) setLive(j *Job, n *node, live bool) {
	for _, m := range j.in.onNodes.at(n.index) {
		if live {
			j.in.live[m]++
			continue
		}
		if j.in.live[m]--; j.in.live[m] == 0 && j.pending.Has(int(m)) {
			a.relax(j, int(m))
		}
	}
}

// Split is the size and location of a map's input.
type Split struct {
	Bytes int64
	Hosts []string // hosts that store it, most bytes first
	Racks []string // racks of Hosts, empty if unknown; nil: all are unknown
}

// SetSplits makes the locality index of a job, with its pending maps.
func (a *Assigner) SetSplits(j *Job, splits []Split) {
	hosts, racks, bytes := 0, 0, int64(0)
	for m := range splits {
		hosts, racks, bytes = hosts+len(splits[m].Hosts), racks+len(splits[m].Racks), bytes+splits[m].Bytes
	}
	j.meanBytes = bytes / int64(max(1, len(splits)))
	in := &input{
		live:  make([]uint16, len(splits)),
		nodes: taskset.NewLists(hosts), racks: taskset.NewLists(racks),
	}
	for m := range splits {
		s := &splits[m]
		for _, host := range s.Hosts {
			in.nodes.Add(a.nodeOf(locality.HostKey(host)).index)
		}
		for _, rack := range s.Racks {
			if rack != "" {
				in.racks.Add(a.rackOf(rack))
			}
		}
		in.nodes.End()
		in.racks.End()
		for _, i := range in.nodes.At(m) {
			if a.byNode[i].takesMapsOf(j, nil) {
				in.live[m]++
			}
		}
	}
	in.onNodes, in.inRacks = placesOf(&in.nodes), placesOf(&in.racks)
	j.in = in
	for i := range in.onNodes.each() {
		a.byNode[i].jobs.Add(int(j.index))
	}
	for m := range j.pending.All() {
		a.index(j, m)
	}
}

// dropInput removes a job from its nodes.
func (a *Assigner) dropInput(j *Job) {
	if !j.Indexed() {
		return
	}
	in := j.in
	for m := range j.pending.All() {
		a.subtractDemand(j, m)
	}
	for i := range in.onNodes.each() {
		n := a.byNode[i]
		n.jobs.Remove(int(j.index))
		a.dropNode(n)
	}
	in.cleared = true
	in.onNodes, in.inRacks = places{}, places{}
}

// HasSplits reports whether SetSplits was called.
func (j *Job) HasSplits() bool { return j.in != nil }

// Indexed reports whether a job's maps are in the locality index: after SetSplits, before Clear.
func (j *Job) Indexed() bool { return j.in != nil && !j.in.cleared }

// index adds a pending map to the locality index, and unchecks the free slots on its nodes.
func (a *Assigner) index(j *Job, m int) {
	if !j.Indexed() {
		return
	}
	nodes := j.in.nodes.At(m)
	demand := demandOf(len(nodes))
	for _, i := range nodes {
		j.in.onNodes.lowerMark(i, pending, m)
		a.demand[i] += demand
		for _, t := range a.byNode[i].trackers {
			a.unclaimed.Remove(int(t.index))
			a.uncheck(t)
		}
	}
	j.lowerRackMarks(pending, m)
	a.beginWait(j, m)
}

// uncheck makes the next round look for maps local to a tracker's free slots.
func (a *Assigner) uncheck(t *Tracker) {
	if a.phases[Map].free.Has(int(t.index)) {
		a.unchecked.Add(int(t.index))
	}
}

// lowerRackMarks calls lowerMark for the racks of a map that has joined a set.
func (j *Job) lowerRackMarks(which set, m int) {
	for _, rack := range j.in.racks.At(m) {
		j.in.inRacks.lowerMark(rack, which, m)
	}
}

// unindex removes a map from the locality index.
func (a *Assigner) unindex(j *Job, m int) {
	if !j.Indexed() {
		return
	}
	j.relaxed.Remove(m)
	if j.pending.Len() == 0 {
		a.recall(j)
	}
	a.subtractDemand(j, m)
}

// subtractDemand removes a map's part of Assigner.demand.
func (a *Assigner) subtractDemand(j *Job, m int) {
	nodes := j.in.nodes.At(m)
	demand := demandOf(len(nodes))
	for _, i := range nodes {
		a.demand[i] -= demand
		if a.demand[i] > 0 {
			continue
		}
		for _, t := range a.byNode[i].trackers {
			a.unclaimed.Set(int(t.index), a.phases[Map].free.Has(int(t.index)))
		}
	}
}

// uncheckLocal unchecks the free slots on nodes with a job's input, when it may take slots again.
func (a *Assigner) uncheckLocal(j *Job) {
	if !j.Indexed() {
		return
	}
	for i := range j.in.onNodes.each() {
		for _, t := range a.byNode[i].trackers {
			a.uncheck(t)
		}
	}
}
