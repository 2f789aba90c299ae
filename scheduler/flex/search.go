package flex

import "slices"

// search improves orderings by moving one job or exchanging two: an iterated local search. It
// accepts moves of equal cost, because step costs have plateaus. After a while without
// improvement it restarts from the best ordering or from another start, with a few random moves.
// The budget limits the jobs packed. The random numbers are the same in every run.
type search struct {
	packer   *packer
	rngState uint64

	best  []int
	value float64
	total float64 // sum of the best ordering's ends
}

// kicks is the number of random moves at a restart.
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
	for s.packer.takeEffort(); budget > 0; budget -= s.packer.takeEffort() {
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
			value = s.packer.value(current)
			continue
		}
		copy(trial, current)
		s.move(trial)
		v := s.packer.value(trial)
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
		if value = v; v < s.value || v == s.value && s.packer.total() < s.total {
			s.value, s.total = v, s.packer.total()
			copy(s.best, current)
		}
	}
}

// move moves a random job to a random place, or exchanges two random jobs.
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

// randomBelow returns a random number from 0 to n-1, by splitmix64.
func (s *search) randomBelow(n int) int {
	s.rngState += 0x9e3779b97f4a7c15
	z := s.rngState
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return int(z % uint64(n))
}
