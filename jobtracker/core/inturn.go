package core

// inTurn is requests that become facts one after the other: the first is proposed, the
// others wait. An entry of an earlier leader may come before the first one's, which is then
// proposed again, on top of that.
type inTurn[R request] struct{ waiting []R }

// ask takes a request in, and proposes it if no other waits.
func (q *inTurn[R]) ask(r R, propose func(R)) {
	q.waiting = append(q.waiting, r)
	if len(q.waiting) == 1 {
		propose(r)
	}
}

// applied follows an entry of the kind that the requests ask for: the first is answered if
// that is what the entry says. Then the next is proposed.
func (q *inTurn[R]) applied(c *Core, says func(R) bool, propose func(R)) {
	if len(q.waiting) > 0 && says(q.waiting[0]) {
		c.emit(Reply{Token: q.waiting[0].token()})
		q.waiting = q.waiting[1:]
	}
	if len(q.waiting) > 0 {
		propose(q.waiting[0])
	}
}

// tokens are those of the requests that wait.
func (q *inTurn[R]) tokens() (all []Token) {
	for _, r := range q.waiting {
		all = append(all, r.token())
	}
	return all
}
