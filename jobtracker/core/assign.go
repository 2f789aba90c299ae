package core

import (
	"time"

	"github.com/quernmr/quern/wire"
)

// standing is where a job stands in the line of a phase, and what that depends on.
// The zero standing is outside of the line.
type standing struct {
	queued bool
	out    bool    // it refuses slots, and is not in the line
	lacks  float64 // what part of the slots that the plan gives it
	rank   int32   // in the plan
	number int32   // the job's
}

// compare puts the most under-allocated job first, relative to its target (FLEX,
// section 1): by slots alone the last task of a small job would wait for all of a
// large one. The plan's order decides between equals and among those that have what
// it gives them, so that no slot stays empty.
func (s *standing) compare(other *standing) int {
	switch {
	case s.lacks > other.lacks:
		return -1
	case s.lacks < other.lacks:
		return 1
	case s.rank != other.rank:
		return int(s.rank - other.rank)
	}
	return int(s.number - other.number)
}

// compare orders jobs by where they stand.
func (p *phase) compare(a, b *job) int {
	x, y := p.line.of(a), p.line.of(b)
	return x.compare(&y)
}

// standingOf places a job by the current plan. Jobs it does not name, before the
// first plan all, come after the others in order of arrival.
func (p *phase) standingOf(j *job) standing {
	far, covered := 0, 0 // slots set aside for it, and tasks that wait in queues
	if p.index == mapPhase {
		far, covered = j.far, j.covered[mapPhase]
	}
	if j.toLaunch(p.index) <= far+covered || !j.may[p.index] {
		return standing{}
	}
	x, _ := p.givenTo(j)
	under := max(x.slots-j.inSlots[p.index]-far, 0)
	return standing{
		queued: true, out: p.index == mapPhase && j.refuses,
		lacks: float64(under) / float64(max(x.slots, 1)), rank: int32(x.rank), number: int32(j.facts.N()),
	}
}

// toLaunch is how many tasks of a phase wait for a slot.
func (j *job) toLaunch(phase int) int {
	if phase == mapPhase {
		return j.pending.Len()
	}
	return j.ready + j.toGather()
}

// move has a job's places looked at before slots are given away. The lines are
// kept from Step to Step, so that jobs that wait cost nothing. One that has ended may be
// in a queue yet, and its seat another's.
func (l *Live) move(j *job) {
	if !j.moved && l.seats[j.seat] == j {
		j.moved = true
		l.moved = append(l.moved, j)
	}
}

// lineUp brings the moved jobs to their places.
func (l *Live) lineUp() {
	for i := range l.phases {
		if p := &l.phases[i]; p.uneven {
			p.uneven = false
			l.requeue(p)
		}
	}
	joined := 0
	for k := 0; k < len(l.moved); k++ {
		if k == joined && len(l.parties) > 0 {
			for ; joined < len(l.moved); joined++ {
				l.join(l.moved[joined])
			}
			l.admitAll() // which may move others
		}
		j := l.moved[k]
		j.moved = false
		for i := range j.may {
			j.may[i] = l.mayTake(j, i)
		}
		if !j.may[mapPhase] {
			l.askAgain(j) // it refuses nothing, and hides nobody who does
		}
		offered := j.may[mapPhase] && j.covered[mapPhase] < max(1, j.pending.Len())
		if offered && !j.offered {
			l.offerAll(j)
		}
		j.offered = offered
		for i := range l.phases {
			l.phases[i].place(j, l.now)
		}
	}
	l.moved = l.moved[:0]
}

// place brings a job to its place. The first to come asks for a plan.
func (p *phase) place(j *job, now time.Duration) {
	if p.line.place(j, p.standingOf(j)) && p.due == never {
		p.begun(now)
	}
}

// planned brings all in the order of a new plan.
func (p *phase) planned() { p.line.again(p.standingOf) }

// assign fills free slots.
func (l *Live) assign() {
	l.lineUp()
	l.assignMaps()
	l.assignReduces()
	if l.free[mapPhase].Len() > 0 && l.phases[mapPhase].line.Len() > 0 {
		l.assignMaps() // lost outputs are made again, see makeAgain
	}
}

// assignReduces fills the slots of trackers that are home to ready partitions,
// one each in turn. Where classical jobs have partitions to gather any slot will do.
func (l *Live) assignReduces() {
	l.launchGathered()
	l.lineUp()
	for given := true; given; {
		given = false
		among := &l.offers
		if l.someGather() {
			among = &l.free[reducePhase]
		}
		for i := range among.All() {
			given = l.giveReduce(l.byIndex[i]) || given
		}
	}
	l.moveHomes()
	l.lineUp()
}

func (l *Live) giveReduce(t *tracker) bool {
	if j, p := l.nextReduce(t); j != nil {
		l.launch(j, &j.reduces[p], t, wire.AttemptID{})
		l.lineUp()
		return true
	}
	p := &l.phases[reducePhase]
	for i := range p.line.Len() {
		j := p.line.at(i)
		if ready := t.ready[j]; ready != nil && ready.Len() > 0 {
			l.launch(j, &j.reduces[ready.Next(0)], t, wire.AttemptID{})
			l.lineUp()
			return true
		}
		if p := j.toGatherAt(t); p >= 0 {
			l.gatherAt(j, p, t)
			l.lineUp()
			return true
		}
	}
	return false
}
