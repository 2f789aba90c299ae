package main

import (
	"context"

	"github.com/quernmr/quern/sim/papers/flowflex"
)

func (t *tool) flowflex(ctx context.Context, args []string) int {
	return t.paper(ctx, paper{name: "flowflex", simulate: flowflex.Simulate, page: flowflex.WritePage}, args)
}
