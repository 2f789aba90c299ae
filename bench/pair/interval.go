package pair

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/quernmr/quern/bench/testbed"
)

// confidence is the intended probability of an interval.
const confidence = 0.95

// estimate is the ratio of figures and its interval.
type estimate struct {
	ratio, low, high float64
	probability      float64 // that the true median is from low to high
}

// estimateRatio estimates now / before from pairs of figures.
func estimateRatio(before, now []float64) estimate {
	ratios := make([]float64, len(now))
	for i := range now {
		if ratios[i] = 1; now[i] != before[i] { // 0 / 0 is no change
			ratios[i] = now[i] / before[i]
		}
	}
	slices.Sort(ratios)
	rank, probability := signRank(len(ratios))
	return estimate{testbed.Median(ratios), ratios[rank], ratios[len(ratios)-1-rank], probability}
}

// signRank returns a rank k, from 0. The interval from the k-th smallest to the k-th largest of n
// values has the true median with the returned probability. k is the largest rank with at least
// confidence, or 0. Each value is below the median with odds of a half: the sums are binomial.
func signRank(n int) (rank int, probability float64) {
	below := 0.0
	for k := 0; 2*k < n; k++ {
		ways, _ := math.Lgamma(float64(n + 1))
		these, _ := math.Lgamma(float64(k + 1))
		others, _ := math.Lgamma(float64(n - k + 1))
		below += math.Exp(ways - these - others - float64(n)*math.Ln2)
		if k > 0 && 1-2*below < confidence {
			break
		}
		rank, probability = k, max(1-2*below, 0)
	}
	return rank, probability
}

// rowNames lists the rows of the second revision, then those that only the first one has.
func rowNames(all [][]measured) []string {
	before, now := all[0][0], all[1][0]
	names := slices.Sorted(maps.Keys(now))
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, both := now[name]; !both {
			names = append(names, name)
		}
	}
	return names
}

// column returns the figures of a row; nil: none.
func column(all []measured, name string) (list []float64) {
	for _, m := range all {
		if x, has := m[name]; has {
			list = append(list, x)
		}
	}
	return list
}

func printRow(name string, before, now []float64) {
	if len(before) != len(now) {
		testbed.Row(name, median(before), median(now), "–", "–", "not in both")
		return
	}
	e := estimateRatio(before, now)
	interval, differs := fmt.Sprintf("%.3f to %.3f", e.low, e.high), ""
	if e.probability < confidence {
		interval += fmt.Sprintf(" (%.0f %%)", 100*e.probability)
	} else if e.low > 1 || e.high < 1 {
		differs = "yes"
	}
	testbed.Row(name, median(before), median(now), fmt.Sprintf("%.3f", e.ratio), interval, differs)
}

// median formats the median of figures of any unit.
func median(list []float64) string {
	if len(list) == 0 {
		return "–"
	}
	x := testbed.Median(list)
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}
