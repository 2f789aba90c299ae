package steps

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/quernmr/quern/sim"
)

// printFit prints rates that fit all measured Steps.
func (b *bench) printFit() error {
	if !b.fit {
		fmt.Println("-fit prints rates that fit these Steps.")
		return nil
	}
	for _, k := range slices.SortedFunc(maps.Keys(b.samples), compareKinds) {
		steps := 0
		for _, s := range b.samples[k] {
			steps += s.n
		}
		if steps < fewSteps {
			continue
		}
		r := fit(b.samples[k])
		fmt.Printf("%-4s %q: {%s, %s, %s, %s, %s},\n", k.tracker, k.event, short(r[0]), short(r[1]), short(r[2]), short(r[3]), short(r[4]))
	}
	return nil
}

// short formats a rate with two digits.
func short(x float64) string {
	switch digits := math.Pow(10, math.Floor(math.Log10(max(x, 1)))-1); {
	case x < 0.1:
		return "0"
	case x < 10:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.0f", math.Round(x/digits)*digits)
	}
}

// fit minimises the weighted squares of relative errors, one rate after the other. An error is
// relative to the geometric mean of measured and modelled time, so half and double are equally
// wrong. No rate is negative. Frequent Steps count more, by the square root of their number.
func fit(samples []sample) (r sim.Rate) {
	scales := make([]float64, len(samples))
	for round := range 100 {
		for k, s := range samples {
			scales[k] = max(float64(s.took), 1)
			if round > 0 {
				scales[k] = math.Sqrt(scales[k] * max(modelled(&r, &s), 1))
			}
		}
		for range 50 {
			for i := range r {
				fitOne(&r, i, samples, scales)
			}
		}
	}
	return r
}

// fitOne finds the best value of one rate.
func fitOne(r *sim.Rate, i int, samples []sample, scales []float64) {
	up, down := 0.0, 0.0
	for k, s := range samples {
		rest := (float64(s.took) - modelled(r, &s) + r[i]*s.sizes[i]) / scales[k]
		weight, x := math.Sqrt(float64(s.n)), s.sizes[i]/scales[k]
		up += weight * x * rest
		down += weight * x * x
	}
	if down > 0 {
		r[i] = max(up/down, 0)
	}
}

// modelled returns the nanoseconds of a Step by the rates.
func modelled(r *sim.Rate, s *sample) (t float64) {
	for i, x := range s.sizes {
		t += r[i] * x
	}
	return t
}
