package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/quernmr/quern/sim/papers"
)

const paperSynopsis = "[-seed N] [-experiments N] [-json] [-plots DIR] [-page FILE]"

// paper is a simulation of a paper: how to run it and how to write its page.
type paper struct {
	name     string
	simulate func(ctx context.Context, o papers.Options) (*papers.Report, error)
	// page writes the page about the report; plots is the folder of the figures, relative to
	// the page.
	page func(w io.Writer, r *papers.Report, plots string) error
}

// run runs a paper's subcommand and returns the exit code.
func (p paper) run(t *tool, ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("mrsim "+p.name, flag.ContinueOnError)
	flags.SetOutput(t.stderr)
	o := papers.Options{Progress: t.stderr}
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the random numbers")
	flags.IntVar(&o.Experiments, "experiments", 0, "number of experiments for each figure; 0: as many as take about a minute")
	asJSON := flags.Bool("json", false, "print one object per line instead of a table")
	plots := flags.String("plots", "", "draw the figures into this folder, as SVG")
	page := flags.String("page", "", "write the page about the paper to this file; needs -plots")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitDone
	case err != nil:
		return exitUsage
	case flags.NArg() > 0 || o.Experiments < 0 || *page != "" && *plots == "":
		flags.Usage()
		return exitUsage
	}
	report, err := p.simulate(ctx, o)
	if err != nil {
		return t.fail(p.name, err)
	}
	write := report.WriteTable
	if *asJSON {
		write = report.WriteJSON
	}
	if err := write(t.stdout); err != nil {
		return t.fail(p.name, err)
	}
	if err := draw(p, report, *plots, *page); err != nil {
		return t.fail(p.name, err)
	}
	if missed := report.Missed(); len(missed) > 0 {
		fmt.Fprintf(t.stderr, "mrsim %s: %d of %d figures are outside their bands\n", p.name, len(missed), len(report.Rows))
		return exitFailed
	}
	return exitDone
}

// draw makes the plots and the page, if requested.
func draw(p paper, report *papers.Report, plots, page string) error {
	if plots == "" {
		return nil
	}
	if _, err := report.WriteCharts(plots); err != nil || page == "" {
		return err
	}
	folder, err := filepath.Rel(filepath.Dir(page), plots)
	if err != nil {
		return fmt.Errorf("page %s: %w", page, err)
	}
	f, err := os.Create(page)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	defer f.Close()
	if err := p.page(f, report, filepath.ToSlash(folder)); err != nil {
		return fmt.Errorf("page %s: %w", page, err)
	}
	return f.Close()
}

func (t *tool) fail(name string, err error) int {
	fmt.Fprintf(t.stderr, "mrsim %s: %v\n", name, err)
	return exitFailed
}
