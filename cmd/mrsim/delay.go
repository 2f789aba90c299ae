package main

import (
	"context"

	"github.com/quernmr/quern/sim/papers/delay"
)

func (t *tool) delay(ctx context.Context, args []string) int {
	return t.paper(ctx, paper{name: "delay", simulate: delay.Simulate, page: delay.WritePage}, args)
}
