package overlap

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/scheduler/overlap"
)

// The policies of the job tracker in the model.
var (
	maxSRPTRates   = lending(overlap.MaxSRPT{}.Lanes)
	splitSRPTRates = lending(overlap.SplitSRPT{}.Lanes)
	srptRates      = lending(overlap.SRPT{}.Lanes)
)

func modelPolicies() map[string]ratesOf {
	return map[string]ratesOf{
		"maxsrpt":   maxSRPTRates,
		"splitsrpt": splitSRPTRates,
		"strict":    strictRates,
		"srpt":      srptRates,
		"lps":       modelLPS(2),
		"order":     inOrder([]int{2, 0, 1}, []int{1, 0, 2}),
	}
}

// batch draws arrivals. Small whole numbers make many ties, and sizes of 0.
func batch(t *rapid.T, jobs int, together bool) []modelArrival {
	size := rapid.Map(rapid.Float64Range(0, 10), func(x float64) float64 {
		if x < 1e-9 { // half of the least positive float64 would be 0
			return 0
		}
		return x
	})
	if rapid.Bool().Draw(t, "whole") {
		size = rapid.Map(rapid.IntRange(0, 4), func(n int) float64 { return float64(n) })
	}
	arrivals := make([]modelArrival, rapid.IntRange(0, jobs).Draw(t, "jobs"))
	at := 0.0
	for i := range arrivals {
		if !together {
			at += size.Draw(t, "gap") / 2
		}
		arrivals[i] = modelArrival{At: at, Map: size.Draw(t, "x"), Shuffle: size.Draw(t, "y")}
	}
	return arrivals
}

