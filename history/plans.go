package history

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Planned is the job's part of the plan for one phase, in force until the next Planned of
// that phase. Together with the attempts and the other jobs' plans, it explains the
// assignment of slots.
type Planned struct {
	At         int64           `msgpack:"At"` // when it came into force, Unix milliseconds
	Phase      wire.Kind       `msgpack:"Phase"`
	Scheduling wire.Scheduling `msgpack:"Scheduling"`
	Target     int             `msgpack:"Target"` // slots
	Place      int             `msgpack:"Place"`  // in the order of precedence, from 1; 0: the job is not in the plan, or there is no plan
	Places     int             `msgpack:"Of"`     // number of jobs in that order
	End        int64           `msgpack:"End"`    // predicted end in Unix milliseconds; 0: not known
	Queues     []Queued        `msgpack:"Queues"` // the job's tasks in trackers' queues, for plans with queues
	Share      float64         `msgpack:"Share"`  // part of the fetch bandwidth, as sent to trackers; only for maps
	ShareRank  int             `msgpack:"Turn"`   // place in the order of the shares, from 1; 0: the job has no share
}

// Queued is a number of the job's tasks in the queue of a tracker.
type Queued struct {
	Tracker string `msgpack:"Tracker"`
	After   int    `msgpack:"After"` // tasks before these in the queue, of all jobs
	Tasks   int    `msgpack:"Tasks"`
}

// Same reports whether two plans are equal for the job, except for its predicted end.
func (p *Planned) Same(other *Planned) bool {
	return p.Scheduling == other.Scheduling && p.Target == other.Target && p.Place == other.Place && p.Places == other.Places &&
		p.Share == other.Share && p.ShareRank == other.ShareRank && slices.Equal(p.Queues, other.Queues)
}

// MaxPlanLog limits a PlanLog's bytes. A change of slots and place takes about six.
const MaxPlanLog = 1 << 20

// PlanLog is a compact encoding of one job's Planned, oldest first. The zero PlanLog is
// empty.
//
//	a log      Planned …
//	a Planned  milliseconds since the previous one (first: since 1970), flags, then the
//	           fields that differ from the previous one of its phase:
//	           scheduling: three texts | target | place, places | end, as a difference |
//	           queues: count, then each tracker, after, tasks | share in millionths, rank
//	a text     length, bytes
//	a tracker  number of its name among the names so far, from 1; or 0 and a new name
//
// Numbers are unsigned varints; the difference of ends is signed.
type PlanLog struct {
	LostBefore int64 // entries before this time were dropped, because there were too many
	bytes      []byte
	state      planState
}

// planState is the state after the Planned that was last encoded or decoded.
type planState struct {
	lastAt   int64
	last     [2]Planned
	trackers []string
	numbers  map[string]int // numbers of trackers, from 1; for writers
}

// The flags of a Planned.
const (
	planReduces = 1 << iota
	planScheduling
	planTarget
	planPlace
	planEnd
	planQueues
	planShare
	planFlags
)

func planPhase(k wire.Kind) int {
	if k == wire.Reduce {
		return 1
	}
	return 0
}

// Last returns the last Planned of a phase, or the zero Planned.
func (l *PlanLog) Last(phase wire.Kind) *Planned { return &l.state.last[planPhase(phase)] }

// Bytes returns the encoded log.
func (l *PlanLog) Bytes() []byte { return l.bytes }

// Add appends a Planned. An earlier At than the previous one is raised to it. If the log
// gets too large, Add drops the older half.
func (l *PlanLog) Add(p Planned) {
	p.At, p.Share = max(p.At, l.state.lastAt), math.Round(min(max(p.Share, 0), 1)*shareUnit)/shareUnit
	before := len(l.bytes)
	l.bytes = l.state.add(l.bytes, &p)
	if len(l.bytes) <= MaxPlanLog {
		return
	}
	all, err := ParsePlans(l.bytes[:before])
	if err != nil {
		panic(fmt.Sprintf("history: damaged log of plans in memory: %v", err))
	}
	all = append(all, p)
	newer := all[len(all)/2:]
	l.bytes, l.state, l.LostBefore = nil, planState{}, newer[0].At
	for _, phase := range []wire.Kind{wire.Map, wire.Reduce} { // keep each phase's plan in force at the new start
		for i := len(all) - len(newer) - 1; i >= 0; i-- {
			if all[i].Phase == phase && newer[0].Phase != phase {
				all[i].At = l.LostBefore
				l.bytes = l.state.add(l.bytes, &all[i])
				break
			}
		}
	}
	for i := range newer {
		l.bytes = l.state.add(l.bytes, &newer[i])
	}
	if len(l.bytes) > MaxPlanLog { // the last Planned alone has thousands of queues
		l.bytes, l.state, l.LostBefore = nil, planState{}, p.At+1
	}
}

