package pages

import (
	"cmp"
	"slices"

	"github.com/quernmr/quern/jobtracker/web"
)

// spent is the time in slots that a kind of work took, summed over attempts.
type spent struct {
	Work     string
	Attempts int
	Millis   int64
}

// slotTime says what each slot-second of a job went to, as far as attempts say it.
func slotTime(attempts []web.Attempt) (all []spent, total int64) {
	const (
		starting = iota
		reading
		mapping
		reducing
		failed
		killed
		second
	)
	all = []spent{
		starting: {Work: "start of attempts, until their code runs"},
		reading:  {Work: "maps: reads of the input"},
		mapping:  {Work: "maps: the rest"},
		reducing: {Work: "reduces, with their wait for the shuffle"},
		failed:   {Work: "failed attempts"},
		killed:   {Work: "killed attempts"},
		second:   {Work: "speculative attempts that lost"},
	}
	add := func(kind int, ms int64) {
		if ms > 0 {
			all[kind].Attempts++
			all[kind].Millis += ms
		}
	}
	for i := range attempts {
		a := &attempts[i]
		phase := phaseOf(a.ID)
		if phase == "" {
			continue
		}
		if !a.Launched.IsZero() {
			add(starting, a.Began.Sub(a.Launched).Milliseconds())
		}
		reads := min(a.TookMillis, a.Reads.NodeMillis+a.Reads.RackMillis+a.Reads.RemoteMillis)
		switch {
		case a.State == "failed":
			add(failed, a.TookMillis)
		case a.State == "killed" && a.Speculative:
			add(second, a.TookMillis)
		case a.State == "killed":
			add(killed, a.TookMillis)
		case phase == "map":
			add(reading, reads)
			add(mapping, a.TookMillis-reads)
		default:
			add(reducing, a.TookMillis)
		}
	}
	all = slices.DeleteFunc(all, func(s spent) bool { return s.Millis == 0 })
	for _, s := range all {
		total += s.Millis
	}
	return all, total
}

// placed counts the ended maps at a distance from their input.
type placed struct {
	Level string
	Maps  int
}

func localities(attempts []web.Attempt) (all []placed, maps int) {
	for i := range attempts {
		a := &attempts[i]
		if a.State != "succeeded" || a.Level == "" {
			continue
		}
		maps++
		k := slices.IndexFunc(all, func(p placed) bool { return p.Level == a.Level })
		if k < 0 {
			k, all = len(all), append(all, placed{Level: a.Level})
		}
		all[k].Maps++
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Or(cmp.Compare(b.Maps, a.Maps), cmp.Compare(a.Level, b.Level)) })
	return all, maps
}

// partitions has the sizes of the reduces' input.
type partitions struct {
	Reduces       int
	Median        int64 // bytes
	Largest       []web.Attempt
	LargestFactor float64 // largest by median
}

// partitionSizes finds the largest partitions; nil: fewer than two sizes are known.
func partitionSizes(attempts []web.Attempt) *partitions {
	var all []web.Attempt
	for i := range attempts {
		if a := &attempts[i]; phaseOf(a.ID) == "reduce" && (a.State == "succeeded" || running(a)) && a.Bytes.Total > 0 {
			all = append(all, *a)
		}
	}
	if len(all) < 2 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b web.Attempt) int { return cmp.Compare(b.Bytes.Total, a.Bytes.Total) })
	p := &partitions{Reduces: len(all), Median: all[len(all)/2].Bytes.Total, Largest: all[:min(len(all), 5)]}
	p.LargestFactor = float64(all[0].Bytes.Total) / float64(p.Median)
	return p
}
