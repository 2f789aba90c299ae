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
	l.uneven = true
}

// levelOf is how near map m of a job is to its input on a tracker.
func (j *job) levelOf(m int, t *tracker) wire.Level {
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

// near is the maps of a job with input in one place, ascending.
type near struct {
	maps []int32
	low  int // those before are not among the ones to pick from
}

// pick is the lowest map that is among those to pick from and may run on t, or -1.
// It costs amortized O(1), but for maps that have failed on t.
func (n *near) pick(from *taskSet, j *job, t *tracker, strict bool) int {
	if n == nil {
		return -1
	}
	for n.low < len(n.maps) && !from.Has(int(n.maps[n.low])) {
		n.low++
	}
	for _, m := range n.maps[n.low:] {
		if from.Has(int(m)) && j.mayRun(int(m), t, strict) {
			return int(m)
		}
	}
	return -1
}

// back has a map looked at again.
func (n *near) back(m int) {
	i, _ := slices.BinarySearch(n.maps, int32(m))
	n.low = min(n.low, i)
}

// indexSplits makes the indexes by node and by rack, and enters the maps that
// wait already.
func (l *Live) indexSplits(j *job) {
	j.nodes, j.racks = make(map[string]*near), make(map[string]*near)
	for m := range j.splits {
		s := &j.splits[m]
		for _, host := range s.Hosts {
			addTo(j.nodes, host, m)
		}
		for _, rack := range s.Racks {
			if rack != "" {
				addTo(j.racks, rack, m)
			}
		}
	}
	j.nearAsOf = 0
	for m := range j.pending.All() {
		l.enter(j, m)
	}
}

// addTo adds a map to a place, once.
func addTo(index map[string]*near, place string, m int) {
	n := index[place]
	if n == nil {
		n = new(near)
		index[place] = n
	}
	if k := len(n.maps); k == 0 || n.maps[k-1] != int32(m) {
		n.maps = append(n.maps, int32(m))
	}
}

// enter notes a map that is to be launched from now on.
func (l *Live) enter(j *job, m int) {
	if j.splits == nil {
		return
	}
	for _, host := range j.splits[m].Hosts {
		j.nodes[host].back(m)
	}
	l.beginWait(j, m)
}

// leave ends that.
func (l *Live) leave(j *job, m int) {
	if j.splits == nil {
		return
	}
	j.maps[m].waited = j.waitClock(l.now) - j.maps[m].since
	for level := range j.ripe {
		j.ripe[level].Remove(m)
	}
}

// ripeFor lets a map go as far as a level: it need not wait for a nearer slot.
func (j *job) ripeFor(level, m int) {
	if !j.ripe[level].Add(m) || level != rackRipe {
		return
	}
	for _, rack := range j.splits[m].Racks {
		if rack != "" {
			j.racks[rack].back(m)
		}
	}
}