// changed returns the flags for the fields that p changes.
func (s *planState) changed(p *Planned) (flags int) {
	phase := planPhase(p.Phase)
	last := &s.last[phase]
	for _, f := range []struct {
		flag int
		set  bool
	}{
		{planReduces, phase == 1},
		{planScheduling, p.Scheduling != last.Scheduling},
		{planTarget, p.Target != last.Target},
		{planPlace, p.Place != last.Place || p.Places != last.Places},
		{planEnd, p.End != last.End},
		{planQueues, !slices.Equal(p.Queues, last.Queues)},
		{planShare, p.Share != last.Share || p.ShareRank != last.ShareRank},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	return flags
}

// add encodes the changes of p.
func (s *planState) add(to []byte, p *Planned) []byte {
	flags, last := s.changed(p), &s.last[planPhase(p.Phase)]
	number := func(n int) { to = binary.AppendUvarint(to, uint64(max(n, 0))) }
	text := func(t string) {
		number(len(t))
		to = append(to, t...)
	}
	to = binary.AppendUvarint(to, uint64(p.At-s.lastAt))
	to = append(to, byte(flags))
	if flags&planScheduling != 0 {
		text(p.Scheduling.Scheduler)
		text(p.Scheduling.Metric)
		text(p.Scheduling.Delay)
	}
	if flags&planTarget != 0 {
		number(p.Target)
	}
	if flags&planPlace != 0 {
		number(p.Place)
		number(p.Places)
	}
	if flags&planEnd != 0 {
		to = binary.AppendVarint(to, p.End-last.End)
	}
	if flags&planQueues != 0 {
		number(len(p.Queues))
		for _, q := range p.Queues {
			index, found := s.numbers[q.Tracker]
			number(index)
			if !found {
				text(q.Tracker)
				s.addTracker(q.Tracker)
			}
			number(q.After)
			number(q.Tasks)
		}
	}
	if flags&planShare != 0 {
		number(int(math.Round(p.Share * shareUnit)))
		number(p.ShareRank)
	}
	s.lastAt, *last = p.At, *p
	return to
}

// shareUnit is the resolution of encoded shares.
const shareUnit = 1e6

func (s *planState) addTracker(tracker string) {
	s.trackers = append(s.trackers, tracker)
	if s.numbers == nil {
		s.numbers = make(map[string]int)
	}
	s.numbers[tracker] = len(s.trackers)
}

// ParsePlans decodes a PlanLog.
func ParsePlans(log []byte) ([]Planned, error) {
	if len(log) > MaxPlanLog {
		return nil, fmt.Errorf("%w: a log of plans of %d bytes, at most %d", ErrNotHistory, len(log), MaxPlanLog)
	}
	r := &planReader{rest: log}
	var s planState
	var all []Planned
	for len(r.rest) > 0 && !r.invalid {
		all = append(all, r.next(&s))
	}
	if r.invalid {
		return nil, fmt.Errorf("%w: its log of plans is damaged after %d entries", ErrNotHistory, len(all)-1)
	}
	return all, nil
}

// planReader reads numbers and texts until one is missing or invalid.
type planReader struct {
	rest    []byte
	invalid bool
}

func (r *planReader) fail() { r.rest, r.invalid = nil, true }

func (r *planReader) number() int {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > math.MaxInt64 {
		r.fail()
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

func (r *planReader) difference() int64 {
	n, size := binary.Varint(r.rest)
	if size <= 0 {
		r.fail()
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *planReader) text() string { return string(r.bytes()) }

func (r *planReader) bytes() []byte {
	n := r.number()
	if n > len(r.rest) {
		r.fail()
		return nil
	}
	data := r.rest[:n]
	r.rest = r.rest[n:]
	return data
}

// next decodes the Planned that follows the state s.
func (r *planReader) next(s *planState) Planned {
	s.lastAt += int64(r.number())
	if s.lastAt < 0 || len(r.rest) == 0 || r.rest[0] >= planFlags {
		r.fail()
		return Planned{}
	}
	flags := int(r.rest[0])
	r.rest = r.rest[1:]
	phase, kind := 0, wire.Map
	if flags&planReduces != 0 {
		phase, kind = 1, wire.Reduce
	}
	p := s.last[phase]
	p.At, p.Phase = s.lastAt, kind
	if flags&planScheduling != 0 {
		p.Scheduling = wire.Scheduling{Scheduler: r.text(), Metric: r.text(), Delay: r.text()}
	}
	if flags&planTarget != 0 {
		p.Target = r.number()
	}
	if flags&planPlace != 0 {
		p.Place, p.Places = r.number(), r.number()
	}
	if flags&planEnd != 0 {
		p.End += r.difference()
	}
	if flags&planQueues != 0 {
		p.Queues = r.queues(s)
	}
	if flags&planShare != 0 {
		share := r.number()
		if share > shareUnit {
			r.fail()
		}
		p.Share, p.ShareRank = float64(share)/shareUnit, r.number()
	}
	s.last[phase] = p
	return p
}

func (r *planReader) queues(s *planState) []Queued {
	n := r.number()
	if n > len(r.rest) { // each has at least three bytes
		r.fail()
		return nil
	}
	var all []Queued
	for range n {
		var q Queued
		switch index := r.number(); {
		case index > len(s.trackers):
			r.fail()
		case index > 0:
			q.Tracker = s.trackers[index-1]
		default:
			q.Tracker = r.text()
			s.addTracker(q.Tracker)
		}
		q.After, q.Tasks = r.number(), r.number()
		if r.invalid {
			return nil
		}
		all = append(all, q)
	}
	return all
}
