package assign

import (
	"slices"
	"time"

	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// samples is how many of a job's maps slowest looks at.
const samples = 6

// slowest samples a job's pending maps, and returns the one that would wait longest for a
// local slot, and how long. If too little is measured, ok is false.
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
	for range samples {
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
			if t.works {
				s.Releases = a.releases(t, s.Releases)
			}
		}
		slices.Sort(s.Releases)
	}
	return locality.Predict(a.nodeBuffer[:len(nodes)])
}

// releases appends, for each map slot of a tracker, the estimated time until it is free.
func (a *Assigner) releases(t *Tracker, all []time.Duration) []time.Duration {
	for range t.free[Map] {
		all = append(all, 0)
	}
	return a.cluster.Releases(t, all)
}

// Left estimates how much longer a map of a job runs that has run for some time.
func (a *Assigner) Left(j *Job, level wire.Level, ran time.Duration) time.Duration {
	left, ok := j.pace.Left(remote(level), ran)
	if !ok {
		left, _ = a.pace.Left(remote(level), ran)
	}
	return left
}

// remote reports whether a map reads its input from another node.
func remote(level wire.Level) bool { return level > wire.NodeLocal }

// Learn adds the time of a map and of its reads to the averages.
func (a *Assigner) Learn(j *Job, level wire.Level, took time.Duration, reads wire.Reads) {
	j.pace.Add(remote(level), took)
	a.pace.Add(remote(level), took)
	if reads != (wire.Reads{}) {
		j.average.Add(a.measure(reads))
	}
}

// LearnFirst adds reads of maps under an earlier leader, if nothing was measured yet.
func (a *Assigner) LearnFirst(reads wire.Reads) {
	if a.meter.RemoteReads == 0 {
		a.measure(reads)
	}
}

// measure adds reads to the meter, and returns the time of those from other nodes.
func (a *Assigner) measure(r wire.Reads) time.Duration {
	local, away := r.Node, r.Rack
	away.Bytes += r.Remote.Bytes
	away.Took += r.Remote.Took
	a.meter.Add(locality.Read{Bytes: local.Bytes, Took: local.Took})
	a.meter.Add(locality.Read{Remote: true, Bytes: away.Bytes, Took: away.Took})
	return away.Took
}

// RemoteCost returns the average time in which non-local maps of a job read their input.
func (j *Job) RemoteCost() time.Duration { return time.Duration(j.average) }
