package forecast

import (
	"cmp"
	"slices"
)

// slotTimes says when the slots of a phase become free, soonest first.
type slotTimes []slotsAt

// slotsAt is a number of slots that become free at a time, in seconds from now.
type slotsAt struct {
	at float64
	n  int
}

// maxSlotTimes bounds the length of slotTimes: of more, neighbors share their mean.
const maxSlotTimes = 128

// newSlotTimes makes the times of a phase's slots, given the running tasks of all jobs.
func newSlotTimes(slots, phase int, jobs []Job, f Forecast) slotTimes {
	var s slotTimes
	for i := range jobs {
		p, t := &jobs[i].Phases[phase], f[i].Tasks[phase].Time
		if !p.hasAges() {
			s = append(s, slotsAt{t.Seconds() / 2, p.Running}) // on average
		}
		for _, age := range p.Ages {
			s = append(s, slotsAt{Rest(t, age).Seconds(), 1})
		}
		slots -= p.Running
	}
	return s.with(slotsAt{0, max(0, slots)})
}

// with adds slots.
func (s slotTimes) with(more ...slotsAt) slotTimes {
	s = append(s, more...)
	slices.SortFunc(s, func(a, b slotsAt) int { return cmp.Compare(a.at, b.at) })
	for len(s) > maxSlotTimes {
		half := s[:0]
		for pair := range slices.Chunk(s, 2) {
			x := pair[0]
			if len(pair) == 2 && x.n+pair[1].n > 0 {
				x.n += pair[1].n
				x.at += (pair[1].at - x.at) * float64(pair[1].n) / float64(x.n)
			}
			half = append(half, x)
		}
		s = half
	}
	return s
}

// count counts the slots.
func (s slotTimes) count() (n int) {
	for _, x := range s {
		n += x.n
	}
	return n
}

// take removes the slots that are free first.
func (s *slotTimes) take(n int) (taken slotTimes) {
	for n > 0 && len(*s) > 0 {
		first := &(*s)[0]
		x := slotsAt{first.at, min(n, first.n)}
		taken, n = append(taken, x), n-x.n
		if first.n -= x.n; first.n == 0 {
			*s = (*s)[1:]
		}
	}
	return taken
}

// begin gives each of some tasks the slot that is free first. They can begin after some seconds, and take some. It
// returns the mean and the variance of the times at which they begin.
func (s *slotTimes) begin(tasks int, after, each float64) (mean, variance float64) {
	taken := s.take(tasks)
	var sum, squares float64
	for i := range taken {
		x := &taken[i]
		at := max(after, x.at)
		sum, squares = sum+float64(x.n)*at, squares+float64(x.n)*at*at
		x.at = at + each
	}
	*s = s.with(taken...)
	mean = sum / float64(tasks)
	return mean, max(0, squares/float64(tasks)-mean*mean)
}

// fill gives work to the slots that are free first, as if tasks could be divided. It returns when the work ends, and
// how many slots it uses.
func (s *slotTimes) fill(work, after float64) (end float64, used int) {
	end = after
	for _, x := range *s {
		at := max(after, x.at)
		if free := float64(used) * (at - end); used > 0 && free >= work {
			break
		} else {
			work -= free
		}
		end, used = at, used+x.n
	}
	end += work / float64(max(1, used))
	s.take(used)
	*s = s.with(slotsAt{end, used})
	return end, used
}
