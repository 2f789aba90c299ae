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
	"github.com/quernmr/quern/scheduler/overlap"
	"github.com/quernmr/quern/wire"
)

func policies() map[string]overlap.Policy {
	return map[string]overlap.Policy{
		"maxsrpt":   overlap.MaxSRPT{},
		"splitsrpt": overlap.SplitSRPT{},
		"strict":    overlap.SplitSRPT{Strict: true},
		"srpt":      overlap.SRPT{},
		"lps":       overlap.LPS{K: 2},
		"order":     overlap.InOrder{Maps: []int{2, 0, 1}, Shuffles: []int{1, 0, 2}},
	}
}

// batch draws arrivals; small whole numbers make many ties, and sizes of 0.
func batch(t *rapid.T, jobs int, together bool) []overlap.Arrival {
	size := rapid.Map(rapid.Float64Range(0, 10), func(x float64) float64 {
		if x < 1e-9 { // seconds; half of the least positive number is none
			return 0
		}
		return x
	})
	if rapid.Bool().Draw(t, "whole") {
		size = rapid.Map(rapid.IntRange(0, 4), func(n int) float64 { return float64(n) })
	}
	arrivals := make([]overlap.Arrival, rapid.IntRange(0, jobs).Draw(t, "jobs"))
	at := 0.0
	for i := range arrivals {
		if !together {
			at += size.Draw(t, "gap") / 2
		}
		arrivals[i] = overlap.Arrival{At: at, Map: size.Draw(t, "x"), Shuffle: size.Draw(t, "y")}
	}
	return arrivals
}

