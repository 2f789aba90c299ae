package hdfs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// jobs alternates embedded runs on local files with runs on a cluster of processes over HDFS.
// Both have the same number of slots. The cluster has one tracker per core, each beside a
// DataNode with its part of the input.
func (b *bench) jobs() error {
	nodes := b.hdfs.DataNodes[:min(runtime.NumCPU(), len(b.hdfs.DataNodes))]
	c, err := b.startCluster(len(nodes), 1)
	if err != nil {
		return err
	}
	defer c.Close()
	dir, err := b.directory()
	if err != nil {
		return err
	}
	for _, j := range []struct {
		name, program, target string
		make                  func(file string, n int64) error
	}{
		{"word count", "wordcount", "≥ 0.85", input.Text},
		{"sort of 100-byte lines", "sort", "≥ 0.65", input.Lines},
	} {
		r := &run{
			bench: b, cluster: c, nodes: nodes, program: c.Program(j.program),
			in: dfs.Join(dir, j.program), out: dfs.Join(dir, "out"),
			localIn: b.Path(j.program + "-in"), localOut: b.Path(j.program + "-out"),
		}
		if err := r.makeInput(j.make); err != nil {
			return err
		}
		took, err := testbed.Alternate(0, b.Runs, r.overHDFS, r.embedded)
		if err != nil {
			return err
		}
		hdfsTime, localTime := testbed.Median(took[0]), testbed.Median(took[1])
		testbed.Row(j.name, testbed.Speed(b.Bytes, hdfsTime), testbed.Speed(b.Bytes, localTime), testbed.Ratio(localTime, hdfsTime), j.target)
		if j.program == "sort" {
			if err := r.transfers(dfs.Join(dir, "copies")); err != nil {
				return err
			}
		}
	}
	return b.fs.RemoveAll(dir)
}

// transfers measures reads and writes of the job's input without a job, with one stream per node.
func (r *run) transfers(copies string) error {
	took, err := testbed.Alternate(0, r.Runs, func() (time.Duration, error) {
		return r.onEachNode(func(name string, node *minicluster.Daemon) error {
			files, err := testbed.Client(r.hdfs, node, nil)
			if err != nil {
				return err
			}
			f, err := files.Open(dfs.Join(r.in, name))
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, f)
			return errors.Join(err, f.Close())
		})
	}, func() (time.Duration, error) {
		if err := errors.Join(r.fs.RemoveAll(copies), r.fs.Mkdir(copies)); err != nil {
			return 0, err
		}
		return r.onEachNode(func(name string, node *minicluster.Daemon) error {
			return testbed.PutFile(r.hdfs, filepath.Join(r.localIn, name), dfs.Join(copies, name), node, nil)
		})
	})
	if err != nil {
		return err
	}
	for i, name := range []string{"reading its input alone", "writing as much alone"} {
		testbed.Row(name, testbed.Speed(r.Bytes, testbed.Median(took[i])), "", "", "–")
	}
	return nil
}

// onEachNode does something with the input on each node, at the same time.
func (r *run) onEachNode(do func(name string, node *minicluster.Daemon) error) (time.Duration, error) {
	unix.Sync() // exclude the dirty pages of earlier runs
	began := time.Now()
	var wait sync.WaitGroup
	errs := make([]error, len(r.nodes))
	for i, node := range r.nodes {
		wait.Go(func() { errs[i] = do(fmt.Sprint(i), node) })
	}
	wait.Wait()
	return time.Since(began), errors.Join(errs...)
}

// run is a program and its input, in HDFS and in local files.
type run struct {
	*bench
	cluster           *testbed.Cluster
	nodes             []*minicluster.Daemon // each has a file of the input, and a tracker beside it
	program           string
	in, out           string // in HDFS
	localIn, localOut string
	sum               [sha256.Size]byte // of the last output in HDFS
}

// makeInput writes one file per node, with its replica on that node, and a local copy.
func (r *run) makeInput(create func(file string, n int64) error) error {
	if err := errors.Join(r.fs.Mkdir(r.in), os.MkdirAll(r.localIn, 0o777)); err != nil {
		return err
	}
	for i, node := range r.nodes {
		name := fmt.Sprint(i)
		file := filepath.Join(r.localIn, name)
		if err := create(file, r.Bytes/int64(len(r.nodes))); err != nil {
			return err
		}
		if err := testbed.PutFile(r.hdfs, file, dfs.Join(r.in, name), node, nil); err != nil {
			return err
		}
	}
	return nil
}

// overHDFS runs the program on the cluster and keeps the digest of its output.
func (r *run) overHDFS() (time.Duration, error) {
	if err := r.fs.RemoveAll(r.out); err != nil {
		return 0, err
	}
	unix.Sync() // exclude the dirty pages of earlier runs
	took, err := r.cluster.Run(r.Ctx, r.program, "-input", r.in, "-output", r.out, "-D", r.reduces())
	if err != nil {
		return 0, err
	}
	r.sum, err = testbed.Digest(r.fs, r.out)
	return took, err
}

// embedded runs the program on local files and compares the output with the last one in HDFS.
func (r *run) embedded() (time.Duration, error) {
	took, err := testbed.TimedAgain(r.Ctx, exec.Command(r.program, "-input", r.localIn, "-output", r.localOut,
		"-D", r.reduces(), "-D", fmt.Sprintf("quern.embedded.slots=%d", len(r.nodes))), r.localOut)
	if err != nil {
		return 0, err
	}
	sum, err := testbed.Digest(local.New(), "file://"+r.localOut)
	if err == nil && sum != r.sum {
		err = fmt.Errorf("%s: the output in HDFS differs from the local one", filepath.Base(r.program))
	}
	return took, err
}

func (r *run) reduces() string { return fmt.Sprintf("mapreduce.job.reduces=%d", len(r.nodes)) }
