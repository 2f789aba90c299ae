// Package peers runs word count, sort and grep with Quern, plain tools, Hadoop's local runner and Spark, at several sizes.
//
// A figure is of a whole process with its children, from start to exit. Programs alternate, and inputs are in the page cache
// if they have room. All outputs are compared. All programs may use the same number of cores. Java has a heap of 4 GB, GNU
// sort as much memory as Quern's slots.
package peers

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/sim/papers"
)

type bench struct {
	*testbed.Bench
	list   string // -sizes
	plots  string
	sizes  []int64
	hadoop string // classpath, with LineJobs
	spark  string // Python with Spark
	self   string // this program
}

// job is a piece of work that all programs can do.
type job struct {
	name, input string
	unordered   bool // sorted lines are compared: partitions are by hash, or Hadoop reads the longest splits first
	programs    []program
}

// program does a job. Its command reads a file and writes a file or directory.
type program struct {
	name    string
	command func(in, out string) *exec.Cmd
}

// Section declares the flags and parts.
func Section() testbed.Section {
	b := &bench{}
	columns := []string{"size", "program", "time", "÷ Quern", "processor time", "÷ Quern", "peak memory", "written"}
	s := testbed.Section{
		Name: "peers", About: "word count, sort and grep beside plain tools, Hadoop and Spark; needs Java and Maven, and downloads 700 MB",
		Runs: 3, Cores: runtime.NumCPU(),
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&b.list, "sizes", "100M,1G", "`bytes` of inputs, with K, M or G")
			f.StringVar(&b.plots, "plots", "", "`directory` for plots of time against size")
		},
		Programs: []string{"examples/wordcount", "examples/sort", "examples/grep"},
		Open:     b.open,
	}
	for _, name := range []string{"word count", "sort", "grep -F", "grep -E"} {
		s.Parts = append(s.Parts, testbed.Part{Name: name, Columns: columns, Measure: func() error { return b.measure(name) }})
	}
	return s
}

func (b *bench) open(base *testbed.Bench) (err error) {
	b.Bench = base
	for text := range strings.SplitSeq(b.list, ",") {
		size, err := input.Size(text)
		if err != nil {
			return fmt.Errorf("-sizes: %w", err)
		}
		b.sizes = append(b.sizes, size)
	}
	return b.fetch()
}

// measure runs a job at each size.
func (b *bench) measure(name string) error {
	j := b.job(name)
	chart := papers.Chart{Name: strings.NewReplacer(" -", "-", " ", "-").Replace(name), Title: name, X: "input, GiB", Y: "time, s", Log: true}
	for _, p := range j.programs {
		chart.Series = append(chart.Series, papers.Series{Name: p.name})
	}
	for _, size := range b.sizes {
		times, err := b.measureSize(j, size)
		if err != nil {
			return fmt.Errorf("%s: %w", sizeText(size), err)
		}
		for i := range chart.Series {
			s := &chart.Series[i]
			s.X, s.Y = append(s.X, float64(size)/(1<<30)), append(s.Y, times[i])
		}
	}
	if b.plots == "" {
		return nil
	}
	report := papers.Report{Charts: []papers.Chart{chart}}
	_, err := report.WriteCharts(b.plots)
	return err
}

// measureSize prints the figures of all programs for an input, and returns their times in seconds.
func (b *bench) measureSize(j *job, size int64) (times []float64, err error) {
	in, write := b.Path(fmt.Sprintf("%s-%d", j.input, size)), input.Text
	if j.input == lines {
		write = input.Lines
	}
	if err := errors.Join(write(in, size), testbed.WarmCache(in)); err != nil {
		return nil, err
	}
	var sum string // of the first output
	runs := make([]func() (testbed.Resources, error), len(j.programs))
	for i, p := range j.programs {
		runs[i] = func() (testbed.Resources, error) { return b.run(j, p, in, &sum) }
	}
	used, err := testbed.Alternate(0, b.Runs, runs...)
	if err != nil {
		return nil, err
	}
	ours := medians(used[0])
	for i, p := range j.programs {
		m := medians(used[i])
		testbed.Row(sizeText(size), p.name, testbed.Speed(size, m.Elapsed), testbed.Ratio(m.Elapsed, ours.Elapsed),
			testbed.Seconds(m.Processor), testbed.Ratio(m.Processor, ours.Processor), sizeText(m.Memory), sizeText(m.Written))
		times = append(times, m.Elapsed.Seconds())
	}
	return times, nil
}

// run runs a program, and compares its output with the first one.
func (b *bench) run(j *job, p program, in string, first *string) (r testbed.Resources, err error) {
	out := b.Path("out")
	if err := os.RemoveAll(out); err != nil {
		return r, err
	}
	unix.Sync() // exclude the dirty pages of others
	if r, err = testbed.Consumed(p.command(in, out)); err != nil {
		return r, err
	}
	sum, err := b.digest(out, j.unordered)
	if err == nil && *first != "" && sum != *first {
		err = fmt.Errorf("the output of %s differs from that of %s", p.name, j.programs[0].name)
	}
	*first = sum
	return r, errors.Join(err, os.RemoveAll(out))
}

// digest returns a digest of the lines in a file, or in the part files of a directory.
func (b *bench) digest(output string, unordered bool) (string, error) {
	files := []string{output}
	if parts, err := filepath.Glob(filepath.Join(output, "part-*")); err != nil || len(parts) > 0 {
		files = parts
	}
	command := `cat "$@" | sha256sum`
	if unordered {
		command = `cat "$@" | sort -S 1G | sha256sum`
	}
	cmd := b.shell(command, files...)
	printed, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("read the output: %w\n%s", err, bytes.TrimSpace(printed))
	}
	return string(printed), nil
}

// medians returns the median of each figure.
func medians(used []testbed.Resources) (m testbed.Resources) {
	of := func(figure func(testbed.Resources) int64) int64 {
		var all []int64
		for _, u := range used {
			all = append(all, figure(u))
		}
		return testbed.Median(all)
	}
	m.Elapsed = time.Duration(of(func(r testbed.Resources) int64 { return int64(r.Elapsed) }))
	m.Processor = time.Duration(of(func(r testbed.Resources) int64 { return int64(r.Processor) }))
	m.Memory = of(func(r testbed.Resources) int64 { return r.Memory })
	m.Written = of(func(r testbed.Resources) int64 { return r.Written })
	return m
}

func sizeText(n int64) string {
	if n >= 1e9 {
		return fmt.Sprintf("%.3g GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%d MB", n/1e6)
}
