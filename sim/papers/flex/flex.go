// Package flex reproduces the simulations of the FLEX paper (section 4.1).
package flex

import (
	"context"
	"io"

	"github.com/quernmr/quern/sim/papers"
)

// Simulate runs the paper's experiments.
func Simulate(ctx context.Context, o papers.Options) (*papers.Report, error) {
	return &papers.Report{Paper: "flex", Options: o}, ctx.Err()
}

// WritePage writes the page about the report.
func WritePage(w io.Writer, r *papers.Report, plots string) error { return nil }
