package core

import "github.com/quernmr/quern/wire"

// bytesDone has what a job has done so far, with its running attempts.
func (j *job) bytesDone() wire.CurvePoint {
	x := wire.CurvePoint{Read: j.tally.read, Shuffled: j.outputs.fetched, Reduced: j.tally.reduced}
	for a := range j.attempts.all() {
		switch {
		case a.task.counted, a.second:
		case a.id.Task.Kind == wire.Map:
			x.Read += a.bytes.Done
		case a.id.Task.Kind == wire.Reduce:
			x.Reduced += a.bytes.Done
		}
	}
	return x
}

// addPoints adds a point to the curves of the jobs that this Step has changed, if their last ones are old enough.
func (l *leader) addPoints() {
	now := l.wall()
	for _, id := range l.c.changed {
		if j := l.job(id); j != nil && j.facts.Maps() >= 0 && j.tally.curve.Due(now) {
			l.charge(j.attempts.Len() / 8)
			l.addPoint(j)
		}
	}
}

// addPoint adds what a job has done to its curve.
func (l *leader) addPoint(j *job) {
	x := j.bytesDone()
	x.At = l.wall()
	j.tally.curve.Add(x)
}
