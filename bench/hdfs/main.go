// Command hdfs measures jobs over a real HDFS: how many maps run beside their
// data, what reading costs beside the bare client library, how often a task asks
// the NameNode, and how word count and sort on a cluster of processes compare with
// the same on local files. A NameNode, four DataNodes in two racks and task
// trackers beside them run on loopback, on this machine.
//
//	go run ./bench/hdfs [-size 512M] [-runs 3] [-only REGEXP] [-dir DIR]
//
// Inputs come from one seed; where the blocks go, the NameNode chooses. Outputs are
// compared before a figure is printed. It asserts no timing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/processes"
)

func main() {
	size := flag.String("size", "512M", "`bytes` of input, with K, M or G")
	runs := flag.Int("runs", 3, "`times` that each figure is measured; the median is printed")
	only := flag.String("only", ".", "`regexp` of the tables to make")
	dir := flag.String("dir", "", "working `directory`, kept; default: a temporary one, removed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *size, *runs, *only, *dir)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/hdfs:", err)
		os.Exit(1)
	}
}

// table is one of those that are printed.
type table struct {
	name   string
	header []string
	fill   func(b *bench) error
}

func tables() []table {
	return []table{
		{"locality", []string{"maps", "delay", "data on", "node-local", "rack-local", "elsewhere", "bytes node-local", "time", "to reach"}, (*bench).locality},
		{"reading", []string{"figure", "dfs/hdfs", "bare library", "ratio", "to reach"}, (*bench).reading},
		{"calls", []string{"NameNode calls", "a task", "which", "to reach"}, (*bench).calls},
		{"jobs", []string{"job", "processes, HDFS", "embedded, local files", "ratio", "to reach"}, (*bench).jobs},
	}
}

type bench struct {
	ctx   context.Context
	dir   string
	bytes int64
	runs  int
	hdfs  *minicluster.Cluster
	made  int // clusters of trackers, and directories in HDFS, so far
}

func run(ctx context.Context, size string, runs int, only, dir string) (err error) {
	bytes, err := input.Size(size)
	if err != nil {
		return err
	}
	wanted, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "quern-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	b := &bench{ctx: ctx, dir: dir, bytes: bytes, runs: max(runs, 1)}
	if err := errors.Join(os.MkdirAll(b.programs(), 0o777), os.RemoveAll(b.path("hdfs"))); err != nil {
		return err
	}
	if err := processes.Build(b.programs(), "examples/wordcount", "examples/sort", "examples/grep", "integration/trial/paced"); err != nil {
		return err
	}
	jars, err := minicluster.Fetch(ctx)
	if err != nil {
		return err
	}
	b.hdfs, err = minicluster.Start(ctx, minicluster.Config{Jars: jars, Dir: b.path("hdfs"),
		Racks: []string{"/a", "/a", "/b", "/b"}, Replication: 1, BlockSize: 64 << 20})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.hdfs.Close()) }()
	fmt.Printf("%s of input of seed %d, %d cores, median of %d, %s\n", size, input.Seed, runtime.NumCPU(), b.runs, runtime.Version())
	for _, t := range tables() {
		if !wanted.MatchString(t.name) {
			continue
		}
		fmt.Printf("\n%s; load before: %s\n\n", t.name, testbed.Load())
		testbed.Table(t.header...)
		if err := t.fill(b); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }
func (b *bench) programs() string        { return b.path("programs") }
