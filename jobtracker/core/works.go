package core

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/jobtracker/core/pieces"
)

// stepBudget is how many entries of long works a Step handles, see package pieces.
const stepBudget = 2048

// longWorks has the works that finishStep does in pieces.
type longWorks struct {
	pieces.List
	budget   int // entries in each Step
	visited  int // in this Step: jobs advanced, and entries of works
	touching jobRound
}

func (l *leader) makeWorks() {
	l.works.budget = stepBudget
	l.works.touching = jobRound{l: l, visit: l.touch}
}

// jobRound is the work of visiting all jobs, in pieces.
type jobRound struct {
	l     *leader
	visit func(*job) // must not add or remove jobs
	round pieces.Round
}

// visitJobs makes a round visit all jobs that there are now.
func (l *leader) visitJobs(r *jobRound) {
	r.round.Request()
	l.works.Add(r)
}

// Advance implements pieces.Work.
func (r *jobRound) Advance(budget int) (spent int, done bool) {
	for {
		order := r.l.order
		i, _ := slices.BinarySearchFunc(order, r.round.Next(), func(j *job, n int) int { return cmp.Compare(j.facts.N(), n) })
		for ; i < len(order) && r.round.Visits(order[i].facts.N()); i++ {
			if spent == budget {
				return spent, false
			}
			spent++
			r.round.Visited(order[i].facts.N())
			r.visit(order[i])
		}
		if r.round.End() {
			return spent, true
		}
	}
}

// touchAll touches all jobs after a change that any of them may wait for, such as a new
// tracker.
func (l *leader) touchAll() { l.visitJobs(&l.works.touching) }
