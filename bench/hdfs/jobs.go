package hdfs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
)

// jobs runs the same program in turn on a cluster of processes over HDFS and
// embedded on local files, with as many slots: a core is a tracker beside its own
// DataNode, and of its input a tracker has its part there.
func (b *bench) jobs() error {
	nodes := b.hdfs.DataNodes[:min(runtime.NumCPU(), len(b.hdfs.DataNodes))]
	c, err := b.trackers(len(nodes), 1)
	if err != nil {
		return err
	}
	defer c.Close()
	dir, err := b.directory()
	if err != nil {
		return err
	}
	for _, j := range []struct {
		name, program, reach string
		make                 func(file string, n int64) error
	}{
		{"word count", "wordcount", "≥ 0.5", input.Text},
		{"sort of 100-byte lines", "sort", "≥ 0.35", input.Lines},
	} {
		in := dfs.Join(dir, j.program)
		if err := errors.Join(b.fs.Mkdir(in), os.MkdirAll(b.Path(j.program+"-in"), 0o777)); err != nil {
			return err
		}
		for i, node := range nodes {
			name := fmt.Sprint(i)
			file := b.Path(j.program + "-in/" + name)
			if err := j.make(file, b.Bytes/int64(len(nodes))); err != nil {
				return err
			}
			if err := testbed.PutFile(b.hdfs, file, dfs.Join(in, name), node, nil); err != nil {
				return err
			}
		}
		if err := b.pair(c, j.name, j.program, in, dfs.Join(dir, "out"), j.reach, len(nodes)); err != nil {
			return err
		}
	}
	return b.fs.RemoveAll(dir)
}

// pair runs a job in both places in turn, compares the outputs, and prints the medians.
func (b *bench) pair(c *testbed.Cluster, name, program, in, out, reach string, slots int) error {
	localIn, localOut := b.Path(program+"-in"), b.Path(program+"-out")
	reduces := fmt.Sprintf("mapreduce.job.reduces=%d", slots)
	var sum [sha256.Size]byte // of the output in HDFS
	took, err := testbed.InTurn(0, b.Runs, func() (time.Duration, error) {
		if err := b.fs.RemoveAll(out); err != nil {
			return 0, err
		}
		unix.Sync() // an earlier run's dirty pages are not this run's work
		took, err := c.Run(b.Ctx, c.Program(program), "-input", in, "-output", out, "-D", reduces)
		if err == nil {
			sum, err = testbed.Digest(b.fs, out)
		}
		return took, err
	}, func() (time.Duration, error) {
		if err := os.RemoveAll(localOut); err != nil {
			return 0, err
		}
		unix.Sync()
		took, err := testbed.Timed(exec.CommandContext(b.Ctx, c.Program(program), "-input", localIn, "-output", localOut,
			"-D", reduces, "-D", fmt.Sprintf("quern.embedded.slots=%d", slots)))
		if err != nil {
			return 0, err
		}
		here, err := testbed.Digest(local.New(), "file://"+localOut)
		if err == nil && here != sum {
			err = fmt.Errorf("%s: the output in HDFS differs from the local one", program)
		}
		return took, err
	})
	if err != nil {
		return err
	}
	over, here := testbed.Median(took[0]), testbed.Median(took[1])
	testbed.Row(name, testbed.Speed(b.Bytes, over), testbed.Speed(b.Bytes, here), testbed.Ratio(here, over), reach)
	return nil
}
