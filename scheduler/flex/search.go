package flex

import "slices"

// search improves orderings by moving one job or exchanging two: an iterated local search. It
// accepts moves of equal cost, because step costs have plateaus. After a while without
// improvement it restarts from the best ordering with a few random moves, or from another
// start. The budget bounds its packings; the random numbers are fixed.
type search struct {
	k    *packer
	seed uint64

	best  []int
	value float64
	total float64 // sum of the best ordering's ends
}

// kicks is the number of random moves of a new start.
const kicks = 3

func (s *search) run(starts [][]int, budget int) {
	n := len(s.best)
	if n < 2 {
		return
	}
	patience := 2 * n * n
	current := slices.Clone(s.best)
	value, stale, round := s.value, 0, 0
	trial := make([]int, n)
	for s.k.takeEffort(); budget > 0; budget -= s.k.takeEffort() {
		if stale > patience {
			round++
			stale = 0
			if round%3 == 0 {
				copy(current, starts[round/3%len(starts)])
			} else {
				copy(current, s.best)
			}
			for range kicks {
				s.move(current)
			}
			value = s.k.value(current)
			continue
		}
		copy(trial, current)
		s.move(trial)
		v := s.k.value(trial)
		if v > value {
			stale++
			continue
		}
		if v < value {
			stale = 0
		} else {
			stale++
		}
		current, trial = trial, current
		if value = v; v < s.value || v == s.value && s.k.total() < s.total {
			s.value, s.total = v, s.k.total()
			copy(s.best, current)
		}
	}
}

// move moves a job or exchanges two.
func (s *search) move(order []int) {
	a, b := s.randomBelow(len(order)), s.randomBelow(len(order)-1)
	if b >= a {
		b++
	}
	if s.randomBelow(2) == 0 {
		order[a], order[b] = order[b], order[a]
		return
	}
	j := order[a]
	if a < b {
		copy(order[a:b], order[a+1:b+1])
	} else {
		copy(order[b+1:a+1], order[b:a])
	}
	order[b] = j
}

// below returns a random number from 0 to n-1, by splitmix64.
func (s *search) randomBelow(n int) int {
	s.seed += 0x9e3779b97f4a7c15
	z := s.seed
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return int(z % uint64(n))
}
