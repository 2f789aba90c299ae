package core

import "slices"

// line is jobs in order, by their seats: numbers that are moved about without the
// garbage collector having to know.
type line struct {
	seats *[]*job // of all lines
	order []int32
}

func (s *line) Len() int { return len(s.order) }

func (s *line) at(i int) *job { return (*s.seats)[s.order[i]] }

// find is where a job stands, or would by an order.
func (s *line) find(j *job, compare func(a, b *job) int) int {
	i, _ := slices.BinarySearchFunc(s.order, j, func(seat int32, j *job) int { return compare((*s.seats)[seat], j) })
	return i
}

func (s *line) insert(i int, j *job) { s.order = slices.Insert(s.order, i, j.seat) }

func (s *line) remove(i int) { s.order = slices.Delete(s.order, i, i+1) }

func (s *line) sort(compare func(a, b *job) int) {
	slices.SortFunc(s.order, func(a, b int32) int { return compare((*s.seats)[a], (*s.seats)[b]) })
}

// jobs lists those in line.
func (s *line) jobs() []*job {
	all := make([]*job, len(s.order))
	for i := range all {
		all[i] = s.at(i)
	}
	return all
}

// sit gives a job a seat.
func (l *Live) sit(j *job) {
	i := slices.Index(l.seats, nil)
	if i < 0 {
		i = len(l.seats)
		l.seats = append(l.seats, nil)
	}
	l.seats[i], j.seat = j, int32(i)
}
