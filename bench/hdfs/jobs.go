package main

import (
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
	"github.com/quernmr/quern/dfs/hdfs"
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
	f, err := b.client()
	if err != nil {
		return err
	}
	defer f.Close()
	for _, j := range []struct {
		name, program, reach string
		make                 func(file string, n int64) error
	}{
		{"word count", "wordcount", "≥ 0.5", input.Text},
		{"sort of 100-byte lines", "sort", "≥ 0.35", input.Lines},
	} {
		in := dfs.Join(dir, j.program)
		if err := errors.Join(f.Mkdir(in), os.MkdirAll(b.path(j.program+"-in"), 0o777)); err != nil {
			return err
		}
		for i, node := range nodes {
			name := fmt.Sprint(i)
			file := b.path(j.program + "-in/" + name)
			if err := j.make(file, b.bytes/int64(len(nodes))); err != nil {
				return err
			}
			if err := testbed.PutFile(b.hdfs, file, dfs.Join(in, name), node, nil); err != nil {
				return err
			}
		}
		if err := b.pair(c, f, j.name, j.program, in, dfs.Join(dir, "out"), j.reach, len(nodes)); err != nil {
			return err
		}
	}
	return b.remove(dir)
}

// pair runs a job in both places in turn and prints the medians.
func (b *bench) pair(c *testbed.Cluster, f *hdfs.FS, name, program, in, out, reach string, slots int) error {
	localIn, localOut := b.path(program+"-in"), b.path(program+"-out")
	reduces := fmt.Sprintf("mapreduce.job.reduces=%d", slots)
	var over, here []time.Duration
	for range b.runs {
		if err := errors.Join(f.RemoveAll(out), os.RemoveAll(localOut)); err != nil {
			return err
		}
		unix.Sync() // an earlier run's dirty pages are not this run's work
		t, err := timed(b.submit(c, program, in, out, "-D", reduces))
		if err != nil {
			return err
		}
		over = append(over, t)
		unix.Sync()
		t, err = timed(exec.CommandContext(b.ctx, c.Program(program), "-input", localIn, "-output", localOut,
			"-D", reduces, "-D", fmt.Sprintf("quern.embedded.slots=%d", slots)))
		if err != nil {
			return err
		}
		here = append(here, t)
		a, err := testbed.Digest(f, out)
		if err != nil {
			return err
		}
		p, err := testbed.Digest(local.New(), "file://"+localOut)
		if err != nil {
			return err
		}
		if a != p {
			return fmt.Errorf("%s: the output in HDFS differs from the local one", program)
		}
	}
	o, h := testbed.Median(over), testbed.Median(here)
	speed := func(d time.Duration) string {
		return fmt.Sprintf("%.2f s (%.0f MB/s)", d.Seconds(), float64(b.bytes)/1e6/d.Seconds())
	}
	testbed.Row(name, speed(o), speed(h), fmt.Sprintf("%.2f", h.Seconds()/o.Seconds()), reach)
	return nil
}