func total(t fataler, p overlap.Policy, arrivals []overlap.Arrival) float64 {
	ends, err := overlap.Run(p, arrivals, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	sum := 0.0
	for i, end := range ends {
		sum += end - arrivals[i].At
	}
	return sum
}

type fataler interface{ Fatalf(string, ...any) }

// TestConservation holds every policy to O1 and O2 in every span, and work done to what
// has come in: what the stations have done is what jobs are short of.
func TestConservation(t *testing.T) {
	for name, p := range policies() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				arrivals := batch(t, 12, false)
				maps, shuffles := 0.0, 0.0 // done
				_, err := overlap.Run(p, arrivals, func(s *overlap.Span) {
					checkSpan(t, s, name == "strict")
					came, cameShuffle := 0.0, 0.0
					for _, a := range arrivals {
						if a.At <= s.From {
							came, cameShuffle = came+a.Map, cameShuffle+a.Shuffle
						}
					}
					left, leftShuffle := 0.0, 0.0
					for i := range s.Jobs {
						left, leftShuffle = left+s.Jobs[i].Left, leftShuffle+s.Jobs[i].ShuffleLeft()
						maps, shuffles = maps+s.Maps[i]*(s.To-s.From), shuffles+s.Shuffles[i]*(s.To-s.From)
					}
					doneBefore := maps - sum(s.Maps)*(s.To-s.From)
					shuffledBefore := shuffles - sum(s.Shuffles)*(s.To-s.From)
					if math.Abs(came-left-doneBefore) > 1e-6 || math.Abs(cameShuffle-leftShuffle-shuffledBefore) > 1e-6 {
						t.Fatalf("at %v (%v, %v) came, (%v, %v) is left, (%v, %v) is done", s.From, came, cameShuffle, left, leftShuffle, doneBefore, shuffledBefore)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func sum(rates []float64) (all float64) {
	for _, r := range rates {
		all += r
	}
	return all
}

func checkSpan(t *rapid.T, s *overlap.Span, lazy bool) {
	toMap, ready := false, false
	for i, j := range s.Jobs {
		toMap, ready = toMap || j.Left > 0, ready || j.Ready > 0
		switch inflow := s.Maps[i] * j.Ratio; {
		case s.Maps[i] < 0 || s.Shuffles[i] < 0:
			t.Fatalf("job %d is served at (%v, %v)", j.Number, s.Maps[i], s.Shuffles[i])
		case j.Left == 0 && s.Maps[i] > 0:
			t.Fatalf("job %d is mapped and has no map work", j.Number)
		case j.Ready == 0 && s.Shuffles[i] > inflow+1e-12:
			t.Fatalf("job %d is shuffled at %v and makes %v", j.Number, s.Shuffles[i], inflow)
		case j.Ready < 0 || j.Left < 0:
			t.Fatalf("job %d has (%v, %v) left", j.Number, j.Left, j.Ready)
		}
	}
	mapped, shuffled := sum(s.Maps), sum(s.Shuffles)
	if mapped > 1+1e-12 || shuffled > 1+1e-12 {
		t.Fatalf("rates sum to (%v, %v)", mapped, shuffled)
	}
	if !lazy && (toMap && mapped < 1-1e-12 || ready && shuffled < 1-1e-12) {
		t.Fatalf("at %v a station idles: (%v, %v)", s.From, mapped, shuffled)
	}
}

// TestGuarantees: corollaries 4 and 6, against every pair of orders, one for each
// station: one for both is not enough (testdata/orders.txt).
func TestGuarantees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arrivals := batch(t, 4, true)
		alpha, beta := 1.0, math.Inf(1)
		for _, a := range arrivals {
			j := overlap.NewJob(a.Map, a.Shuffle)
			alpha, beta = max(alpha, j.Unbalance()), min(beta, j.Unbalance())
		}
		optimum := math.Inf(1)
		permutations(len(arrivals), func(maps []int) {
			permutations(len(arrivals), func(shuffles []int) {
				optimum = min(optimum, total(t, overlap.InOrder{Maps: maps, Shuffles: shuffles}, arrivals))
			})
		})
		factor := 2.0
		if !math.IsInf(alpha, 1) {
			factor = 2 * alpha / (1 + alpha)
		}
		if got := total(t, overlap.MaxSRPT{}, arrivals); got > factor*optimum+1e-6 {
			t.Fatalf("MaxSRPT takes %v, more than %v times %v", got, factor, optimum)
		}
		for _, p := range []overlap.SplitSRPT{{}, {Strict: true}} {
			if got := total(t, p, arrivals); got > (1+1/beta)*optimum+1e-6 {
				t.Fatalf("%+v takes %v, more than %v times %v", p, got, 1+1/beta, optimum)
			}
		}
		if bound, err := overlap.Bound(arrivals); err != nil || bound > optimum+1e-6 {
			t.Fatalf("bound %v (%v) above %v", bound, err, optimum)
		}
	})
}

func permutations(n int, visit func([]int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var from func(int)
	from = func(k int) {
		if k >= n-1 {
			visit(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			from(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	from(0)
}

// TestGuaranteesAreTight: the paper's examples come near both factors.
func TestGuaranteesAreTight(t *testing.T) {
	const n, heavy, epsilon = 400, 4, 0.001
	var pairs, turns []overlap.Arrival
	var alternate []int
	for i := range n {
		a := overlap.Arrival{Map: heavy - epsilon, Shuffle: 1}
		if i >= n/2 {
			a = overlap.Arrival{Map: 1, Shuffle: heavy}
			alternate = append(alternate, i, i-n/2)
		}
		pairs = append(pairs, a)
		turns = append(turns, overlap.Arrival{Map: heavy, Shuffle: 1})
	}
	turns[n-1] = overlap.Arrival{Map: n - 1, Shuffle: (n - 1) * heavy}
	inOrder := make([]int, n)
	for i := range inOrder {
		inOrder[i] = i
	}
	near := func(name string, p overlap.Policy, jobs []overlap.Arrival, order []int, factor float64) {
		ratio := total(t, p, jobs) / total(t, overlap.InOrder{Maps: order, Shuffles: order}, jobs)
		if ratio > factor || ratio < 0.97*factor {
			t.Errorf("%s: ratio %v, the paper's is near %v", name, ratio, factor)
		}
	}
	near("MaxSRPT", overlap.MaxSRPT{}, pairs, alternate, 2.0*heavy/(1+heavy))
	near("SplitSRPT as printed", overlap.SplitSRPT{Strict: true}, turns, inOrder, 1+1.0/heavy)
	near("SplitSRPT", overlap.SplitSRPT{}, turns, inOrder, 1+1.0/heavy)
}

// TestOnline: MaxSRPT is never worse than SRPT at one station with sizes max(x, y), which
// is what the proof of Theorem 3 rests on; and nobody is better than the bound.
func TestOnline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arrivals := batch(t, 12, false)
		single := slices.Clone(arrivals)
		for i, a := range single {
			single[i].Map, single[i].Shuffle = max(a.Map, a.Shuffle), 0
		}
		longest, err := overlap.Bound(single)
		if err != nil {
			t.Fatal(err)
		}
		if got := total(t, overlap.MaxSRPT{}, arrivals); got > longest+1e-6 {
			t.Fatalf("MaxSRPT takes %v, SRPT of the longest sides %v", got, longest)
		}
		bound, err := overlap.Bound(arrivals)
		for name, p := range policies() {
			if got := total(t, p, arrivals); err != nil || got < bound-1e-6 {
				t.Fatalf("%s takes %v, below the bound %v (%v)", name, got, bound, err)
			}
		}
	})
}

// TestPlans: a plan of any snapshot is valid, keeps minima (S4), leaves no slot that a job
// could use, leaves no network where a home could fetch, and depends on nothing but values.
func TestPlans(t *testing.T) {
	for name, p := range map[string]scheduler.Policy{"maxsrpt": overlap.MaxSRPT{}, "splitsrpt": overlap.SplitSRPT{}, "srpt": overlap.SRPT{}} {
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
	if err := plan.KeepsMinima(s); err != nil {
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
	for _, portion := range plan.Portions {
		share += portion.Share
	}
	for _, transfer := range s.Transfers {
		ready = ready || transfer.Ready > 0
	}
	if s.Phase == wire.Map && ready && math.Abs(share-1) > 1e-9 {
		return fmt.Errorf("%v of the shuffle is planned, and there is work", share)
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
