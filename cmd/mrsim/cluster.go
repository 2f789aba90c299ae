package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/quernmr/quern/sim"
)

const clusterSynopsis = "[-seed N] [-seeds N] [-keep N,N…] [-calm] [-lasting] [-rotating] [-digest] [-v]"

const clusterHelp = `Runs clusters of three job trackers and some task trackers in virtual time, with
random faults from the seed, and checks the results. It shrinks a failing run by
dropping faults, and prints the command that repeats it.`

// clusterFlags are the flags of mrsim cluster.
type clusterFlags struct {
	first    uint64
	seeds    int
	keep     string
	calm     bool
	lasting  bool
	rotating bool
	shrink   int
	digest   bool
	verbose  bool
}

func (t *tool) cluster(ctx context.Context, args []string) int {
	var f clusterFlags
	set := flag.NewFlagSet("cluster", flag.ContinueOnError)
	set.Uint64Var(&f.first, "seed", 1, "the first seed")
	set.IntVar(&f.seeds, "seeds", 1, "number of seeds")
	set.StringVar(&f.keep, "keep", "all", "comma-separated `numbers` of the faults to keep, or all, or none")
	set.BoolVar(&f.calm, "calm", false, "run without faults")
	set.BoolVar(&f.lasting, "lasting", false, "faults last, on up to half of the task trackers; all jobs must end nearly as soon as without these")
	set.BoolVar(&f.rotating, "rotating", false, "faults last for some time, on one task tracker after the other, on at most half of them at once")
	set.IntVar(&f.shrink, "shrink", 200, "largest number of runs for shrinking a failing one")
	set.BoolVar(&f.digest, "digest", false, "print a digest of all decisions of the cores; equal digests mean equal decisions")
	set.BoolVar(&f.verbose, "v", false, "print the faults and all events")
	var keep []int
	code, ok := t.parse(set, clusterHelp, args, func() (err error) {
		if f.lasting && f.rotating {
			return errors.New("-lasting and -rotating exclude each other: give one of them")
		}
		if keep, err = faultNumbers(f.keep); err != nil {
			return fmt.Errorf("-keep: %w", err)
		}
		return nil
	})
	if !ok {
		return code
	}
	return t.playClusters(ctx, f, keep)
}

// faultNumbers reads -keep; nil means all.
func faultNumbers(text string) ([]int, error) {
	switch text {
	case "all":
		return nil, nil
	case "none":
		return []int{}, nil
	}
	var numbers []int
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// playClusters runs the seeds one after the other, until an interrupt.
func (t *tool) playClusters(ctx context.Context, f clusterFlags, keep []int) int {
	failed, played, steps, digests := 0, 0, 0, fnv.New64a()
	for ; played < f.seeds && ctx.Err() == nil; played++ {
		r := sim.Run(sim.Options{Seed: f.first + uint64(played), Keep: keep, Calm: f.calm, Lasting: f.lasting, Rotating: f.rotating, Digest: f.digest})
		steps += r.Steps
		fmt.Fprintln(digests, r.Digest)
		if r.Violation != "" {
			failed++
			if f.shrink > 0 && !f.verbose {
				r = sim.Shrink(r, f.shrink)
			}
		}
		if f.verbose || r.Violation != "" {
			t.printRun(r, f.verbose)
		}
	}
	fmt.Fprintf(t.stdout, "%d runs, %d events, %d failed\n", played, steps, failed)
	if f.digest {
		fmt.Fprintf(t.stdout, "digest %016x\n", digests.Sum64())
	}
	if failed > 0 {
		return exitFailed
	}
	return exitDone
}

func (t *tool) printRun(r *sim.Result, trace bool) {
	if r.Violation == "" {
		fmt.Fprintf(t.stdout, "seed %d: passed after %v of virtual time\n", r.Options.Seed, r.Elapsed)
	} else {
		fmt.Fprintf(t.stdout, "seed %d: %s\n", r.Options.Seed, r.Violation)
	}
	for _, i := range r.Kept {
		fmt.Fprintf(t.stdout, "  fault %d: %v\n", i, r.Faults[i])
	}
	if trace {
		for _, line := range r.Trace {
			fmt.Fprintln(t.stdout, line)
		}
	}
	fmt.Fprintf(t.stdout, "  %s\n", r.Command())
}
