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
	visited    int // in this Step, see charge
	placed     int // jobs in this Step for which placeHomes has looked at all trackers
	touching   jobRound
	recovering jobRound
	recording  [2]planRecording      // by phase
	drops      map[int32]*outputDrop // by place
	later      laterTouches
	holding    *holding // nil: none is under way

	stepAgain   bool // a work has ended, and what follows from that was not done in this Step
	needChanges int  // how often outputs of a job became needed again
}

func (l *leader) makeWorks() {
	l.works.budget = l.c.budget
	l.works.touching = jobRound{l: l, visit: l.touch, cost: l.advanceCost}
	l.works.recovering = jobRound{l: l, visit: l.endRecovery, cost: l.recoveryCost}
	l.works.later.l = l
	l.works.drops = make(map[int32]*outputDrop)
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

// advanceCost is what it costs to touch and advance a job, in entries.
func (l *leader) advanceCost(j *job) int {
	if j.partitions.homeless.Len() > 0 && !j.spec.Classical {
		return 2 + l.placingCost()
	}
	return 2
}

// placingCost is what it costs to look for homes among all trackers, in entries.
func (l *leader) placingCost() int { return len(l.fleet.byIndex) / 8 }

// laterTouches is the work of touching jobs for which a Step had no time.
type laterTouches struct {
	l    *leader
	jobs []*job
}

// touchLater touches a job in the next Steps.
func (l *leader) touchLater(j *job) {
	w := &l.works.later
	if !j.touchedLater {
		j.touchedLater = true
		w.jobs = append(w.jobs, j)
	}
	l.works.Add(w)
}

// Advance implements pieces.Work.
func (w *laterTouches) Advance(budget int) (spent int, done bool) {
	for ; spent < budget && len(w.jobs) > 0; w.jobs = w.jobs[1:] {
		j := w.jobs[0]
		j.touchedLater = false
		w.l.touch(j)
		spent += w.l.advanceCost(j)
	}
	return spent, len(w.jobs) == 0
}

// charge counts entries that were visited at once. The works of this Step get what is left of the budget.
// All loops over jobs, outputs, or what a message lists are charged; one over all trackers is short.
func (l *leader) charge(entries int) { l.works.visited += entries }

// advanceWorks does a piece of the works.
func (l *leader) advanceWorks() { l.charge(l.works.Advance(l.works.budget - l.works.visited)) }

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
