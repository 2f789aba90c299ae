package sim

import (
	"cmp"
	"errors"
	iofs "io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/wire"
)

// histories is the use of slots according to the histories of all jobs.
type histories struct{ spans map[slotGroup][]span }

// slotGroup is the slots of a kind on a tracker during one leader's term.
type slotGroup struct {
	tracker string
	kind    wire.Kind
	epoch   int
}

// span is an attempt's time in a slot, in milliseconds of the leader's clock.
type span struct {
	from, to int64
	attempt  wire.AttemptID
}

// checkHistory checks that a job's history has its end, or that the job says why it has no
// history.
func (h *histories) checkHistory(w *world, s wire.JobStatus) {
	r, err := history.Find(w.fs, clusterStaging, s.ID)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		if !slices.ContainsFunc(s.Troubles, func(text string) bool { return strings.Contains(text, "history") }) {
			w.fail("V17: %v has no history and no reason for that", s.ID)
		}
		return
	case err != nil:
		w.must(err)
	case r.Job.State != s.State:
		w.fail("V17: %v is %v, but %v in its history", s.ID, s.State, r.Job.State)
	case !slices.IsSortedFunc(r.Plans, func(a, b history.Planned) int { return cmp.Compare(a.At, b.At) }):
		w.fail("V17: the plans of %v are out of order: %+v", s.ID, r.Plans)
	case len(r.Plans) > 0 && r.Plans[0].At < r.PlansSince:
		w.fail("V17: %v has plans before %d: %+v", s.ID, r.PlansSince, r.Plans[0])
	}
	checkSlotTime(w, r)
	for _, a := range r.Attempts {
		if a.Launched == 0 || !a.Attempt.Task.Kind.Slotted() {
			continue
		}
		if h.spans == nil {
			h.spans = make(map[slotGroup][]span)
		}
		at := slotGroup{a.Tracker, a.Attempt.Task.Kind, a.Attempt.N / wire.EpochAttempts}
		h.spans[at] = append(h.spans[at], span{a.Launched, a.Began + a.Took, a.Attempt})
	}
}

// checkSlotTime checks that what a job's slots did adds up to the time of its attempts in slots.
func checkSlotTime(w *world, r *history.Record) {
	held := int64(0)
	for _, a := range r.Attempts {
		if a.Attempt.Task.Kind.Slotted() {
			held += a.Took
			if a.Launched > 0 {
				held += a.Began - a.Launched
			}
		}
	}
	sum, gathering := int64(0), int64(0)
	if t := r.Job.SlotTime; t != nil {
		for _, u := range t.Uses {
			sum += u.Millis
		}
		gathering = t.Of(wire.SlotGathering).Millis
	}
	if sum-gathering != held {
		w.fail("V17: the slots of %v were used for %d ms, and %d while it gathered; its attempts had them for %d", r.Job.ID, sum, gathering, held)
	}
}

// checkSlots checks that no tracker had more attempts than slots.
func (h *histories) checkSlots(w *world) {
	slots := make(map[string][2]int)
	for _, t := range w.tts {
		slots[t.name] = t.slots
	}
	groups := slices.SortedFunc(maps.Keys(h.spans), func(a, b slotGroup) int {
		return cmp.Or(cmp.Compare(a.tracker, b.tracker), cmp.Compare(a.kind, b.kind), cmp.Compare(a.epoch, b.epoch))
	})
	for _, at := range groups {
		has := slots[at.tracker][0]
		if at.kind == wire.Reduce {
			has = slots[at.tracker][1]
		}
		for _, s := range h.spans[at] {
			if n := overlapping(h.spans[at], s.from); n > has {
				w.fail("V17: according to the histories %s has %d attempts in %d slots when %v is launched", at.tracker, n, has, s.attempt)
			}
		}
	}
}

// overlapping counts the spans at a time.
func overlapping(spans []span, at int64) (n int) {
	for _, s := range spans {
		if s.from <= at && at < s.to {
			n++
		}
	}
	return n
}
