package mix

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/sim/papers"
)

// The number of arrivals in a mix, and the mean of the exponential gaps between them.
const (
	arrivals = 12
	meanGap  = 2 * time.Second
)

// arrival is a workload and its time of submission.
type arrival struct {
	workload
	at time.Duration
}

// drawMix draws the arrivals of a seed, the same for every rule. Each workload is equally likely.
func drawMix(seed uint64) []arrival {
	r, all := papers.Rand(seed, "arrivals", 0), workloads()
	var mix []arrival
	at := time.Duration(0)
	for range arrivals {
		mix = append(mix, arrival{all[r.IntN(len(all))], at})
		at += time.Duration(r.ExpFloat64() * float64(meanGap))
	}
	return mix
}

// mixed runs the mix of each seed under each rule.
func (b *bench) mixed() error {
	seeds := b.Seeds(2)
	fmt.Printf("Seeds %v: %d arrivals, %v between them on average, under fair.\n\n", seeds, arrivals, meanGap)
	took := make(map[string][]time.Duration) // by rule
	for turn, seed := range seeds {
		if err := b.writeInput(seed); err != nil {
			return err
		}
		for k := range rules() {
			rule := rules()[(k+turn)%len(rules())]
			times, err := b.runMix(drawMix(seed), seed, rule)
			if err != nil {
				return err
			}
			took[rule] = append(took[rule], times...)
		}
	}
	testbed.Table("rule", "mean response", "median", "to fixed=3s")
	for _, rule := range rules() {
		mean := sum(took[rule]) / float64(len(took[rule]))
		testbed.Row(rule, fmt.Sprintf("%.2f s", mean), testbed.Seconds(testbed.Median(took[rule])),
			testbed.Ratio(sum(took[rule]), sum(took["fixed=3s"])))
	}
	return nil
}

// runMix returns each workload's time from arrival to end.
func (b *bench) runMix(mix []arrival, seed uint64, rule string) ([]time.Duration, error) {
	if err := b.setRule(rule); err != nil {
		return nil, err
	}
	times, errs := make([]time.Duration, len(mix)), make([]error, len(mix))
	outs := make([]string, len(mix))
	var running sync.WaitGroup
	began := time.Now()
	for i, a := range mix {
		select {
		case <-time.After(time.Until(began.Add(a.at))):
		case <-b.Ctx.Done():
		}
		outs[i] = b.output()
		running.Go(func() { times[i], errs[i] = b.run(a.workload, seed, outs[i]) })
	}
	running.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i, a := range mix {
		b.Logf("seed %d, %s at %v, %s: %v", seed, a.name, a.at.Round(time.Millisecond), rule, times[i])
		if err := b.checkAnswer(a.workload, seed, outs[i]); err != nil {
			return nil, err
		}
	}
	return times, nil
}
