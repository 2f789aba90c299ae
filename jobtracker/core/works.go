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
	budget     int // entries in each Step
	charged    int // entries that the event of this Step has cost, see charge
	visited    int // in this Step: jobs advanced, and entries of works
	touching   jobRound
	recovering jobRound
	recording  [2]planRecording       // by phase
	drops      map[string]*outputDrop // by name of the tracker
}

func (l *leader) makeWorks() {
	l.works.budget = l.c.budget
	l.works.touching = jobRound{l: l, visit: l.touch, cost: l.advanceCost}
	l.works.recovering = jobRound{l: l, visit: l.endRecovery, cost: l.recoveryCost}
	l.works.drops = make(map[string]*outputDrop)
	l.makeForecasting()
	for phase := range l.works.recording {
		l.makePlanRecording(phase)
	}
}

// jobRound is the work of visiting all jobs, in pieces.
type jobRound struct {
	l     *leader
	visit func(*job)     // must not add or remove jobs
	cost  func(*job) int // in entries
	round pieces.Round
}

func oneEntry(*job) int { return 1 }

// advanceCost is what it costs to touch and advance a job, in entries: it may look for homes among all
// trackers.
func (l *leader) advanceCost(j *job) int {
	if j.partitions.homeless.Len() > 0 && !j.spec.Classical {
		return 2 + len(l.fleet.byIndex)/8
	}
	return 2
}

// charge makes the works of this Step smaller: its event has visited so many entries at once.
func (l *leader) charge(entries int) { l.works.charged += entries }

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
			cost := r.cost(order[i])
			if spent > 0 && spent+cost > budget {
				return spent, false
			}
			spent += cost
			r.round.Visited(order[i].facts.N())
			r.visit(order[i])
		}
		if r.round.End() {
			return spent, true
		}
	}
}

// recoveryCost is what endRecovery costs, in entries, with the advance that follows.
func (l *leader) recoveryCost(j *job) int {
	if !j.recovering {
		return 1
	}
	return l.advanceCost(j) + (len(j.maps)+len(j.reduces))/8
}

// touchAll touches all jobs after a change that any of them may wait for, such as a new
// tracker.
func (l *leader) touchAll() { l.visitJobs(&l.works.touching) }
