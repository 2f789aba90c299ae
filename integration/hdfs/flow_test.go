package hdfs_test

import (
	"fmt"
	"testing"

	"github.com/quernmr/quern/dfs"
)

// TestFlowInBlocks: the first job of a flow writes a file of several blocks, and the second job's
// splits begin anywhere in it. Each map reads the index at the file's end and its own part. Every
// record is read once.
func TestFlowInBlocks(t *testing.T) {
	c := cluster(t)
	p := newPlatform(t, c)
	const blocks, splitSize = 3, blockSize / 5
	all, line := text(blocks*blockSize), ".+"
	in := p.put("in", all)
	p.start(daemonShape{jobTrackers: 1, nodes: c.DataNodes, slots: 1, staging: dfs.Join(p.top, "staging")})
	out := dfs.Join(p.top, "out")
	p.submit("grep", "-count", "-e", line, "-D", "mapreduce.job.reduces=1", "-D", fmt.Sprintf("mapreduce.input.fileinputformat.split.maxsize=%d", splitSize),
		"-input", in, "-output", out).Succeed()
	if maps := jobCounter(p.lastJob(), "TOTAL_LAUNCHED_MAPS"); maps <= blocks*blockSize/splitSize {
		t.Errorf("%d maps in the second job, want more than %d", maps, blocks*blockSize/splitSize)
	}
	p.checkOutput(dfs.Join(out, "grep-sort"), mostFrequent(all, line))
}
