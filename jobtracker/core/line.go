package core

import (
	"slices"
	"sort"
)

// line is jobs in order, by where they stand. It holds numbers that lie together in
// memory, and are moved about without the garbage collector having to know.
type line struct {
	seats     *[]*job    // of all lines
	standings []standing // by seat
	order     []int32    // the seats of those in line
	out       []int32    // the seats of those who refuse slots, in the same order
}

func (s *line) Len() int { return len(s.order) }

func (s *line) at(i int) *job { return (*s.seats)[s.order[i]] }

// of is where a job stands.
func (s *line) of(j *job) standing {
	if int(j.seat) >= len(s.standings) {
		return standing{}
	}
	return s.standings[j.seat]
}

// place has a job stand where it is to. It says whether it has moved and is in line.
func (s *line) place(j *job, to standing) bool {
	at := s.of(j)
	if at == to {
		return false
	}
	old, list := s.list(at), s.list(to)
	switch {
	case old != list:
		if old != nil {
			i := s.find(*old, &at)
			*old = slices.Delete(*old, i, i+1)
		}
		if list != nil {
			*list = slices.Insert(*list, s.find(*list, &to), j.seat)
		}
	case list != nil:
		shift(*list, s.find(*list, &at), s.find(*list, &to))
	}
	if more := int(j.seat) + 1 - len(s.standings); more > 0 {
		s.standings = append(s.standings, make([]standing, more)...)
	}
	s.standings[j.seat] = to
	return list == &s.order
}

// shift moves what is at i in a list to before what is at k.
func shift(list []int32, i, k int) {
	seat := list[i]
	if i < k {
		k--
		copy(list[i:k], list[i+1:])
	} else {
		copy(list[k+1:i+1], list[k:])
	}
	list[k] = seat
}

// list is where those are that stand so, nil for nowhere.
func (s *line) list(x standing) *[]int32 {
	switch {
	case !x.queued:
		return nil
	case x.out:
		return &s.out
	}
	return &s.order
}

// find is where in a list one that stands so is, or would be.
func (s *line) find(list []int32, x *standing) int {
	return sort.Search(len(list), func(i int) bool { return s.standings[list[i]].compare(x) >= 0 })
}

// again has all of them stand somewhere else, each in its list: whether it is to leave
// that, place will see.
func (s *line) again(where func(*job) standing) {
	for _, list := range [][]int32{s.order, s.out} {
		for _, seat := range list {
			at := &s.standings[seat]
			to := where((*s.seats)[seat])
			at.lacks, at.rank = to.lacks, to.rank
		}
		slices.SortFunc(list, func(a, b int32) int { return s.standings[a].compare(&s.standings[b]) })
	}
}

// jobs are those of a list.
func (s *line) jobs(list []int32) []*job {
	all := make([]*job, len(list))
	for i, seat := range list {
		all[i] = (*s.seats)[seat]
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
