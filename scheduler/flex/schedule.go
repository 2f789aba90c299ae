package flex

import (
	"cmp"
	"slices"
)

// Piece is a job's constant allocation for an interval.
type Piece struct {
	Job      int
	Slots    float64 // a whole number except in FAIR and deadline-paced schedules
	From, To float64 // seconds
}

// Schedule lists the allocations until every job has ended. A FAIR or deadline-paced schedule of
// more than 200 jobs has only the first interval.
type Schedule struct {
	Pieces []Piece   // by job, then by time; none without slots
	Ends   []float64 // seconds, by job
	Order  []int     // jobs by precedence
}

// recorder collects changes of allocations. The nil recorder ignores them.
type recorder struct {
	pieces    []Piece
	open      []Piece // by job
	firstOnly bool    // record only the first interval
	closed    bool    // the first interval is over
}

// maxFullJobs is the largest number of jobs for which a schedule with divisible slots is complete.
// All its allocations change at every end, so it has O(J²) pieces.
const maxFullJobs = 200

func newRecorder(jobs int) *recorder {
	r := &recorder{open: make([]Piece, jobs)}
	for j := range r.open {
		r.open[j].Job = j
	}
	return r
}

// newFluidRecorder returns a recorder for schedules with divisible slots.
func newFluidRecorder(jobs int) *recorder {
	r := newRecorder(jobs)
	r.firstOnly = jobs > maxFullJobs
	return r
}

// isClosed reports whether the recorder ignores further changes.
func (r *recorder) isClosed() bool { return r == nil || r.closed }

// set changes the allocation of job j from now on. The compiler inlines it: searches, which
// record nothing, call it often.
func (r *recorder) set(j int, slots, now float64) {
	if r != nil {
		r.change(j, slots, now)
	}
}

func (r *recorder) change(j int, slots, now float64) {
	if r.closed || r.open[j].Slots == slots {
		return
	}
	if r.firstOnly && now > 0 {
		r.closed = true
		for _, piece := range r.open {
			if piece.To = now; piece.Slots > 0 {
				r.pieces = append(r.pieces, piece)
			}
		}
		return
	}
	piece := r.open[j]
	if piece.To = now; piece.Slots > 0 && piece.To > piece.From {
		r.pieces = append(r.pieces, piece)
	}
	r.open[j].Slots, r.open[j].From = slots, now
}

func (r *recorder) schedule(order []int, ends []float64) *Schedule {
	slices.SortFunc(r.pieces, func(a, b Piece) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.From, b.From))
	})
	return &Schedule{Pieces: r.pieces, Ends: slices.Clone(ends), Order: slices.Clone(order)}
}

// firstSlots returns each job's slots in the schedule's first interval.
func (s *Schedule) firstSlots() []float64 {
	slots := make([]float64, len(s.Ends))
	for _, piece := range s.Pieces {
		if piece.From == 0 {
			slots[piece.Job] = piece.Slots
		}
	}
	return slots
}

// event is a time at which something happens to a job.
type event struct {
	at  float64
	job int
}

func (a event) before(b event) bool { return a.at < b.at || a.at == b.at && a.job < b.job }

// events is a heap, the earliest first.
type events []event

func (h *events) push(e event) {
	*h = append(*h, e)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s[i].before(s[up]) {
			break
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (h *events) pop() event {
	s := *h
	top, last := s[0], len(s)-1
	s[0] = s[last]
	s = s[:last]
	for i := 0; ; {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && s[down+1].before(s[down]) {
			down++
		}
		if !s[down].before(s[i]) {
			break
		}
		s[i], s[down] = s[down], s[i]
		i = down
	}
	*h = s
	return top
}
