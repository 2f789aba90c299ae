package cluster

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/wire"
)

// Ten trackers run stragglerWaves waves of maps that wait.
const (
	stragglerTrackers = 10
	stragglerWaves    = 12
	stragglerTask     = 2 * time.Second
)

// straggler compares jobs of waiting maps on ten healthy trackers with the same jobs when one of the
// trackers is slower by ten.
func (b *bench) straggler() error {
	c, err := b.Cluster(testbed.Shape{JobTrackers: 1, Trackers: stragglerTrackers, Maps: 1, Reduces: 1})
	if err != nil {
		return err
	}
	return errors.Join(b.stragglerOn(c), c.Close())
}

func (b *bench) stragglerOn(c *testbed.Cluster) error {
	in, err := b.writeLines(stragglerTrackers * stragglerWaves)
	if err != nil {
		return err
	}
	var times [2][]time.Duration
	var attempts, speculative [2]int
	for range b.Runs {
		for i, slow := range []string{"", c.TaskTrackers[0].Data()} {
			began := time.Now()
			if err := b.paced(c, in, c.NewPath("straggler"), "-map-time", stragglerTask.String(), "-slow-dir", slow)(); err != nil {
				return err
			}
			times[i] = append(times[i], time.Since(began))
			all, second, err := b.countSpeculative(c)
			if err != nil {
				return err
			}
			attempts[i], speculative[i] = attempts[i]+all, speculative[i]+second
		}
	}
	show := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	what := fmt.Sprintf("%d maps of %v on %d trackers", stragglerTrackers*stragglerWaves, stragglerTask, stragglerTrackers)
	printTimes(what+", all healthy", times[0], show, "")
	printTimes(what+", one slower by 10", times[1], show, "")
	ratio := testbed.Median(times[1]).Seconds() / testbed.Median(times[0]).Seconds()
	testbed.Row("ratio of the medians", fmt.Sprintf("%.2f", ratio), "", "≤ 1.30")
	for i, name := range []string{"all healthy", "one slower by 10"} {
		share := fmt.Sprintf("%.2f %% (%d of %d)", 100*float64(speculative[i])/float64(attempts[i]), speculative[i], attempts[i])
		testbed.Row("speculative attempts, "+name, share, "", []string{"≤ 1 %", ""}[i])
	}
	return nil
}

// countSpeculative counts the attempts of the last job's maps and reduces.
func (b *bench) countSpeculative(c *testbed.Cluster) (all, speculative int, err error) {
	last, err := c.LastJob(b.Ctx)
	if err != nil {
		return 0, 0, err
	}
	id, err := wire.ParseJobID(last.ID)
	if err != nil {
		return 0, 0, err
	}
	attempts, err := c.API.Attempts(b.Ctx, id)
	if err != nil {
		return 0, 0, err
	}
	for _, a := range attempts.Items {
		if !strings.Contains(a.ID, "_m_") && !strings.Contains(a.ID, "_r_") {
			continue
		}
		all++
		if a.Speculative {
			speculative++
		}
	}
	return all, speculative, nil
}
