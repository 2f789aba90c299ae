package facts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/quernmr/quern/wire"
)

// Skipped says that all later attempts of a map or reduce skip a range of its records or groups. So
// every rerun of a map skips the same records.
type Skipped struct {
	Job    int       `msgpack:"j"`
	Kind   wire.Kind `msgpack:"k"` // Map or Reduce
	Task   int       `msgpack:"t"`
	From   int64     `msgpack:"f"`
	To     int64     `msgpack:"e"` // exclusive
	Digest uint64    `msgpack:"d"` // of a reduce's input, as in wire.Report: groups of another input have other numbers
}

// Bounds on the ranges that are kept.
const (
	maxSkips       = 1_000 // of a task
	maxSkipsPerJob = 10_000
)

// skips has the records that attempts of a task skip.
type skips struct {
	n      int // number of Skipped facts
	digest uint64
	ranges []wire.RecordRange // in the order of the facts
}

type taskKey struct {
	kind wire.Kind
	n    int
}

func (k taskKey) compare(other taskKey) int {
	return cmp.Or(cmp.Compare(k.kind, other.kind), k.n-other.n)
}

func (*Skipped) number() byte { return 25 }
func (x *Skipped) Name() string {
	return fmt.Sprintf("skipped %d/%v/%d/%d-%d", x.Job, x.Kind, x.Task, x.From, x.To)
}
func (x *Skipped) Fits(f *Facts) bool {
	j := f.jobs[x.Job]
	if !j.Running() || !j.hasTask(x.Kind, x.Task) || j.GivenUp(x.Kind, x.Task) || x.From < 0 || x.From >= x.To {
		return false
	}
	if x.Kind != j.Kind() && j.MayHaveOutput() { // reduces that have committed have read output of all maps
		return false
	}
	if _, granted := j.grants[x.Task]; x.Kind == j.Kind() && (granted || j.done.Has(x.Task)) {
		return false
	}
	s := j.skips[taskKey{x.Kind, x.Task}]
	return s == nil && len(j.skips) < maxSkipsPerJob ||
		s != nil && s.n < maxSkips && !(s.digest == x.Digest && slices.Contains(s.ranges, wire.RecordRange{From: x.From, To: x.To}))
}
func (x *Skipped) apply(f *Facts, _ uint64) {
	j, key := f.change(x.Job), taskKey{x.Kind, x.Task}
	if j.skips == nil {
		j.skips = make(map[taskKey]*skips)
	}
	s := new(skips) // a View may have the old one
	if old := j.skips[key]; old != nil {
		*s = *old
	}
	j.skips[key] = s
	if s.digest != x.Digest {
		s.digest, s.ranges = x.Digest, nil
	}
	s.n++
	if last := len(s.ranges) - 1; last >= 0 && x.From <= s.ranges[last].From && s.ranges[last].To <= x.To {
		s.ranges = slices.Clone(s.ranges[:last]) // a Launch may have the old ones
	}
	s.ranges = append(s.ranges, wire.RecordRange{From: x.From, To: x.To})
}

// Skips returns how often the log changed what attempts of a task skip, and the ranges, in the
// order of the log. digest is that of a reduce's input, and 0 for a map. The ranges must not be
// changed.
func (j *Job) Skips(k wire.Kind, n int, digest uint64) (changes int, ranges []wire.RecordRange) {
	s := j.skips[taskKey{k, n}]
	switch {
	case s == nil:
		return 0, nil
	case s.digest != digest:
		return s.n, nil
	}
	return s.n, s.ranges
}

// skipSnapshot is the skips of a task in a snapshot.
type skipSnapshot struct {
	Kind   wire.Kind          `msgpack:"Kind"`
	Task   int                `msgpack:"Task"`
	N      int                `msgpack:"N"`
	Digest uint64             `msgpack:"Digest"`
	Ranges []wire.RecordRange `msgpack:"Ranges"`
}

func (j *jobState) skipSnapshots() (all []skipSnapshot) {
	for _, key := range slices.SortedFunc(maps.Keys(j.skips), taskKey.compare) {
		s := j.skips[key]
		all = append(all, skipSnapshot{key.kind, key.n, s.n, s.digest, s.ranges})
	}
	return all
}

func restoreSkips(all []skipSnapshot) map[taskKey]*skips {
	var m map[taskKey]*skips
	for _, s := range all {
		if m == nil {
			m = make(map[taskKey]*skips)
		}
		m[taskKey{s.Kind, s.Task}] = &skips{s.N, s.Digest, s.Ranges}
	}
	return m
}
