package main

import (
	"context"

	"github.com/quernmr/quern/sim/papers/overlap"
)

func (t *tool) overlap(ctx context.Context, args []string) int {
	return t.paper(ctx, paper{name: "overlap", simulate: overlap.Simulate, page: overlap.WritePage}, args)
}
