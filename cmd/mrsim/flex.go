package main

import (
	"context"

	"github.com/quernmr/quern/sim/papers/flex"
)

func (t *tool) flex(ctx context.Context, args []string) int {
	return t.paper(ctx, paper{name: "flex", simulate: flex.Simulate, page: flex.WritePage}, args)
}
