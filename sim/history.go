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

// histories is what the histories of all jobs say of slots.
type histories struct{ spans map[seat][]span }

// seat is the slots of a tracker, as one leader gave them away.
type seat struct {
	tracker string
	kind    wire.Kind
	epoch   int
}

// span is from when to when an attempt had a slot, in milliseconds of that leader's clock.
type span struct {
	from, to int64
	attempt  wire.AttemptID
}

// checkHistory checks that a job's history says how it ended, or the job why it has none.
func (h *histories) checkHistory(w *world, s wire.JobStatus) {
	r, err := history.Find(w.fs, clusterStaging, s.ID)
	switch {
	case errors.Is(err, iofs.ErrNotExist):
		if !slices.ContainsFunc(s.Troubles, func(text string) bool { return strings.Contains(text, "history") }) {
			w.fail("V17: %v has no history, and does not say why", s.ID)
		}
		return
	case err != nil:
		w.must(err)
	case r.Job.State != s.State:
		w.fail("V17: %v is %v, and %v in its history", s.ID, s.State, r.Job.State)
	case !slices.IsSortedFunc(r.Plans, func(a, b history.Planned) int { return cmp.Compare(a.At, b.At) }):
		w.fail("V17: the plans of %v are out of order: %+v", s.ID, r.Plans)
	case len(r.Plans) > 0 && r.Plans[0].At < r.PlansSince:
		w.fail("V17: %v knows plans of before %d: %+v", s.ID, r.PlansSince, r.Plans[0])
	}
	for _, a := range r.Attempts {
		if a.Launched == 0 || !a.Attempt.Task.Kind.Slotted() {
			continue
		}
		if h.spans == nil {
			h.spans = make(map[seat][]span)
		}
		at := seat{a.Tracker, a.Attempt.Task.Kind, a.Attempt.N / wire.EpochAttempts}
		h.spans[at] = append(h.spans[at], span{a.Launched, a.Began + a.Took, a.Attempt})
	}
}

// checkSlots checks that no tracker has more in its slots than it has.
func (h *histories) checkSlots(w *world) {
	slots := make(map[string][2]int)
	for _, t := range w.tts {
		slots[t.name] = t.slots
	}
	seats := slices.SortedFunc(maps.Keys(h.spans), func(a, b seat) int {
		return cmp.Or(cmp.Compare(a.tracker, b.tracker), cmp.Compare(a.kind, b.kind), cmp.Compare(a.epoch, b.epoch))
	})
	for _, at := range seats {
		has := slots[at.tracker][0]
		if at.kind == wire.Reduce {
			has = slots[at.tracker][1]
		}
		for _, s := range h.spans[at] {
			if n := atOnce(h.spans[at], s.from); n > has {
				w.fail("V17: by histories %s has %d in %d slots when %v is launched", at.tracker, n, has, s.attempt)
			}
		}
	}
}

// atOnce counts the spans that a time is in.
func atOnce(spans []span, at int64) (n int) {
	for _, s := range spans {
		if s.from <= at && at < s.to {
			n++
		}
	}
	return n
}
