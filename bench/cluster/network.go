package cluster

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/wire"
)

const (
	networkRate  = 100e6 / 8 // bytes a second that each task tracker fetches
	networkSorts = 3         // at most, because one takes long
)

// network sorts a text with each codec of map output on a cluster. Its trackers have a network of 100 Mbit/s.
func (b *bench) network() error {
	return b.sortsByCodec("100 Mbit/s", "≥ 1.5", "-shuffle-rate", fmt.Sprint(int(networkRate)))
}

// fullSpeed does the same on trackers without a limit.
func (b *bench) fullSpeed() error { return b.sortsByCodec("no limit of the network", "–") }

func (b *bench) sortsByCodec(name, target string, flags ...string) error {
	in := b.Path("sort-text")
	if err := input.Text(in, b.Bytes); err != nil {
		return err
	}
	c, err := b.Cluster(testbed.Shape{Trackers: 3, Maps: 2, Reduces: 1, TaskTrackerFlags: flags})
	if err != nil {
		return err
	}
	return errors.Join(b.networkSorts(c, in, name, target), c.Close())
}

// networkSorts alternates the codecs. Their outputs must be equal.
func (b *bench) networkSorts(c *testbed.Cluster, in, name, target string) error {
	codecs := []string{"plain", "lz4", "zstd", "auto"}
	processor := make([]float64, len(codecs))
	var want [32]byte
	var sorts []func() (time.Duration, error)
	for k, codec := range codecs {
		args := []string{"-D", "mapreduce.job.reduces=3"}
		switch codec {
		case "plain":
		case "auto":
			args = append(args, "-D", "mapreduce.map.output.compress=auto")
		default:
			args = append(args, "-D", "mapreduce.map.output.compress=true", "-D", "mapreduce.map.output.compress.codec="+codec)
		}
		round := 0
		sorts = append(sorts, func() (time.Duration, error) {
			before, out := processorTime(c), c.NewPath("sorted")
			took, err := c.Run(b.Ctx, append(args, c.Program("sort"), "-input", in, "-output", out)...)
			if err != nil {
				return 0, err
			}
			if round++; round > 1 { // Alternate drops the first round too
				processor[k] += processorTime(c) - before
			}
			sum, err := testbed.Digest(local.New(), "file://"+out)
			if want == [32]byte{} {
				want = sum
			}
			if err == nil && sum != want {
				err = fmt.Errorf("%s differs from the first output", out)
			}
			return took, errors.Join(err, os.RemoveAll(out))
		})
	}
	took, err := testbed.Alternate(1, min(b.Runs, networkSorts), sorts...)
	if err != nil {
		return err
	}
	printTimes(fmt.Sprintf("%s: sort of a text of %d MB, three trackers, plain map output", name, b.Bytes/1_000_000), took[0], testbed.Seconds, "–")
	best := testbed.Median(took[0])
	for k, codec := range codecs[1:] {
		printTimes("the same with "+codec, took[k+1], testbed.Seconds, "–")
		if codec == "auto" {
			testbed.Row("auto ÷ the fastest of the others", testbed.Ratio(testbed.Median(took[k+1]), best), "", "≤ 1.05")
		} else {
			testbed.Row("plain ÷ "+codec, testbed.Ratio(testbed.Median(took[0]), testbed.Median(took[k+1])), "", target)
		}
		testbed.Row("processor time of daemons and tasks: "+codec+" ÷ plain", testbed.Ratio(processor[k+1], processor[0]), "", "–")
		best = min(best, testbed.Median(took[k+1]))
	}
	job, err := c.LastJob(b.Ctx)
	if err != nil {
		return err
	}
	for counter, n := range job.Counters[wire.QuernCounters] {
		if chosen, ok := strings.CutPrefix(counter, wire.MapOutputsPrefix); ok {
			testbed.Row("maps for which auto chose "+strings.ToLower(chosen), fmt.Sprint(n), "", "–")
		}
	}
	return nil
}
