// Package cluster measures a cluster of processes: the pause after the leader is killed, a small
// job, the bytes in the log, the join of a tracker, and the cost of TLS and of isolation. Each part
// has its own cluster on loopback, unless it says otherwise: three job trackers, and three task trackers
// with two map and two reduce slots each.
package cluster

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/testbed"
)

type bench struct{ *testbed.Bench }

// Section declares the flags and parts.
func Section() testbed.Section {
	b := &bench{}
	return testbed.Section{
		Name: "cluster", About: "failover, small jobs, the log, joins, TLS, isolation and a slow network on a cluster of processes",
		Runs: 10, Size: "1G",
		Programs: []string{"examples/wordcount", "examples/sort", "integration/trial/paced"},
		Open: func(base *testbed.Bench) error {
			b.Bench = base
			return nil
		},
		Columns: []string{"figure", "median", "worst", "target"},
		Parts: []testbed.Part{
			{Name: "leader killed under a job of 60 tasks", Measure: b.onCluster(b.failover)},
			{Name: "word count of 1 KB on a warm cluster", Measure: b.onCluster(b.smallJob)},
			{Name: "bytes in the log", Measure: b.onCluster(b.log)},
			{Name: "a tracker joins", Measure: b.onCluster(b.join)},
			{Name: "a straggler among ten trackers", Measure: b.straggler},
			{Name: "TLS: a sort, a small job and a fetch with and without", Measure: b.tls},
			{Name: "isolation: many small maps with and without", Measure: b.isolation},
			{Name: "100 Mbit/s: a sort by codec of map output", Measure: b.network},
			{Name: "full speed: a sort by codec of map output", Measure: b.fullSpeed},
		},
	}
}

func (b *bench) cluster(tls bool) (*testbed.Cluster, error) {
	return b.Cluster(testbed.Shape{JobTrackers: 3, Trackers: 3, Maps: 2, Reduces: 2, TLS: tls})
}

// onCluster starts a cluster for one measurement.
func (b *bench) onCluster(measure func(*testbed.Cluster) error) func() error {
	return func() error {
		c, err := b.cluster(false)
		if err != nil {
			return err
		}
		return errors.Join(measure(c), c.Close())
	}
}

// await polls until a condition holds.
func (b *bench) await(what string, holds func() bool) error {
	return testbed.Await(b.Ctx, testbed.StartWait, what, holds)
}

// writeLines writes n lines of 128 bytes.
func (b *bench) writeLines(n int) (name string, err error) {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "%-127s\n", fmt.Sprintf("w%d w%d w%d", i%7, i%31, i))
	}
	name = b.Path(fmt.Sprintf("lines%d", n))
	return name, os.WriteFile(name, []byte(text.String()), 0o666)
}

// printTimes prints a row with the median and the maximum.
func printTimes(name string, list []time.Duration, show func(time.Duration) string, target string) {
	testbed.Row(name, show(testbed.Median(list)), show(slices.Max(list)), target)
}
