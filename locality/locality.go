// Package locality decides whether a map task without a local slot waits for one: delay
// scheduling. The rules are `none`, `fixed=3s`, `paper` (Dynamic Delay Scheduling, Algorithm 1)
// and `dynamic`, our own rule.
//
// A [Rule] is a function of an [Offer]: a free slot for a job without a local task there. The
// caller computes an offer from how long a job phase has been deferring ([Wait]), the cost of
// remote reads ([Meter], [Average]), the duration of tasks ([Pace]) and the predicted time until
// a slot on a node with a replica is free ([Predict]). The package also has the racks of
// machines ([Topology]) and the distance of data ([Level]). It does not assign tasks to slots.
//
// Whenever slots are free, the caller takes the jobs in order of precedence. It matches a job's
// local tasks to *all* free slots before it offers a remote one. A job that defers is skipped
// for the rest of the round.
//
// Invariants
//
//	L1  A task waits for locality no longer than its rule's limit in total, however often
//	    its job launches other tasks: see Offer.Total. Its job may wait longer, because each
//	    offered task has a wait of its own.
//	L2  Only time between a deferral and a round in which the job gets a slot and defers
//	    none counts as waiting.
//	L3  A task without a live replica of its split does not wait. So a job never waits if
//	    all its splits are elsewhere.
//	L4  Everything here is a function of values: no clock, no I/O. Times are on the caller's
//	    monotonic clock; while that stops, waits do not grow.
//
// Everything takes O(1), Predict O(nodes).
package locality

import (
	"fmt"
	"strings"
	"time"

	"github.com/quernmr/quern/internal/spelling"
	"github.com/quernmr/quern/wire"
)

// Kind is a delay rule without its parameters.
type Kind uint8

const (
	None    Kind = iota // never wait
	Fixed               // wait for the configured time
	Paper               // wait for the average of recent remote read times; a local read counts as 0
	Dynamic             // wait as long as this should save time
)

// Rule is a delay rule. The zero Rule is none.
type Rule struct {
	Kind  Kind
	Delay time.Duration // of Fixed
}

// MaxDelay is the longest delay. A longer fixed one must be a typing error.
const MaxDelay = 24 * time.Hour

// Start is the wait before anything is measured: 3 seconds, as in Algorithm 1, line 2.
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
	return Rule{}, fmt.Errorf("delay %q: want none, fixed=DURATION, paper or dynamic%s", text, spelling.DidYouMean("", text, RuleNames()))
}

// RuleNames lists the rules, fixed with its default delay.
func RuleNames() []string {
	var names []string
	for kind := None; kind <= Dynamic; kind++ {
		names = append(names, Rule{Kind: kind, Delay: Start}.String())
	}
	return names
}

// String returns the text that ParseRule reads.
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

// Offer is a free slot and a task of a job without local tasks there. Callers offer
// stranded tasks first. To Dynamic they then offer the task with the longest predicted wait:
// other tasks gain more by waiting.
type Offer struct {
	Stranded bool          // no live node has a replica of the task's split
	Spell    time.Duration // how long the job has been deferring: Wait.Spell
	Total    time.Duration // how long this task has been deferred: the growth of Wait.Total since its first deferral

	Average time.Duration // for Paper: the job phase's Average

	// For Dynamic.
	Overhead  time.Duration // estimated extra time of a remote read: Meter.Wait
	Contended bool          // another job has a local task for the slot
	Local     time.Duration // time until a slot on a replica's node takes the task: Predict
	Predicted bool          // Local is known
}

// Decision is a rule's answer.
type Decision struct {
	Launch bool          // launch the task now, remotely
	Again  time.Duration // otherwise: time to the next decision, unless an event comes first
}

// Dynamic leaves a slot idle only if a local slot should be free within 2/3 of the cost of a
// remote read. The margin is for errors of the prediction: a task that waits in vain pays twice.
// Without it, one wave of tasks as long as that cost is 20 % slower than without waiting. Values
// from 1/2 to 4/5 do as well.
const patience, patienceDivisor = 2, 3

// Decide applies the rule. With a limit of 0 the task never waits.
//
// Under Dynamic a task waits at most the overhead, so it loses no more than it can save. Other
// jobs use the slot meanwhile. If no other job can, the task waits only if a local slot should be
// free well before that limit.
func (r Rule) Decide(o Offer) Decision {
	limit := r.Limit(o)
	waited := max(o.Spell, o.Total)
	hopeless := r.Kind == Dynamic && !o.Contended && o.Predicted && o.Local > limit/patienceDivisor*patience
	if o.Stranded || hopeless || waited >= limit {
		return Decision{Launch: true}
	}
	return Decision{Again: limit - waited}
}

// Patience returns how long a task waits in total for a slot at a level, under a rule without
// measurements: none or fixed. It is the same for all levels. After it, free slots in the rack
// come first.
func (r Rule) Patience(wire.Level) time.Duration { return r.Limit(Offer{}) }

// Limit returns a task's longest total wait.
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
