package overlap_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler"
	"github.com/quernmr/quern/wire"
)

// TestPlans: the plan of any snapshot is valid, keeps minima (S4), leaves no usable slot or
// network idle, and depends on the snapshot alone.
func TestPlans(t *testing.T) {
	for name, p := range planners() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := snapshot(t)
				before := s
				before.Jobs, before.Transfers = slices.Clone(s.Jobs), slices.Clone(s.Transfers)
				plan, err := p.Plan(s)
				if err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(s, before) {
					t.Fatalf("the snapshot has changed to %+v", s)
				}
				if err := checkPlan(s, plan); err != nil {
					t.Fatalf("%v: %+v", err, plan)
				}
				rand.New(rand.NewPCG(1, 1)).Shuffle(len(s.Jobs), func(i, j int) { s.Jobs[i], s.Jobs[j] = s.Jobs[j], s.Jobs[i] })
				slices.Reverse(s.Transfers)
				if again, err := p.Plan(s); err != nil || !reflect.DeepEqual(plan, again) {
					t.Fatalf("%+v, but %+v (%v) in another order", plan, again, err)
				}
			})
		})
	}
}

func checkPlan(s scheduler.Snapshot, plan scheduler.Plan) error {
	if err := plan.Validate(s); err != nil {
		return err
	}
	if err := plan.CheckMinima(s); err != nil {
		return err
	}
	slots, useful := 0, 0
	for _, target := range plan.Targets {
		slots += target.Slots
	}
	for _, j := range s.Jobs {
		useful += j.Max
	}
	if slots != min(s.Slots, useful) {
		return fmt.Errorf("%d slots of %d are planned, %d could be used", slots, s.Slots, useful)
	}
	share, ready := 0.0, false
	for _, shuffle := range plan.ShuffleShares {
		share += shuffle.Share
	}
	for _, transfer := range s.Transfers {
		ready = ready || transfer.Ready > 0
	}
	if s.Phase == wire.Map && ready && math.Abs(share-1) > 1e-9 {
		return fmt.Errorf("the plan uses %v of the shuffle capacity, want 1", share)
	}
	return nil
}

func snapshot(t *rapid.T) scheduler.Snapshot {
	s := scheduler.Snapshot{
		Phase:     rapid.SampledFrom([]wire.Kind{wire.Map, wire.Reduce}).Draw(t, "phase"),
		Slots:     rapid.IntRange(0, 30).Draw(t, "slots"),
		Bandwidth: rapid.SampledFrom([]float64{0, 1, 1e9, 1e15}).Draw(t, "bandwidth"),
	}
	amount := rapid.SampledFrom([]float64{0, 0.5, 1, 3, 1e-15, 1e15})
	for n := range rapid.IntRange(0, 8).Draw(t, "jobs") {
		if rapid.Bool().Draw(t, "maps") {
			s.Jobs = append(s.Jobs, scheduler.Job{
				ID: id(n + 1), Max: rapid.IntRange(0, 12).Draw(t, "max"), Min: rapid.IntRange(0, 4).Draw(t, "min"),
				Work: amount.Draw(t, "work"), Alone: amount.Draw(t, "alone"),
			})
		}
		if rapid.Bool().Draw(t, "shuffles") {
			s.Transfers = append(s.Transfers, scheduler.Transfer{
				ID: id(n + 1), Ready: amount.Draw(t, "ready"), Left: amount.Draw(t, "left"),
				Whole: amount.Draw(t, "whole"), Maps: amount.Draw(t, "alone"),
			})
		}
	}
	return s
}
