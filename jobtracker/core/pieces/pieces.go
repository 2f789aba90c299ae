// Package pieces does long work of a leader in pieces, so that no Step takes long.
//
// Work is long if it visits all jobs, all trackers, or all tasks or outputs of one of them. Its
// state is a [Work], which can go on where it has stopped. Works wait in a [List]. Each Step
// spends a fixed budget of entries on them: an entry is what a work counts, such as a job or a
// map output, and should cost about a microsecond. While works are left, the leader asks for a Tick
// at once. Its owner first passes the messages that are waiting.
//
// Works take turns: a work that is not done after its piece goes to the end of the list. So the
// order depends only on the events, and a work that begins again and again stops no other.
//
// Between two pieces other events are handled. So a work must not keep what they may change, such
// as an index in a list of jobs: it keeps numbers, and looks them up in each piece. If an event
// needs the result of a work, it calls [List.Finish] first.
//
// Works belong to a leader and end with it: the next leader begins from the facts.
//
// Nothing here is safe for concurrent use.
package pieces

import "slices"

// Work is long work that can stop after any entry. Pointers implement it: the same pointer is
// the same work.
type Work interface {
	// Advance handles at most budget entries. It returns how many, and whether all are handled.
	// It must make progress: if it handles none, it is done.
	Advance(budget int) (spent int, done bool)
}

// List has the works that are not done. Its zero value is empty.
type List struct{ works []Work }

// Add appends a work, unless it is in the list.
func (l *List) Add(w Work) {
	if !slices.Contains(l.works, w) {
		l.works = append(l.works, w)
	}
}

// Advance spends a budget of entries on the works, and returns how many entries they handled.
func (l *List) Advance(budget int) (spent int) {
	for spent < budget && len(l.works) > 0 {
		w := l.works[0]
		l.works = slices.Delete(l.works, 0, 1)
		n, done := w.Advance(budget - spent)
		spent += n
		if !done {
			if n == 0 {
				panic("pieces: a work handled no entry and is not done")
			}
			l.Add(w)
		}
	}
	return spent
}

// Finish handles the rest of a work at once, if it is in the list. It returns how many entries it handled.
func (l *List) Finish(w Work) (spent int) {
	i := slices.Index(l.works, w)
	if i < 0 {
		return 0
	}
	l.works = slices.Delete(l.works, i, i+1)
	const all = int(^uint(0) >> 1)
	spent, done := w.Advance(all)
	if !done {
		panic("pieces: a work is not done after all of its entries")
	}
	return spent
}

// Len counts the works that are not done.
func (l *List) Len() int { return len(l.works) }
