// Package steps measures the Steps of both cores in fleets that package sim plays, and compares
// them with the simulation's model of their cost. It prints a row for each kind of event in each
// fleet: the median Step, the median of the model, and their ratio. With -fit it prints rates
// that fit the measured Steps, for sim/rates.go.
//
// A fit uses medians: one for all Steps of a kind in a fleet that have about the same sizes.
package steps

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/sim"
)

type bench struct {
	*testbed.Bench
	fit     bool
	samples map[kind][]sample // of all fleets, for the fit
}

// kind is a kind of event of a core.
type kind struct{ tracker, event string }

// sample is the median of Steps of about the same sizes in one fleet.
type sample struct {
	sizes [5]float64 // their means
	took  time.Duration
	n     int
}

// step is a measured Step.
type step struct {
	use  sim.Use
	took time.Duration
}

// fewSteps is the number of Steps below which a row is not printed: its median says little.
const fewSteps = 20

// Section declares the flags and parts.
func Section() testbed.Section {
	b := &bench{samples: make(map[kind][]sample)}
	s := testbed.Section{
		Name: "steps", About: "Steps of both cores in simulated fleets, and the model of their cost",
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&b.fit, "fit", false, "print rates that fit the measured Steps, at the end")
		},
		Open: func(base *testbed.Bench) error { b.Bench = base; return nil },
	}
	columns := []string{"core", "event", "Steps", "sizes", "measured", "modelled", "ratio"}
	for _, f := range fleets() {
		s.Parts = append(s.Parts, testbed.Part{Name: f.name, Columns: columns, Measure: func() error { return b.play(f) }})
	}
	s.Parts = append(s.Parts, testbed.Part{Name: "fit", Measure: b.printFit})
	return s
}

type fleet struct {
	name string
	sim.Fleet
}

func fleets() []fleet {
	slots := [2]int{2, 2}
	return []fleet{
		{"10 trackers, 1 job", sim.Fleet{Trackers: 10, Slots: slots, Jobs: 1, Maps: 300, Reduces: 10, AttemptTime: 4 * time.Second}},
		{"10 trackers, 40 jobs", sim.Fleet{Trackers: 10, Slots: slots, Jobs: 40, Every: 200 * time.Millisecond, Maps: 20, Reduces: 2, AttemptTime: 2 * time.Second}},
		{"10 trackers, 40 jobs, flex", sim.Fleet{Trackers: 10, Slots: slots, Jobs: 40, Every: 200 * time.Millisecond, Maps: 20, Reduces: 2, AttemptTime: 2 * time.Second, Scheduler: "flex"}},
		{"10 trackers, 40 jobs, attempts killed", sim.Fleet{Trackers: 10, Slots: slots, Jobs: 40, Every: 200 * time.Millisecond, Maps: 20, Reduces: 2, AttemptTime: 2 * time.Second, Kills: 8}},
		{"100 trackers, 1 job", sim.Fleet{Trackers: 100, Slots: slots, Jobs: 1, Maps: 1000, Reduces: 30, AttemptTime: 6 * time.Second}},
		{"100 trackers, 100 jobs", sim.Fleet{Trackers: 100, Slots: slots, Jobs: 100, Every: 100 * time.Millisecond, Maps: 30, Reduces: 3, AttemptTime: 6 * time.Second}},
		{"1,000 trackers, 1 job", sim.Fleet{Trackers: 1000, Slots: slots, Jobs: 1, Maps: 2500, Reduces: 30, AttemptTime: 6 * time.Second}},
		{"1,000 trackers, 100 jobs", sim.Fleet{Trackers: 1000, Slots: slots, Jobs: 100, Every: 50 * time.Millisecond, Maps: 30, Reduces: 2, AttemptTime: 6 * time.Second}},
	}
}

// play plays a fleet and prints its rows.
func (b *bench) play(f fleet) error {
	began := time.Now()
	steps := make(map[kind][]step)
	f.Seed = 1
	f.Meter = &sim.Meter{
		Clock: func() time.Duration { return time.Since(began) },
		OnStep: func(u sim.Use, took time.Duration) {
			k := kind{u.Tracker, u.Kind}
			steps[k] = append(steps[k], step{u, took})
		},
	}
	r := sim.RunFleet(f.Fleet)
	if r.Violation != "" {
		return fmt.Errorf("the simulation fails: %s", r.Violation)
	}
	near, rows := 0, 0
	for _, k := range slices.SortedFunc(maps.Keys(steps), compareKinds) {
		list := steps[k]
		b.samples[k] = append(b.samples[k], summarise(list)...)
		if len(list) < fewSteps {
			continue
		}
		rows++
		if b.printKind(k, list) {
			near++
		}
	}
	fmt.Printf("\n%d of %d rows are within a factor of 2. %d Steps, %v of virtual time, the leader is busy for %v, its longest queue %v.\n",
		near, rows, r.Steps, r.Elapsed.Round(time.Second), r.Busy.Round(time.Millisecond), r.Waited.Round(time.Microsecond))
	return nil
}

func compareKinds(x, y kind) int {
	return cmp.Or(strings.Compare(x.tracker, y.tracker), strings.Compare(x.event, y.event))
}

// printKind prints a row. It reports whether measured and modelled medians are within a factor
// of 2.
func (b *bench) printKind(k kind, list []step) bool {
	var took, modelled []time.Duration
	var sizes [5][]int
	for _, s := range list {
		took, modelled = append(took, s.took), append(modelled, s.use.Cost())
		for i, n := range s.use.Sizes {
			sizes[i] = append(sizes[i], n)
		}
	}
	text := ""
	for _, n := range sizes[1:] {
		text += fmt.Sprintf(" %d", testbed.Median(n))
	}
	measured, model := testbed.Median(took), testbed.Median(modelled)
	near := model <= 2*measured && measured <= 2*model
	ratio := testbed.Ratio(model, measured)
	if !near {
		ratio += " (!)"
	}
	testbed.Row(k.tracker, k.event, fmt.Sprint(len(list)), strings.TrimSpace(text), micros(measured), micros(model), ratio)
	return near
}

func micros(d time.Duration) string { return fmt.Sprintf("%.1f µs", float64(d)/1e3) }

// summarise groups Steps of a kind by their sizes.
func summarise(list []step) (samples []sample) {
	groups := make(map[[5]int][]step)
	for _, s := range list {
		var at [5]int
		for i, n := range s.use.Sizes {
			at[i] = class(n)
		}
		groups[at] = append(groups[at], s)
	}
	for _, at := range slices.SortedFunc(maps.Keys(groups), func(x, y [5]int) int { return slices.Compare(x[:], y[:]) }) {
		group := groups[at]
		var took []time.Duration
		x := sample{n: len(group)}
		for _, s := range group {
			took = append(took, s.took)
			for i, n := range s.use.Sizes {
				x.sizes[i] += float64(n) / float64(len(group))
			}
		}
		x.took = testbed.Median(took)
		samples = append(samples, x)
	}
	return samples
}

// class returns equal numbers for sizes that differ by less than half.
func class(n int) int {
	c := 0
	for ; n > 3; n = n * 2 / 3 {
		c++
	}
	return 4*c + n
}
