package cluster

import (
	"fmt"
	"time"

	"github.com/quernmr/quern/bench/testbed"
)

// isolatedMaps is the number of maps of the job that isolation compares: nearly all reuse a worker.
const isolatedMaps = 1000

// isolation alternates a job of small maps on two clusters that differ only in -isolation.
func (b *bench) isolation() error {
	in, err := b.writeLines(isolatedMaps)
	if err != nil {
		return err
	}
	var count [2]func() (time.Duration, error)
	for k, level := range []string{"none", "namespace"} {
		c, err := b.Cluster(testbed.Shape{Trackers: 1, Maps: 2, Reduces: 1, TaskTrackerFlags: []string{"-isolation", level}})
		if err != nil {
			return err
		}
		defer c.Close()
		count[k] = func() (time.Duration, error) {
			return c.Run(b.Ctx, "-D", "mapreduce.input.fileinputformat.split.maxsize=128", "-D", "mapreduce.map.speculative=false",
				c.Program("wordcount"), "-input", in, "-output", c.NewPath("counted"))
		}
	}
	took, err := testbed.Alternate(1, b.Runs, count[0], count[1])
	if err != nil {
		return err
	}
	more := testbed.Median(took[1]) - testbed.Median(took[0])
	printTimes(fmt.Sprintf("isolation: word count of %d maps, -isolation none", isolatedMaps), took[0], testbed.Seconds, "–")
	printTimes("the same with -isolation namespace", took[1], testbed.Seconds, "–")
	testbed.Row("difference of the medians for each map", fmt.Sprintf("%.2f ms", more.Seconds()*1000/isolatedMaps), "", "≤ 2 ms")
	return nil
}
