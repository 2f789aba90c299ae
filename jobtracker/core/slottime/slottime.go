// Package slottime sums up what the slots of a job did. Each end of an attempt costs O(1), however many there
// were.
//
// All times are Unix milliseconds on the leader's clock, or milliseconds. Everything here is deterministic and
// reads no clock. Nothing is safe for concurrent use.
//
// # Invariants
//
//	S1  The uses add up to the time for which the job held slots: for each attempt from Launched to its
//	    end, for each reservation from Reserved to Released.
//	S2  The parts of an attempt never exceed its time, whatever its tracker and its worker report.
package slottime

import (
	"time"

	"github.com/quernmr/quern/wire"
)

// use is an index of wire.SlotUses.
type use int

const (
	start use = iota
	read
	maps
	shuffle
	reduce
	commit
	failed
	killed
	speculative
	rerun
	lost
	gathering
	running
	inParts use = -1 // the job needed the attempt: its time has parts
)

// Sums is the slot time of a job. Its zero value is ready.
type Sums struct {
	uses     [len(wire.SlotUses)]sum
	running  span // attempts that run
	reserved span // slots that are reserved
}

// sum is the time of one use.
type sum struct {
	attempts int
	millis   int64
}

// span is what has begun and not ended: n minus began is the time since then.
type span struct {
	n     int
	began int64 // sum of the times at which each began
}

func (s *span) begin(at int64)        { s.n, s.began = s.n+1, s.began+at }
func (s *span) end(at int64)          { s.n, s.began = s.n-1, s.began-at }
func (s *span) until(now int64) int64 { return max(int64(s.n)*now-s.began, 0) }

// Launched says that an attempt got a slot, or was adopted.
func (s *Sums) Launched(at int64) { s.running.begin(at) }

// Vacated says that the attempt which was launched at a time has left its slot. Add follows.
func (s *Sums) Vacated(launched int64) { s.running.end(launched) }

// Reserved says that a slot is reserved while a partition is gathered.
func (s *Sums) Reserved(at int64) { s.reserved.begin(at) }

// Released says that the slot which was reserved at a time is not reserved any more.
func (s *Sums) Released(reserved, now int64) {
	s.reserved.end(reserved)
	s.add(gathering, max(now-reserved, 0), 1)
}

// Ended is an attempt that has ended.
type Ended struct {
	Kind   wire.Kind
	State  wire.AttemptState
	Held   int64 // time for which it had its slot
	Before int64 // part of Held before its tracker began

	Outrun bool // another attempt of its task has won
	Again  bool // its task had succeeded before
	Lost   bool // no tracker has reported its end

	Started, Read, Shuffled, Completed time.Duration // parts of the rest, as in wire.Result and wire.Reads
}

// Add adds an ended attempt.
func (s *Sums) Add(x *Ended) {
	if u := x.use(); u != inParts {
		s.add(u, x.Held, 1)
		return
	}
	rest := x.Held
	part := func(u use, millis int64) {
		millis = min(max(millis, 0), rest)
		rest -= millis
		if millis > 0 {
			s.add(u, millis, 1)
		}
	}
	part(start, x.Before+x.Started.Milliseconds())
	part(commit, x.Completed.Milliseconds())
	if x.Kind == wire.Map {
		part(read, x.Read.Milliseconds())
		s.add(maps, rest, 1)
		return
	}
	part(shuffle, x.Shuffled.Milliseconds())
	s.add(reduce, rest, 1)
}

// Remove takes back an attempt that counted as lost: its end is reported after all.
func (s *Sums) Remove(x *Ended) { s.add(x.use(), -x.Held, -1) }

// use returns what the whole time of an attempt went to.
func (x *Ended) use() use {
	switch {
	case x.Lost:
		return lost
	case x.State == wire.AttemptFailed:
		return failed
	case x.Outrun:
		return speculative
	case x.State == wire.AttemptKilled:
		return killed
	case x.Again:
		return rerun
	}
	return inParts
}

func (s *Sums) add(u use, millis int64, attempts int) {
	s.uses[u].millis += millis
	s.uses[u].attempts += attempts
}

// Status returns the sums at a time; nil: the job has had no slot. deferred is as in wire.SlotTime.
func (s *Sums) Status(now int64, deferred time.Duration) *wire.SlotTime {
	all := *s
	all.add(running, s.running.until(now), s.running.n)
	all.add(gathering, s.reserved.until(now), s.reserved.n)
	t := &wire.SlotTime{Deferred: deferred.Milliseconds()}
	for i, u := range all.uses {
		if u.attempts > 0 {
			t.Uses = append(t.Uses, wire.SlotTook{Use: wire.SlotUses[i], Attempts: u.attempts, Millis: u.millis})
			t.Total += u.millis
		}
	}
	if len(t.Uses) == 0 && t.Deferred == 0 {
		return nil
	}
	return t
}
