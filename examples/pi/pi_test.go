package main

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

func estimate(t *testing.T, maps int, samples int64) string {
	return mrtest.RunFiles(t, mrtest.Program(func() (*mapreduce.Job, error) { return pi(maps, samples) }), nil).Text()
}

// TestHadoop: the estimates are those of Hadoop's example.
func TestHadoop(t *testing.T) {
	examples.Check(t, "pi-3-1000", map[string]string{"printed": estimate(t, 3, 1000)})
	examples.Check(t, "pi-7-999", map[string]string{"printed": estimate(t, 7, 999)})
}

// TestOneSequence: maps divide one sequence of points, so more maps of fewer points give the same estimate. Its
// points are those of the definition.
func TestOneSequence(t *testing.T) {
	if one, ten := estimate(t, 1, 1000), estimate(t, 10, 100); one != ten {
		t.Errorf("%q with one map, %q with ten", one, ten)
	}
	mirrored := func(n, base int) (x float64) {
		for weight := 1 / float64(base); n > 0; weight /= float64(base) {
			x, n = x+weight*float64(n%base), n/base
		}
		return x
	}
	n := 100
	for p := range halton(100, 500) {
		n++
		if x, y := mirrored(n, 2), mirrored(n, 3); math.Abs(p[0]-x) > 1e-12 || math.Abs(p[1]-y) > 1e-12 {
			t.Fatalf("point %d is %v, want about (%v, %v)", n, p, x, y)
		}
	}
}

// TestBadUse: numbers of points that cannot be counted are refused.
func TestBadUse(t *testing.T) {
	for _, c := range []struct {
		maps    int
		samples int64
	}{{1, 0}, {3, -5}, {2, math.MaxInt64}} {
		if _, err := pi(c.maps, c.samples); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("-samples %d: want 1 or more", c.samples)) {
			t.Errorf("%d maps of %d points: error %v", c.maps, c.samples, err)
		}
	}
}
