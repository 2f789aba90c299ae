package core

import (
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
