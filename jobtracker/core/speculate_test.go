package core

import "github.com/quernmr/quern/wire"

// checkSecond checks that a second attempt of a task may be launched, and that none is a third one.
func (w *world) checkSecond(id wire.AttemptID) {
	l := w.core.leader
	j := l.job(id.Task.Job)
	a := j.attempt(id)
	if first := a.task.attempts; first.next == a {
		w.seconds++
		suspended := j.facts.Submission().Suspended()
		if !j.spec.ForKind(id.Task.Kind).Speculative || suspended || first.tracker == a.tracker || !a.second {
			w.fail("%v is launched beside %v, which runs on %s; suspended: %v", id, first.id, first.tracker.Name, suspended)
		}
	} else if first != a {
		w.fail("%v is a third attempt", id)
	}
}
