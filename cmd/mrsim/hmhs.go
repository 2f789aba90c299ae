package main

import (
	"context"

	"github.com/quernmr/quern/sim/papers/hmhs"
)

func (t *tool) hmhs(ctx context.Context, args []string) int {
	return t.paper(ctx, paper{name: "hmhs", simulate: hmhs.Simulate, page: hmhs.WritePage}, args)
}
