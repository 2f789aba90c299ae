package wire

import "time"

// Prediction is the predicted end of a job that has not ended. Nine of ten jobs end between Earliest and
// Latest. Times count from the job's submission. If the end is not known, Likely and Latest are 0, and Earliest is
// what tasks of other jobs suggest, or 0.
type Prediction struct {
	Earliest time.Duration
	Likely   time.Duration
	Latest   time.Duration
	Unknown  string // why the end is not known: "first tasks still running"; empty if it is known, or if nothing is to be said
}

// Known reports whether an end is predicted.
func (p *Prediction) Known() bool { return p.Likely > 0 }

// judged is the end that decides what a job misses: the likely one; before it is known, the earliest.
func (p *Prediction) judged() time.Duration {
	if p.Known() {
		return p.Likely
	}
	return p.Earliest
}

// LateBy returns by how much the likely end misses a job's deadline; 0: it does not miss one. Before that end is
// known, the earliest counts.
func (p *Prediction) LateBy(t *Settings) time.Duration {
	if t.Deadline == 0 {
		return 0
	}
	return max(0, p.judged()-t.Deadline)
}

// Step returns the last step of a job's SLA that the end of LateBy passes; the zero step if it passes none.
func (p *Prediction) Step(t *Settings) (last SLAStep) {
	for _, step := range t.SLA {
		if p.judged() > step.After {
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
