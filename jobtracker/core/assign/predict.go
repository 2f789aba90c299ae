package assign

import (
	"slices"
	"time"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// sampledMaps is how many maps of a job slowest samples.
const sampledMaps = 6

// slowest samples a job's pending maps. It returns the map with the longest predicted wait for a
// local slot, and this wait. If too little is measured, ok is false.
func (a *Assigner) slowest(j *Job) (slowest int, wait time.Duration, ok bool) {
	task := j.pace.Local
	if task == 0 {
		task = a.pace.Local
	}
	slowest = -1
	if task == 0 {
		return slowest, 0, false
	}
	m := j.sampled
	for range sampledMaps {
		if m = j.pending.Next(m + 1); m < 0 {
			m = j.pending.Next(0)
		}
		if j.relaxed.Has(m) {
			continue
		}
		if at, known := a.predict(j, m, task); known && (!ok || at > wait) {
			slowest, wait, ok = m, at, true
		}
	}
	j.sampled = m
	return slowest, wait, ok
}

// predict estimates how long a map waits for a local slot.
func (a *Assigner) predict(j *Job, m int, task time.Duration) (time.Duration, bool) {
	nodes := j.in.nodes.At(m)
	for len(a.nodeBuffer) < len(nodes) {
		a.nodeBuffer = append(a.nodeBuffer, locality.Node{})
	}
	for k, i := range nodes {
		n, s := a.byNode[i], &a.nodeBuffer[k]
		s.Releases, s.Ahead, s.Task = s.Releases[:0], float64(a.demand[i])/demandUnit-1, task
		for _, t := range n.trackers {
			if t.takesMaps && !j.Banned(t) {
				s.Releases = a.releases(t, s.Releases)
			}
		}
		slices.Sort(s.Releases)
	}
	return locality.Predict(a.nodeBuffer[:len(nodes)])
}

// releases appends the estimated time until each map slot of a tracker is free.
func (a *Assigner) releases(t *Tracker, all []time.Duration) []time.Duration {
	for range t.free[Map] {
		all = append(all, 0)
	}
	return a.cluster.Releases(t, all)
}

// Remaining estimates how much longer a map runs that has run for some time.
func (a *Assigner) Remaining(j *Job, level wire.Level, ran time.Duration) time.Duration {
	rest, ok := j.pace.Left(remote(level), ran)
	if !ok {
		rest, _ = a.pace.Left(remote(level), ran)
	}
	return rest
}

// remote reports whether a map reads its input from another node.
func remote(level wire.Level) bool { return level > wire.NodeLocal }

// AddMapTime adds the time of a map, and of its reads, to the averages.
func (a *Assigner) AddMapTime(j *Job, level wire.Level, took time.Duration, reads wire.Reads) {
	j.pace.Add(remote(level), took)
	a.pace.Add(remote(level), took)
	if reads != (wire.Reads{}) {
		j.average.Add(a.measure(reads))
	}
}

// AddEarlierReads adds reads of maps under an earlier leader, if nothing was measured yet.
func (a *Assigner) AddEarlierReads(reads wire.Reads) {
	if a.meter.RemoteReads == 0 {
		a.measure(reads)
	}
}

// measure adds reads to the meter, and returns the time of reads from other nodes.
func (a *Assigner) measure(r wire.Reads) time.Duration {
	local, other := r.Node, r.Rack
	other.Bytes += r.Remote.Bytes
	other.Took += r.Remote.Took
	a.meter.Add(locality.Read{Bytes: local.Bytes, Took: local.Took})
	a.meter.Add(locality.Read{Remote: true, Bytes: other.Bytes, Took: other.Took})
	return other.Took
}

// RemoteCost returns the average read time of a job's non-local maps.
func (j *Job) RemoteCost() time.Duration { return time.Duration(j.average) }
