package overlap

import (
	"context"
	"testing"

	"github.com/quernmr/quern/sim/papers"
)

func engines() map[string]func() engine {
	return map[string]func() engine{
		"maxsrpt":   func() engine { return &maxSRPT{} },
		"splitsrpt": func() engine { return newSplitSRPT(false) },
		"srpt":      func() engine { return &srpt{} },
		"k-lps":     func() engine { return newLPS(100, false) },
		"bound":     func() engine { return &bound{} },
	}
}

func TestQuick(t *testing.T) {
	for name, make := range engines() {
		for _, load := range []float64{0.75, 0.9} {
			s := &source{workload: paperWorkload(load), rand: papers.Rand(1, "overlap", 0)}
			r, _ := run(context.Background(), make(), s, 1000000)
			t.Logf("%s %v: %d %v", name, load, r.finished, r.responses/float64(r.finished))
		}
	}
}

func BenchmarkEngines(b *testing.B) {
	for name, make := range engines() {
		b.Run(name, func(b *testing.B) {
			s := &source{workload: paperWorkload(0.75), rand: papers.Rand(1, "overlap", 0)}
			e := make()
			b.ReportAllocs()
			began := processorTime()
			b.ResetTimer()
			run(context.Background(), e, s, b.N)
			b.ReportMetric(float64(b.N)/(processorTime()-began).Seconds()/1e6, "Marrivals/cpu-s")
		})
	}
}
