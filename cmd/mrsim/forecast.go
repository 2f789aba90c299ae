package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quernmr/quern/sim"
)

const forecastSynopsis = "[-seed N] [-seeds N] [-jobs N] [-schedulers NAME,NAME…]"

const forecastHelp = `Runs mixes of jobs on simulated clusters without faults, and compares the predicted ends
with the true ones, at fractions of each job's life. Most jobs have a name that earlier
jobs had. Times and widths are fractions of the job's life.

`

// forecast runs mixes, and prints how good their predictions were.
func (t *tool) forecast(ctx context.Context, args []string) int {
	set := flag.NewFlagSet("forecast", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	first, seeds := set.Uint64("seed", 1, "the first seed"), set.Int("seeds", 2, "number of seeds")
	jobs := set.Int("jobs", 120, "number of jobs of a mix")
	schedulers := set.String("schedulers", "fifo,fair,flex,srpt", "comma-separated `names` of schedulers")
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(t.stdout, "usage: mrsim forecast %s\n\n%s", forecastSynopsis, forecastHelp)
		set.SetOutput(t.stdout)
		set.PrintDefaults()
		return exitDone
	case err == nil && set.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	case err == nil && *jobs < 1:
		err = fmt.Errorf("-jobs must be positive, got %d", *jobs)
	}
	if err != nil {
		fmt.Fprintf(t.stderr, "mrsim forecast: %v; see mrsim forecast -h\n", err)
		return exitUsage
	}
	fmt.Fprintln(t.stdout, "| scheduler | jobs | at | predicted | range holds the end | width ± (median) | width ≤ ±25 % | likely end within 25 % |\n|---|---|---|---|---|---|---|---|")
	for name := range strings.SplitSeq(*schedulers, ",") {
		var known, fresh []*sim.Predicted
		for seed := *first; seed < *first+uint64(*seeds) && ctx.Err() == nil; seed++ {
			all, err := sim.Mix{Seed: seed, Jobs: *jobs, Scheduler: name}.Run()
			if err != nil {
				return t.fail("forecast", err)
			}
			for _, p := range all {
				if p.Known {
					known = append(known, p)
				} else {
					fresh = append(fresh, p)
				}
			}
		}
		t.printForecasts(name, "all", slices.Concat(known, fresh))
		t.printForecasts(name, "of a known name", known)
		t.printForecasts(name, "first of their name", fresh)
	}
	return exitDone
}

// printForecasts prints rows about jobs.
func (t *tool) printForecasts(scheduler, which string, jobs []*sim.Predicted) {
	for _, at := range []float64{0.25, 0.5, 0.75} {
		s := sim.Judge(jobs, at)
		share := func(n int) string { return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(max(1, s.Jobs))) }
		fmt.Fprintf(t.stdout, "| %s | %d %s | %.0f %% | %s | %s | %.0f %% | %s | %s |\n", scheduler, s.Jobs, which, 100*at,
			share(s.Named), share(s.Held), 100*s.Width, share(s.Narrow), share(s.Right))
	}
}
