package wire

import "time"

// Prediction is the predicted end of a job that has not ended. Nine of ten jobs end between Earliest and
// Latest. Times count from the job's submission; all are 0 if the end is not known.
type Prediction struct {
	Earliest time.Duration
	Likely   time.Duration
	Latest   time.Duration
	Unknown  string // why the end is not known: "first tasks still running"; empty if it is known, or if nothing is to be said
}

// Known reports whether an end is predicted.
func (p *Prediction) Known() bool { return p.Likely > 0 }

// LateBy returns by how much the likely end misses a job's deadline; 0: it does not miss one.
func (p *Prediction) LateBy(t *Settings) time.Duration {
	if !p.Known() || t.Deadline == 0 {
		return 0
	}
	return max(0, p.Likely-t.Deadline)
}

// Step returns the last step of a job's SLA that the likely end passes; the zero step if it passes none.
func (p *Prediction) Step(t *Settings) (last SLAStep) {
	for _, step := range t.SLA {
		if p.Known() && p.Likely > step.After {
			last = step
		}
	}
	return last
}

// CloseTo reports whether no time of two predictions differs by more than a duration.
func (p *Prediction) CloseTo(q *Prediction, tolerance time.Duration) bool {
	return p.Known() == q.Known() && p.Unknown == q.Unknown && (p.Earliest-q.Earliest).Abs() < tolerance &&
		(p.Likely-q.Likely).Abs() < tolerance && (p.Latest-q.Latest).Abs() < tolerance
}
