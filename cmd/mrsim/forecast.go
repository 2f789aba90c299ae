package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/quernmr/quern/sim"
)

const forecastSynopsis = "[-seed N] [-seeds N] [-jobs N] [-schedulers NAME,NAME…] [-again N]"

const forecastHelp = `Runs mixes of jobs on simulated clusters without faults, and compares the predicted ends
with the true ones, at fractions of each job's life. Most jobs have a name that earlier
jobs had. A width is half of the range, as a fraction of the job's life, or of the time that
was left. Then it says why ranges at half of the lives did not hold the true end, or were wider
than ±25 % of the life.

With -again, every N-th job is judged a second time: in a run without the jobs that come after
half of its life. Each takes seconds.`

// forecast runs mixes, and prints how good their predictions were.
func (t *tool) forecast(ctx context.Context, args []string) int {
	set := flag.NewFlagSet("forecast", flag.ContinueOnError)
	first, seeds := set.Uint64("seed", 1, "the first seed"), set.Int("seeds", 2, "number of seeds")
	jobs := set.Int("jobs", 120, "number of jobs of a mix")
	schedulers := set.String("schedulers", "fifo,fair,flex,srpt", "comma-separated `names` of schedulers")
	again := set.Int("again", 0, "judge every `N`-th job again without later jobs; 0: none")
	code, ok := t.parse(set, forecastHelp, args, func() error {
		switch {
		case *jobs < 1:
			return fmt.Errorf("-jobs must be positive, got %d", *jobs)
		case *again < 0:
			return fmt.Errorf("-again must not be negative, got %d", *again)
		}
		return nil
	})
	if !ok {
		return code
	}
	fmt.Fprintln(t.stdout, "| scheduler | jobs | at | predicted | range holds the end | median width of the life | of the time left | ≤ ±25 % of the life | of the time left | likely end within 25 % |\n|---|---|---|---|---|---|---|---|---|---|")
	judged := make(map[string][]*sim.Predicted)
	names := strings.Split(*schedulers, ",")
	for _, name := range names {
		for seed := *first; seed < *first+uint64(*seeds) && ctx.Err() == nil; seed++ {
			mix := sim.Mix{Seed: seed, Jobs: *jobs, Scheduler: name}
			all, err := mix.Run()
			if err == nil && *again > 0 {
				err = mix.WithoutLater(all, *again)
			}
			if err != nil {
				return t.fail("forecast", err)
			}
			judged[name] = append(judged[name], all...)
		}
		t.printForecasts(name, judged[name])
	}
	for _, name := range names {
		t.printCauses(name, judged[name])
	}
	return exitDone
}

// printForecasts prints rows about jobs.
func (t *tool) printForecasts(scheduler string, all []*sim.Predicted) {
	known := func(p *sim.Predicted) bool { return p.Known }
	rows := func(which string, jobs []*sim.Predicted) {
		for _, at := range []float64{0.25, 0.5, 0.75} {
			s := sim.Judge(jobs, at)
			share := func(n int) string { return percent(n, s.Jobs) }
			fmt.Fprintf(t.stdout, "| %s | %d %s | %.0f %% | %s | %s | ±%.0f %% | ±%.0f %% | %s | %s | %s |\n", scheduler, s.Jobs, which, 100*at,
				share(s.Named), share(s.Held), 100*s.Width, 100*s.WidthLeft, share(s.Narrow), share(s.NarrowLeft), share(s.Right))
		}
	}
	rows("all", all)
	rows("of a known name", slices.DeleteFunc(slices.Clone(all), func(p *sim.Predicted) bool { return !known(p) }))
	rows("first of their name", slices.DeleteFunc(slices.Clone(all), known))
}

// printCauses prints why ranges were bad at half of the jobs' lives, and what later jobs did.
func (t *tool) printCauses(scheduler string, jobs []*sim.Predicted) {
	if s := sim.Judge(jobs, 0.5); s.Again > 0 {
		fmt.Fprintf(t.stdout, "\n%s, %d jobs at half of their lives: the range holds the end of %s; in a run without later jobs, of %s.\n",
			scheduler, s.Again, percent(s.SoHeld, s.Again), percent(s.AgainHeld, s.Again))
	}
	fmt.Fprintf(t.stdout, "\n| %s: at half of the life | jobs | ended after the range | before it | wider than ±25 %% |\n|---|---|---|---|---|\n", scheduler)
	for _, c := range sim.Causes(jobs, 0.5) {
		fmt.Fprintf(t.stdout, "| %s | %d | %d | %d | %d |\n", c.Why, c.Jobs, c.TooEarly, c.TooLate, c.Wide)
	}
}

func percent(n, of int) string { return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(max(1, of))) }
