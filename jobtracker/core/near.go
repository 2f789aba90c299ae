package core

import "github.com/quernmr/quern/locality"

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
