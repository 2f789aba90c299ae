package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/quernmr/quern/scheduler/whatif"
	"github.com/quernmr/quern/sim"
)

const whatIfSynopsis = "[-seed N] [-seeds N] [-jobs N]"

const whatIfHelp = `Runs mixes of jobs on simulated clusters without faults. While many jobs wait, the scheduler
changes: to each one in a run of its own. Compares what was predicted then for these
schedulers with what happens. Pairs of schedulers count if their values differ by more than 5 %.`

// whatIf runs mixes, and prints how often predictions compare schedulers as the runs do.
func (t *tool) whatIf(ctx context.Context, args []string) int {
	set := flag.NewFlagSet("whatif", flag.ContinueOnError)
	first, seeds := set.Uint64("seed", 1, "the first seed"), set.Int("seeds", 2, "number of seeds")
	jobs := set.Int("jobs", 16, "number of jobs of a mix")
	code, ok := t.parse(set, whatIfHelp, args, func() error {
		if *jobs < 2 {
			return fmt.Errorf("-jobs must be at least 2, got %d", *jobs)
		}
		return nil
	})
	if !ok {
		return code
	}
	measures := []struct {
		name  string
		value func(*whatif.Summary) float64
		sim.Agreement
	}{
		{name: "mean response", value: func(s *whatif.Summary) float64 { return s.MeanResponse }},
		{name: "mean stretch", value: func(s *whatif.Summary) float64 { return s.MeanStretch }},
		{name: "last end", value: func(s *whatif.Summary) float64 { return s.LastEnd }},
		{name: "missed deadlines", value: func(s *whatif.Summary) float64 { return float64(s.Late) }},
	}
	for seed := *first; seed < *first+uint64(*seeds) && ctx.Err() == nil; seed++ {
		all, err := sim.Switched{Seed: seed, Jobs: *jobs}.Run()
		if err != nil {
			return t.fail("whatif", err)
		}
		for i := range measures {
			measures[i].Add(all, measures[i].value)
		}
	}
	fmt.Fprintln(t.stdout, "| value | pairs of schedulers in the predicted order | best scheduler predicted | mean error |\n|---|---|---|---|")
	for i := range measures {
		m := &measures[i]
		fmt.Fprintf(t.stdout, "| %s | %d of %d (%.0f %%) | %d of %d | %.0f %% |\n", m.name, m.Agreed, m.Pairs, 100*float64(m.Agreed)/float64(max(1, m.Pairs)), m.Best, m.Mixes, 100*m.Error())
	}
	return exitDone
}
