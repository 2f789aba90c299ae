package pool

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Candidate is a job that has slots or could get some.
type Candidate struct {
	Limits   []int32 // see Holder.Limits
	Runs     bool    // it has slots
	Priority wire.Priority
}

// Holder decides which jobs may begin to run, by the limits of a table. It must not be used by two goroutines at
// once.
type Holder struct {
	table *Table
	index map[string]int32 // by RunningLimit.Of
	max   []int            // by index
	why   []string         // by index: why a job is held by the limit
	sets  map[[2]string][]int32

	left  []int // memory of Hold
	order []int32
	held  []string
}

// NewHolder makes a Holder for a table.
func (t *Table) NewHolder() *Holder {
	return &Holder{table: t, index: make(map[string]int32), sets: make(map[[2]string][]int32)}
}

// Kept counts the pairs of user and pool that the Holder keeps. If they are many more than the jobs, a new Holder
// needs less memory.
func (h *Holder) Kept() int { return len(h.sets) }

// Limits returns the limits of a user's jobs in a pool. Callers keep them: finding them costs more than Hold.
func (h *Holder) Limits(user, pool string) []int32 {
	key := [2]string{user, pool}
	set, ok := h.sets[key]
	if ok {
		return set
	}
	for _, x := range h.table.RunningLimits(user, pool) {
		i, known := h.index[x.Of]
		if !known {
			i = int32(len(h.max))
			h.index[x.Of], h.max, h.why = i, append(h.max, x.Max), append(h.why, x.Of+" runs as many jobs as it may")
		}
		set = append(set, i)
	}
	h.sets[key] = set
	return set
}

// Hold returns for each job why it may not begin to run, and an empty text if it may. Jobs with slots
// may always. The others come by priority, then in the given order, while their user, their pool and
// the pools around it run fewer jobs than they may. A job that is held takes no place from others. The
// answer is valid until the next call.
func (h *Holder) Hold(jobs []Candidate) []string {
	h.left = append(h.left[:0], h.max...)
	h.order = h.order[:0]
	for i := range jobs {
		if !jobs[i].Runs {
			h.order = append(h.order, int32(i))
			continue
		}
		for _, x := range jobs[i].Limits {
			h.left[x]--
		}
	}
	byPriority := func(a, b int32) int { return cmp.Compare(jobs[b].Priority, jobs[a].Priority) }
	if !slices.IsSortedFunc(h.order, byPriority) {
		slices.SortStableFunc(h.order, byPriority)
	}
	h.held = slices.Grow(h.held[:0], len(jobs))[:len(jobs)]
	clear(h.held)
	for _, i := range h.order {
		limits := jobs[i].Limits
		full := slices.IndexFunc(limits, func(x int32) bool { return h.left[x] <= 0 })
		if full >= 0 {
			h.held[i] = h.why[limits[full]]
			continue
		}
		for _, x := range limits {
			h.left[x]--
		}
	}
	return h.held
}
