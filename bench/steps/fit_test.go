package steps

import (
	"math"
	"testing"
	"time"

	"github.com/quernmr/quern/sim"
)

// TestFit: a fit finds the rates of Steps that follow the model, and is not misled by sizes that
// cost nothing.
func TestFit(t *testing.T) {
	want := sim.Rate{500, 20, 300, 0, 7}
	var samples []sample
	for i := range 60 {
		s := sample{sizes: [5]float64{1, float64(i % 7 * 10), float64(i % 5), float64(i % 11), float64(i % 3 * 100)}, n: 1 + i}
		s.took = time.Duration(modelled(&want, &s))
		samples = append(samples, s)
	}
	got := fit(samples)
	for i := range want {
		if math.Abs(got[i]-want[i]) > 0.02*want[i]+0.5 {
			t.Errorf("the rates are %.1f, want %.1f", got, want)
		}
	}
}

// TestClass: sizes of a class differ by less than half, and larger sizes have larger classes.
func TestClass(t *testing.T) {
	first := 0
	for n := 1; n < 100_000; n++ {
		switch {
		case class(n) < class(n-1):
			t.Fatalf("class %d of %d follows class %d", class(n), n, class(n-1))
		case class(n) > class(n-1):
			first = n
		case float64(n) > 1.6*float64(first)+1:
			t.Fatalf("%d and %d are in one class", first, n)
		}
	}
}
