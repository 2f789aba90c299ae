package hdfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/trial"
)

// Row 29: a DataNode is killed while maps read its blocks; its tracker keeps running. The maps
// continue with other replicas. If a block has no other replica, the error names the block.
func TestJobLosesDataNode(t *testing.T) {
	c := cluster(t)
	p := newPlatform(t, c)
	lost := c.DataNodes[3]
	const block, blocks = 8 << 20, 6 // a block is more than a reader buffers
	content := longLines(blocks * block)
	in := p.put("in", content, withProperty("dfs.blocksize", "8m"), dialFrom(lost))
	awaitReplicas(t, p.fs, in, 2)
	singleText := text(2 * blockSize)
	single := p.put("single", singleText, withProperty("dfs.replication", "1"), dialFrom(lost))
	checkOnlyOn(t, lost, awaitReplicas(t, p.fs, single, 1))

	p.start(daemonShape{traces: true, jobTrackers: 1, nodes: c.DataNodes, slots: 1})
	j := p.paced(in, "-map-only", "-pause-early", "-gate")
	j.AwaitTraces("m", "began", 4)
	p.kill(lost)
	j.OpenGate()
	j.Succeed()
	j.CheckOnce("m", "r")
	p.checkOutput(j.Out, content)
	if failed := jobCounter(p.lastJob(), "NUM_FAILED_MAPS"); failed != 0 {
		t.Errorf("%d attempts have failed, want 0", failed)
	}
	nodeLocal := readCounter(p.lastJob(), "BYTES_READ_NODE_LOCAL")
	if nodeLocal >= jobCounter(p.lastJob(), "DATA_LOCAL_MAPS")*block {
		t.Errorf("node-local maps read all their bytes, %d, from the killed DataNode's machine", nodeLocal)
	}

	// The job has one map, so its error names the file's first block.
	j = p.paced(single, "-D", "mapreduce.map.maxattempts=1", "-D", "mapreduce.input.fileinputformat.split.minsize=4194304")
	j.Fail(1, single, filepath.Base(blockFile(t, lost, singleText[:blockSize])))
	p.checkNoOutput(j.Out)
	p.awaitTrackers(len(c.DataNodes))
	restart(t, c, lost)
	p.paced(single).Succeed()
}

// checkNoOutput checks that an output does not exist.
func (p *platform) checkNoOutput(out string) {
	p.t.Helper()
	if _, err := p.fs.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		p.t.Errorf("%s is left behind: %v", out, err)
	}
}

// Row 29: a job fails if its input is replaced or deleted while it runs. It never reads parts of
// both files.
func TestJobInputChanges(t *testing.T) {
	c := cluster(t)
	p := newPlatform(t, c)
	content := text(6 * blockSize)
	other := slices.Clone(content)
	slices.Reverse(other)
	for _, replaced := range []bool{true, false} {
		in := p.put(fmt.Sprintf("in-%v", replaced), content)
		j := p.paced(in, "-gate", "-D", "quern.embedded.slots=2")
		j.AwaitTraces("m", "began", 2)
		if err := p.fs.Remove(in); err != nil {
			t.Fatal(err)
		}
		want := "not exist"
		if replaced {
			p.put(in, other)
			want = "has changed"
		}
		j.OpenGate()
		j.Fail(1, in, want)
		p.checkNoOutput(j.Out)
	}
}

// A task tracker is killed while attempts write files, and later a job. The open files do not
// block other attempts, and are removed.
func TestJobKilledWhileWriting(t *testing.T) {
	c := cluster(t)
	p := newPlatform(t, c)
	content := longLines(8 * blockSize)
	in := p.put("in", content)
	p.start(daemonShape{traces: true, jobTrackers: 1, nodes: c.DataNodes, slots: 1, staging: dfs.Join(p.top, "staging"), flags: []string{"-lease", "2s"}})
	j := p.paced(in, "-map-only", "-pause-early", "-gate")
	j.AwaitTraces("m", "began", 4)
	if err := p.daemons.TaskTrackers[2].Kill(); err != nil {
		t.Fatal(err)
	}
	j.OpenGate()
	j.Succeed()
	p.checkOutput(j.Out, content)

	killed := p.paced(in, "-map-only", "-pause-early", "-gate")
	killed.AwaitTraces("m", "began", 3)
	killed.Signal(os.Interrupt)
	killed.Fail(1, "killed")
	p.checkNoOutput(killed.Out)
}

// Row 30: a relay drops answers of the NameNode to changes, for renames every second answer. The
// job succeeds.
func TestLostAnswers(t *testing.T) {
	c := cluster(t)
	p := newPlatform(t, c)
	content := text(6 * blockSize)
	p.put("in", content)
	seeded := rand.New(rand.NewPCG(30, 0))
	r := newRelay(t, c.NameNodes[0].Addr(), func(method string, n int) bool {
		switch {
		case strings.HasPrefix(method, "get"): // not a change
			return false
		case method == "rename2":
			return n%2 == 1
		}
		return n == 1 || seeded.IntN(3) == 0
	})
	top := r.url(p.top)
	p.command("mrsubmit", "run", "-D", "mapreduce.job.reduces=3", programs(t)+"/wordcount",
		"-input", top+"/in", "-output", top+"/out").Succeed()
	p.checkCounts(p.top+"/out", content)
	for _, method := range []string{"rename2", "create", "mkdirs", "complete", "delete", "addBlock"} {
		if _, lost := r.calls(method); lost == 0 {
			t.Errorf("no answer to %s was lost", method)
		}
	}
	if _, lost := r.calls("rename2"); lost < 6 { // of three tasks and three files
		t.Errorf("%d answers to renames were lost, want at least 6", lost)
	}
}

// A worker has no connection to HDFS while it has no task, or after its task has read the input.
func TestIdleWorkers(t *testing.T) {
	c := cluster(t)
	p := newPlatform(t, c)
	content := text(8 * blockSize)
	p.start(daemonShape{traces: true, jobTrackers: 1, nodes: c.DataNodes, slots: 1})
	j := p.paced(p.put("in", content), "-gate", "-gated-map", "0")
	j.AwaitTraces("m", "ended", 7)
	workers := p.workers()
	if len(workers) < 2 {
		t.Errorf("%d workers, want one that runs a task and others that wait", len(workers))
	}
	trial.Await(t, "end of all connections to HDFS", func() bool {
		open := connections(t, c.NameNodes[0], workers...)
		for _, d := range c.DataNodes {
			open += connections(t, d, workers...)
		}
		return open == 0
	})
	if still := p.workers(); len(still) < len(workers) {
		t.Errorf("only %d of %d workers still run", len(still), len(workers))
	}
	j.OpenGate()
	j.Succeed()
	j.CheckOnce("m", "r")
	p.checkCounts(j.Out, content)
}
