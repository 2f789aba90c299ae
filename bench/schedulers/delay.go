package schedulers

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/wire"
)

// The input of the delay rules' jobs is on two of four nodes. Each map reads a block, then waits.
const (
	delayBlocks = 64
	delayBlock  = 1 << 20
	delayMap    = 500 * time.Millisecond
	delaySlots  = 2 // of each of four trackers
)

func delayRules() []string { return []string{"none", "fixed=3s", "dynamic"} }

// delay runs one job at a time over HDFS under alternating rules. The rule dynamic has the
// history of the earlier runs.
func (b *bench) delay() (err error) {
	h, err := b.HDFS(delayBlock, true, map[string]string{"dfs.namenode.heartbeat.recheck-interval": "1000"})
	if errors.Is(err, minicluster.ErrUnavailable) {
		fmt.Printf("Skipped: %v.\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	slow, err := testbed.NewSlowReads(h)
	if err != nil {
		return err
	}
	defer slow.Close()
	ins, err := b.writeInputs(h)
	if err != nil {
		return err
	}
	c, err := b.Cluster(testbed.Shape{Trackers: len(h.DataNodes), Maps: delaySlots, Reduces: 1, HDFS: h})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	seeds := b.Seeds(2)
	fmt.Printf("Seeds %v: %d maps that read a block of %d MB and wait for %v, 4 task trackers of %d slots beside DataNodes, the blocks on 2 of them.\n\n",
		seeds, delayBlocks, delayBlock>>20, delayMap, delaySlots)
	testbed.Table("copies of a block", "extra time of a remote block", "none", "fixed=3s", "dynamic", "dynamic / better", "target", "less than fixed by", "target")
	for _, copies := range []int{1, 2} {
		for _, amount := range []time.Duration{300 * time.Millisecond, 1500 * time.Millisecond, 6 * time.Second} { // extra time for a block from another node
			slow.Set(delayBlock, 0, amount)
			if err := b.delayRow(c, ins[copies], copies, amount, seeds); err != nil {
				return err
			}
		}
		slow.Set(delayBlock, 0, 0)
	}
	return nil
}

func (b *bench) delayRow(c *testbed.Cluster, in string, copies int, amount time.Duration, seeds []uint64) error {
	var sums [3]time.Duration
	rules := delayRules()
	for turn, seed := range seeds {
		for k := range rules {
			i := (k + turn) % len(rules) // rotate, so that "none" is not always first
			if err := c.API.Schedule(b.Ctx, wire.Scheduling{Scheduler: "fifo", Delay: rules[i]}); err != nil {
				return err
			}
			took, err := b.runReads(c, in, fmt.Sprintf("reads-%d-%v", copies, amount), seed)
			if err != nil {
				return err
			}
			sums[i] += took
		}
	}
	cell := func(sum time.Duration) string { return testbed.Seconds(sum / time.Duration(len(seeds))) }
	none, fixed, dynamic := sums[0], sums[1], sums[2]
	target := "–"
	if copies == 1 {
		target = "≥ 10 %"
	}
	testbed.Row(fmt.Sprint(copies), amount.String(), cell(none), cell(fixed), cell(dynamic),
		testbed.Ratio(dynamic, min(none, fixed)), "≤ 1.05", gain(dynamic.Seconds(), fixed.Seconds()), target)
	return nil
}

// runReads runs a job over the blocks and returns its time.
func (b *bench) runReads(c *testbed.Cluster, in, name string, seed uint64) (time.Duration, error) {
	if _, err := c.Run(b.Ctx, "-shared-local", "-D", "mapreduce.task.io.sort.mb=1", c.Program("waiting"), "-read",
		"-name", name, "-seed", fmt.Sprint(seed), "-map-time", delayMap.String(), "-spread", "0.3", "-input", in, "-output", c.NewPath("reads")); err != nil {
		return 0, err
	}
	last, err := c.LastJob(b.Ctx)
	if err != nil {
		return 0, err
	}
	b.Logf("%s of seed %d: %d ms, %v", name, seed, last.ElapsedMillis, last.Counters[wire.JobCounters])
	return time.Duration(last.ElapsedMillis) * time.Millisecond, nil
}

// writeInputs writes an input with one replica per block, one file per node, and an input with
// two replicas. Meanwhile the other two DataNodes are down, so that they get no replica.
func (b *bench) writeInputs(h *minicluster.Cluster) (ins map[int]string, err error) {
	up, down := h.DataNodes[:2], h.DataNodes[2:]
	for _, node := range down {
		if err := node.Kill(); err != nil {
			return nil, err
		}
	}
	if err := h.AwaitDataNodes(b.Ctx, h.NameNodes[0], len(up)); err != nil {
		return nil, err
	}
	ins = make(map[int]string)
	for copies := 1; copies <= len(up); copies++ {
		ins[copies] = fmt.Sprintf("%s/in%d", h.URL(), copies)
		for i, node := range up {
			if err := writeFile(h, node, dfs.Join(ins[copies], fmt.Sprint(i)), copies); err != nil {
				return nil, err
			}
		}
	}
	for _, node := range down {
		if err := node.Start(); err != nil {
			return nil, err
		}
	}
	return ins, h.Ready(b.Ctx, h.NameNodes[0], len(h.DataNodes))
}

// writeFile writes half of an input from a client on a DataNode's machine.
func writeFile(h *minicluster.Cluster, beside *minicluster.Daemon, name string, copies int) error {
	half := strings.Repeat("0123456789abcde\n", delayBlocks/2*delayBlock/16)
	return testbed.Put(h, strings.NewReader(half), name, beside, map[string]string{"dfs.replication": fmt.Sprint(copies)})
}
