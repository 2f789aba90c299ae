package pieces

// Round is where a work is in a changing set of numbered things, all of which it visits after each
// request. If a request comes during a round, the round goes on to the last number, and then from
// the first one up to where it was at the last request.
type Round struct {
	next  int  // lowest number to visit
	stop  int  // in the second part: it visits the numbers below stop
	first bool // in the first part: it visits all numbers from next on
	begun bool
}

// Request makes the round visit everything that there is now.
func (r *Round) Request() {
	if !r.begun {
		*r = Round{begun: true}
	}
	r.first, r.stop = true, r.next
}

// Next returns the lowest number that is still to be visited.
func (r *Round) Next() int { return r.next }

// Visits reports whether a number from Next on is still to be visited, in this part of the round.
func (r *Round) Visits(n int) bool { return r.first || n < r.stop }

// Visited notes that a number, and all things below it, need no visit in this part of the round.
func (r *Round) Visited(n int) { r.next = n + 1 }

// End ends a part of the round, in which no thing is left to visit. It reports whether the round is over.
func (r *Round) End() bool {
	over := !r.first
	r.first, r.begun, r.next = false, !over, 0
	return over
}
