package overlap_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/scheduler/overlap"
	"github.com/quernmr/quern/wire"
)

// BenchmarkPlan measures one allocation, from the snapshot to the plan.
func BenchmarkPlan(b *testing.B) {
	for _, p := range []scheduler.Policy{overlap.MaxSRPT{}, overlap.SplitSRPT{}, overlap.SRPT{}} {
		for _, jobs := range []int{10, 100, 1000, 10000} {
			b.Run(fmt.Sprintf("%T/jobs=%d", p, jobs), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 1))
				s := scheduler.Snapshot{Phase: wire.Map, Slots: 10 * jobs, Bandwidth: 1e9}
				for n := range jobs {
					work, bytes := 100*r.Float64(), 1e10*r.Float64()
					s.Jobs = append(s.Jobs, scheduler.Job{ID: id(n + 1), Max: 1 + r.IntN(100), Work: work, Alone: 2 * work})
					s.Transfers = append(s.Transfers, scheduler.Transfer{ID: id(n + 1), Ready: bytes / 3, Left: bytes, Whole: 2 * bytes})
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.Plan(s); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