func total(t fataler, p ratesOf, arrivals []modelArrival) float64 {
	ends, err := runModel(p, arrivals, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	sum := 0.0
	for i, end := range ends {
		sum += end - arrivals[i].At
	}
	return sum
}

// TestModelConserves: in every span the rates of a station are not negative and sum to at most
// 1. Only jobs with work are served, and no station idles while it could work. All work that
// has arrived is either done or left.
func TestModelConserves(t *testing.T) {
	for name, p := range modelPolicies() {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				arrivals := batch(t, 12, false)
				maps, shuffles := 0.0, 0.0 // work done
				_, err := runModel(p, arrivals, func(s *modelSpan) {
					checkSpan(t, s, name == "strict")
					arrived, arrivedShuffle := 0.0, 0.0
					for _, a := range arrivals {
						if a.At <= s.From {
							arrived, arrivedShuffle = arrived+a.Map, arrivedShuffle+a.Shuffle
						}
					}
					left, leftShuffle := 0.0, 0.0
					for i := range s.Jobs {
						left, leftShuffle = left+s.Jobs[i].MapLeft, leftShuffle+s.Jobs[i].ShuffleLeft()
						maps, shuffles = maps+s.Maps[i]*(s.To-s.From), shuffles+s.Shuffles[i]*(s.To-s.From)
					}
					doneBefore := maps - sum(s.Maps)*(s.To-s.From)
					shuffledBefore := shuffles - sum(s.Shuffles)*(s.To-s.From)
					if math.Abs(arrived-left-doneBefore) > 1e-6 || math.Abs(arrivedShuffle-leftShuffle-shuffledBefore) > 1e-6 {
						t.Fatalf("at %v: (%v, %v) has arrived, (%v, %v) is left, (%v, %v) is done", s.From, arrived, arrivedShuffle, left, leftShuffle, doneBefore, shuffledBefore)
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

func checkSpan(t *rapid.T, s *modelSpan, mayIdle bool) {
	toMap, ready := false, false
	for i, j := range s.Jobs {
		toMap, ready = toMap || j.MapLeft > 0, ready || j.Ready > 0
		switch inflow := s.Maps[i] * j.Ratio; {
		case s.Maps[i] < 0 || s.Shuffles[i] < 0:
			t.Fatalf("job %d is served at (%v, %v)", j.Number, s.Maps[i], s.Shuffles[i])
		case j.MapLeft == 0 && s.Maps[i] > 0:
			t.Fatalf("job %d is mapped and has no map work", j.Number)
		case j.Ready == 0 && s.Shuffles[i] > inflow+1e-12:
			t.Fatalf("job %d is shuffled at %v and makes %v", j.Number, s.Shuffles[i], inflow)
		case j.Ready < 0 || j.MapLeft < 0:
			t.Fatalf("job %d has (%v, %v) left", j.Number, j.MapLeft, j.Ready)
		}
	}
	mapped, shuffled := sum(s.Maps), sum(s.Shuffles)
	if mapped > 1+1e-12 || shuffled > 1+1e-12 {
		t.Fatalf("rates sum to (%v, %v)", mapped, shuffled)
	}
	if !mayIdle && (toMap && mapped < 1-1e-12 || ready && shuffled < 1-1e-12) {
		t.Fatalf("at %v a station idles: (%v, %v)", s.From, mapped, shuffled)
	}
}

// TestGuarantees checks corollaries 4 and 6 against every pair of orders, one for each station.
// One order for both stations is not enough for the optimum (testdata/orders.txt).
func TestGuarantees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arrivals := batch(t, 4, true)
		alpha, beta := 1.0, math.Inf(1)
		for _, a := range arrivals {
			j := newJob(a.Map, a.Shuffle)
			alpha, beta = max(alpha, j.Unbalance()), min(beta, j.Unbalance())
		}
		optimum := math.Inf(1)
		permutations(len(arrivals), func(maps []int) {
			permutations(len(arrivals), func(shuffles []int) {
				optimum = min(optimum, total(t, inOrder(maps, shuffles), arrivals))
			})
		})
		factor := 2.0
		if !math.IsInf(alpha, 1) {
			factor = 2 * alpha / (1 + alpha)
		}
		if got := total(t, maxSRPTRates, arrivals); got > factor*optimum+1e-6 {
			t.Fatalf("MaxSRPT takes %v, more than %v times %v", got, factor, optimum)
		}
		for name, p := range map[string]ratesOf{"SplitSRPT": splitSRPTRates, "SplitSRPT as printed": strictRates} {
			if got := total(t, p, arrivals); got > (1+1/beta)*optimum+1e-6 {
				t.Fatalf("%s takes %v, more than %v times %v", name, got, 1+1/beta, optimum)
			}
		}
		if bound, err := modelBound(arrivals); err != nil || bound > optimum+1e-6 {
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

// TestGuaranteesAreTight: the paper's examples come within 3 % of both factors.
func TestGuaranteesAreTight(t *testing.T) {
	const n, heavy, epsilon = 400, 4, 0.001
	var pairs, turns []modelArrival
	var alternate []int
	for i := range n {
		a := modelArrival{Map: heavy - epsilon, Shuffle: 1}
		if i >= n/2 {
			a = modelArrival{Map: 1, Shuffle: heavy}
			alternate = append(alternate, i, i-n/2)
		}
		pairs = append(pairs, a)
		turns = append(turns, modelArrival{Map: heavy, Shuffle: 1})
	}
	turns[n-1] = modelArrival{Map: n - 1, Shuffle: (n - 1) * heavy}
	byArrival := make([]int, n)
	for i := range byArrival {
		byArrival[i] = i
	}
	checkRatio := func(name string, p ratesOf, jobs []modelArrival, order []int, factor float64) {
		ratio := total(t, p, jobs) / total(t, inOrder(order, order), jobs)
		if ratio > factor || ratio < 0.97*factor {
			t.Errorf("%s: ratio %v, want at most 3 %% below %v", name, ratio, factor)
		}
	}
	checkRatio("MaxSRPT", maxSRPTRates, pairs, alternate, 2.0*heavy/(1+heavy))
	checkRatio("SplitSRPT as printed", strictRates, turns, byArrival, 1+1.0/heavy)
	checkRatio("SplitSRPT", splitSRPTRates, turns, byArrival, 1+1.0/heavy)
}

// TestOnline: MaxSRPT is never worse than SRPT at one station with sizes max(x, y), the basis
// of the proof of Theorem 3. No policy is better than the bound.
func TestOnline(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arrivals := batch(t, 12, false)
		single := slices.Clone(arrivals)
		for i, a := range single {
			single[i].Map, single[i].Shuffle = max(a.Map, a.Shuffle), 0
		}
		longest, err := modelBound(single)
		if err != nil {
			t.Fatal(err)
		}
		if got := total(t, maxSRPTRates, arrivals); got > longest+1e-6 {
			t.Fatalf("MaxSRPT takes %v, SRPT with sizes max(x, y) %v", got, longest)
		}
		bound, err := modelBound(arrivals)
		for name, p := range modelPolicies() {
			if got := total(t, p, arrivals); err != nil || got < bound-1e-6 {
				t.Fatalf("%s takes %v, below the bound %v (%v)", name, got, bound, err)
			}
		}
	})
}
