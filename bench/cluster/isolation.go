package cluster

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/bench/testbed"
)

// isolation compares two clusters that differ only in -isolation: by a job of many small maps, where nearly all
// reuse a worker, and by one where each map needs a new worker.
func (b *bench) isolation() error {
	if err := b.isolatedMaps(1000, 2, "≤ 2 ms"); err != nil {
		return err
	}
	return b.isolatedMaps(40, 40, "–")
}

func (b *bench) isolatedMaps(maps, slots int, target string) error {
	in, err := b.writeLines(maps)
	if err != nil {
		return err
	}
	var count [2]func() (time.Duration, error)
	var processor [2]float64
	for k, level := range []string{"none", "namespace"} {
		c, err := b.Cluster(testbed.Shape{Trackers: 1, Maps: slots, Reduces: 1, TaskTrackerFlags: []string{"-isolation", level}})
		if err != nil {
			return err
		}
		defer c.Close()
		rounds := 0
		count[k] = func() (time.Duration, error) {
			before := processorTime(c)
			took, err := c.Run(b.Ctx, "-D", "mapreduce.input.fileinputformat.split.maxsize=128", "-D", "mapreduce.map.speculative=false",
				c.Program("wordcount"), "-input", in, "-output", c.NewPath("counted"))
			if rounds++; rounds > 1 { // Alternate drops the first round, too
				processor[k] += processorTime(c) - before
			}
			return took, err
		}
	}
	took, err := testbed.Alternate(1, b.Runs, count[0], count[1])
	if err != nil {
		return err
	}
	more := testbed.Median(took[1]) - testbed.Median(took[0])
	perMap := 1000 / float64(maps)
	printTimes(fmt.Sprintf("isolation: word count of %d maps on %d slots, -isolation none", maps, slots), took[0], testbed.Seconds, "–")
	printTimes("the same with -isolation namespace", took[1], testbed.Seconds, "–")
	testbed.Row("difference of the medians for each map", fmt.Sprintf("%.2f ms", more.Seconds()*perMap), "", target)
	testbed.Row("difference of the processor times of daemons and tasks for each map", fmt.Sprintf("%.2f ms", (processor[1]-processor[0])/float64(b.Runs)*perMap), "", "–")
	return nil
}
