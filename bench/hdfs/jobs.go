package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/integration/processes"
)

// jobs runs the same program in turn on a cluster of processes over HDFS and
// embedded on local files, with as many slots: a core is a tracker beside its own
// DataNode, and of its input a tracker has its part there.
func (b *bench) jobs() error {
	nodes := b.hdfs.DataNodes[:min(runtime.NumCPU(), len(b.hdfs.DataNodes))]
	c, err := b.trackers(nodes, 1)
	if err != nil {
		return err
	}
	defer c.Close()
	dir, err := b.directory()
	if err != nil {
		return err
	}
	f, err := b.client(nil, nil)
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
			if err := b.put(file, dfs.Join(in, name), node, nil); err != nil {
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
func (b *bench) pair(c *processes.Cluster, f *hdfs.FS, name, program, in, out, reach string, slots int) error {
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
		a, err := digest(f, out)
		if err != nil {
			return err
		}
		p, err := digest(local.New(), "file://"+localOut)
		if err != nil {
			return err
		}
		if a != p {
			return fmt.Errorf("%s: the output in HDFS differs from the local one", program)
		}
	}
	o, h := median(over), median(here)
	speed := func(d time.Duration) string {
		return fmt.Sprintf("%.2f s (%.0f MB/s)", d.Seconds(), float64(b.bytes)/1e6/d.Seconds())
	}
	row(name, speed(o), speed(h), fmt.Sprintf("%.2f", h.Seconds()/o.Seconds()), reach)
	return nil
}

// digest is a sum over a job's output, part after part.
func digest(f dfs.FS, dir string) (sum [sha256.Size]byte, err error) {
	infos, err := f.List(dir)
	if err != nil {
		return sum, err
	}
	all := sha256.New()
	for _, info := range infos {
		if !strings.HasPrefix(dfs.Base(info.Name), "part-") {
			continue
		}
		file, err := f.Open(info.Name)
		if err != nil {
			return sum, err
		}
		_, err = io.Copy(all, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return sum, err
		}
	}
	return sha256.Sum256(all.Sum(nil)), nil
}
