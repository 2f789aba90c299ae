package mix

import (
	"fmt"
	"math"
	"time"

	"github.com/quernmr/quern/bench/testbed"
)

// alone runs each workload alone under alternating rules. For the first seed the dynamic rule
// comes last, so that it has the history of the earlier runs.
func (b *bench) alone() error {
	seeds := b.Seeds(math.MaxInt)
	fmt.Printf("Seeds %v. Medians, and ratios of the sums over the seeds.\n\n", seeds)
	took := make(map[string]map[string][]time.Duration) // by workload, then by rule
	for turn, seed := range seeds {
		if err := b.writeInput(seed); err != nil {
			return err
		}
		for _, w := range workloads() {
			if took[w.name] == nil {
				took[w.name] = make(map[string][]time.Duration)
			}
			for k := range rules() {
				rule := rules()[(k+turn)%len(rules())] // rotate, so that "none" is not always first
				t, err := b.aloneOnce(w, seed, rule)
				if err != nil {
					return err
				}
				b.Logf("seed %d, %s, %s: %v", seed, w.name, rule, t)
				took[w.name][rule] = append(took[w.name][rule], t)
			}
		}
	}
	testbed.Table("", "none", "fixed=3s", "paper", "dynamic", "dynamic / fixed=3s", "target", "dynamic / none")
	logs, queries, worst := 0.0, 0, 0.0
	for _, w := range workloads() {
		cells, target := []string{w.name}, "–"
		for _, rule := range rules() {
			cells = append(cells, testbed.Seconds(testbed.Median(took[w.name][rule])))
		}
		dynamic, fixed := sum(took[w.name]["dynamic"]), sum(took[w.name]["fixed=3s"])
		if w.query {
			target = "≤ 1.02"
			queries++
			logs += math.Log(dynamic / fixed)
			worst = max(worst, dynamic/fixed)
		}
		testbed.Row(append(cells, testbed.Ratio(dynamic, fixed), target, testbed.Ratio(dynamic, sum(took[w.name]["none"])))...)
	}
	fmt.Printf("\nA query is %.0f %% faster under dynamic than under fixed=3s (geometric mean; target: ≥ 8 %%). The largest ratio of a query is %.2f.\n",
		100*(1-math.Exp(logs/float64(queries))), worst)
	return nil
}

func (b *bench) aloneOnce(w workload, seed uint64, rule string) (time.Duration, error) {
	if err := b.setRule(rule); err != nil {
		return 0, err
	}
	out := b.output()
	if _, err := b.run(w, seed, out); err != nil {
		return 0, err
	}
	last, err := b.cluster.LastJob(b.Ctx) // in a flow, the job that ends last
	if err != nil {
		return 0, err
	}
	return time.Duration(last.ElapsedMillis) * time.Millisecond, b.checkAnswer(w, seed, out)
}

// sum returns the sum in seconds.
func sum(list []time.Duration) float64 {
	total := 0.0
	for _, t := range list {
		total += t.Seconds()
	}
	return total
}
