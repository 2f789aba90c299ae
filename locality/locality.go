// Package locality decides whether a map task that has no local slot waits for one:
// delay scheduling. The rules are `none`, `fixed=3s`, `paper` (Dynamic Delay Scheduling,
// Algorithm 1) and `dynamic`, a better rule of ours.
//
// A [Rule] is a function of an [Offer]: what is known when a free slot is offered to a
// job that has no local task for it. The rest is the state that offers are made of, as
// values that the caller keeps: how long a job phase has been waiting ([Wait]), what
// remote reads cost ([Meter], [Average]), how long tasks take ([Pace]) and when a slot
// with a replica should be free ([Predict]). Beside the rules stand what they are about:
// which machine is in which rack ([Topology]), and how near data is ([Level]). The
// assignment of tasks to slots is not here.
//
// The caller's round, each time slots are free: take the jobs in the order in which they
// are owed slots; match local tasks of a job to *all* free slots before it is offered any
// that is remote; a job that refuses is passed over for the rest of the round.
//
// Invariants
//
//	L1  A task waits for locality no longer than its rule's limit in all, however often
//	    its job launches others: see Offer.Total. Its job may wait longer: each task
//	    that is offered a slot has a wait of its own.
//	L2  Only time counts in which a slot that the job was owed stands refused: not the
//	    time before its first refusal, nor the time after a round in which it refused
//	    none.
//	L3  A task of whose split no live node has a replica does not wait; so a job all of
//	    whose splits are elsewhere never does.
//	L4  Everything here is a function of values: no clock, no I/O. Times are on the
//	    caller's monotonic clock; where that stands still, waits do not grow.
//
// Everything takes O(1), Predict O(nodes).
package locality

import (
	"fmt"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Kind is a rule without its parameters.
type Kind uint8

const (
	None    Kind = iota // never wait
	Fixed               // wait as long as configured
	Paper               // wait as long as remote reads took of late, local ones as 0
	Dynamic             // wait while it is worth it
)

// Rule is a delay rule. The zero Rule is none.
type Rule struct {
	Kind  Kind
	Delay time.Duration // of Fixed
}

// MaxDelay is the longest fixed delay: waiting longer is a typing error.
const MaxDelay = 24 * time.Hour

// Start is the wait of rules that measure, before anything is measured: 3 seconds, as in
// Algorithm 1, line 2.
const Start = 3 * time.Second

// ParseRule reads "none", "fixed=3s", "paper" or "dynamic".
func ParseRule(text string) (Rule, error) {
	name, delay, given := strings.Cut(text, "=")
	if name == "fixed" && given {
		d, err := time.ParseDuration(delay)
		switch {
		case err != nil:
			return Rule{}, fmt.Errorf("delay %q: want a duration such as fixed=3s", text)
		case d < 0 || d > MaxDelay:
			return Rule{}, fmt.Errorf("delay %q: want at least 0 and at most %v", text, MaxDelay)
		}
		return Rule{Fixed, d}, nil
	}
	for _, kind := range []Kind{None, Paper, Dynamic} {
		if text == (Rule{Kind: kind}).String() {
			return Rule{Kind: kind}, nil
		}
	}
	return Rule{}, fmt.Errorf("delay %q: want none, fixed=DURATION, paper or dynamic", text)
}

// String is what ParseRule reads.
func (r Rule) String() string {
	switch r.Kind {
	case None:
		return "none"
	case Fixed:
		return "fixed=" + r.Delay.String()
	case Paper:
		return "paper"
	case Dynamic:
		return "dynamic"
	}
	return fmt.Sprintf("delay(%d)", uint8(r.Kind))
}

// Offer is a slot that is free now and a task of the job that it is offered to. The job
// has no task that is local there. Stranded tasks should be offered before others, and to
// Dynamic the one with the longest prediction: the others are better off waiting.
type Offer struct {
	Stranded bool          // no live node has a replica of the task's split
	Spell    time.Duration // how long the job has been refusing: Wait.Spell
	Total    time.Duration // how long this task has been refused slots in all: Wait.Total since it first was

	Average time.Duration // for Paper: the job phase's Average

	// For Dynamic.
	Overhead  time.Duration // what reading remotely should cost the task: Meter.Wait
	Contended bool          // another job has a local task for the slot
	Local     time.Duration // until a slot on a replica's node takes the task: Predict
	Predicted bool          // Local is known
}

// Decision is a rule's answer.
type Decision struct {
	Launch bool          // now, remotely
	Again  time.Duration // else: ask again after this, if nothing has happened before
}

// A local slot must be due within two thirds of what reading remotely costs to be worth
// an idle slot: predictions miss by as much as tasks scatter, and who waits in vain pays
// twice. Without the margin one wave of tasks that take about as long as reading
// remotely costs is 20 % slower than without waiting; a half to four fifths do as well.
const patience, patienceDivisor = 2, 3

// Decide applies the rule. A wait of 0 never waits, also at the instant of the launch
// before.
//
// Dynamic waits up to the overhead, which bounds a task's loss by what it could have
// saved, and lets others use the slot meanwhile. Where the slot would idle it looks
// ahead: it waits only for a local slot that should be free well before reading remotely
// has cost as much.
func (r Rule) Decide(o Offer) Decision {
	limit := r.Limit(o)
	waited := max(o.Spell, o.Total)
	hopeless := r.Kind == Dynamic && !o.Contended && o.Predicted && o.Local > limit/patienceDivisor*patience
	if o.Stranded || hopeless || waited >= limit {
		return Decision{Launch: true}
	}
	return Decision{Again: limit - waited}
}

// Patience is how long a task waits in all for a slot at a level, by a rule that needs
// no measurements: none or fixed. It is the same for all levels; of the slots that are
// free when it ends, one in the rack comes first.
func (r Rule) Patience(wire.Level) time.Duration { return r.Limit(Offer{}) }

// Limit is how long a task waits at most, in all.
func (r Rule) Limit(o Offer) time.Duration {
	limit := time.Duration(0)
	switch r.Kind {
	case Fixed:
		limit = r.Delay
	case Paper:
		limit = o.Average
	case Dynamic:
		limit = o.Overhead
	}
	return min(max(limit, 0), MaxDelay)
}
