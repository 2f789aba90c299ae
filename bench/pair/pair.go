// Package pair compares the working tree with another revision of Quern. It builds both and
// alternates their programs, A B A B …, on the same inputs, so that other load affects both
// alike. It uses only examples, daemons and packages' benchmarks of the other revision, so any
// revision with the same flags will do. Outputs of both must be equal.
//
// The figure of a row is the median of the ratios now / before, one per pair of runs. Its
// interval comes from the sign test: from the k-th smallest to the k-th largest ratio. k is the
// largest number for which the true median is inside with a probability of at least 95 %,
// for any distribution of times. That needs six pairs. With fewer, the interval is from the
// smallest to the largest ratio, and its probability is printed. The revisions differ if 1 is
// outside the interval. Up to one in twenty rows says so without a difference.
package pair

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/integration/processes"
)

type bench struct {
	*testbed.Bench
	rev       string
	revisions [2]revision // before and now
	goBench   string
	goPackage [2]string
	goTime    string
}

// revision is a compared revision.
type revision struct {
	tree     string // directory of the sources
	programs string // directory
}

// shortJobRuns multiplies -runs for short jobs.
const shortJobRuns = 5

// Section declares the flags and parts.
func Section() testbed.Section {
	b := &bench{}
	return testbed.Section{
		Name: "pair", About: "the working tree compared with another revision: ratios and their intervals",
		Runs: 9, Size: "256M", Cores: runtime.NumCPU(),
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&b.rev, "rev", "", "`commit` to compare the working tree with")
			f.StringVar(&b.goBench, "bench", "", "`regexp` of benchmarks of a package, which run on one processor; default: none")
			f.StringVar(&b.goPackage[1], "package", "jobtracker/core", "`path` of that package below the module")
			f.StringVar(&b.goPackage[0], "package-before", "", "its `path` in the other revision; default: the same")
			f.StringVar(&b.goTime, "benchtime", "1s", "`time` of each benchmark, or Nx, as go test has it")
		},
		Open:    b.open,
		Columns: []string{"benchmark", "before", "now", "now / before", "95 % interval", "differs"},
		Parts: []testbed.Part{
			b.embedded("word count of 1 KB", shortJobRuns, "wordcount", "small"),
			b.embedded("word count", 1, "wordcount", "text"),
			b.embedded("sort of 100-byte lines", 1, "sort", "lines"),
			b.embedded("grep", 1, "grep", "text", "-e", input.Needle),
			b.overHDFS("word count, over HDFS", "wordcount", "text"),
			b.overHDFS("sort of 100-byte lines, over HDFS", "sort", "lines"),
			{Name: "word count of 1 KB on a warm cluster", Measure: b.warm(false)},
			{Name: "word count of 1 KB on a warm cluster with TLS", Measure: b.warm(true)},
			{Name: "go test -bench", Measure: b.benchmarks},
		},
	}
}

// open builds both revisions and writes the inputs.
func (b *bench) open(base *testbed.Bench) error {
	b.Bench = base
	if b.rev == "" {
		return errors.New("-rev is missing: name the commit to compare with")
	}
	top, err := git(b.Ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	before, err := checkOut(b.Bench, top, b.rev)
	if err != nil {
		return err
	}
	b.revisions = [2]revision{{before, b.Path("programs/before")}, {top, b.Path("programs/now")}}
	for _, r := range b.revisions {
		if err := errors.Join(os.RemoveAll(r.programs), os.MkdirAll(r.programs, 0o777)); err != nil {
			return err
		}
		if err := processes.BuildFrom(r.tree, r.programs, "examples/wordcount", "examples/sort", "examples/grep"); err != nil {
			return err
		}
	}
	return errors.Join(
		input.Text(b.Path("text"), b.Bytes), input.Lines(b.Path("lines"), b.Bytes), input.Text(b.Path("small"), 1<<10),
		testbed.WarmCache(b.Path("text")), testbed.WarmCache(b.Path("lines")))
}

// checkOut creates a work tree of a revision and removes it at the end.
func checkOut(b *testbed.Bench, repository, rev string) (tree string, err error) {
	commit, err := git(b.Ctx, repository, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("-rev %s is not a commit of %s", rev, repository)
	}
	tree = b.Path("before")
	if err := os.RemoveAll(tree); err != nil { // left by a killed run
		return "", err
	}
	if _, err := git(b.Ctx, repository, "worktree", "add", "--quiet", "--force", "--detach", tree, commit); err != nil {
		return "", err
	}
	b.AtEnd(func() error { // not b.Ctx: also after an interrupt
		_, err := git(context.Background(), repository, "worktree", "remove", "--force", tree)
		return err
	})
	return tree, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	printed, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", args[0], err, printed)
	}
	return strings.TrimSpace(string(printed)), nil
}

// measured is the figures of one run, by row.
type measured map[string]float64

// embedded compares the elapsed times of an embedded job, and its processor times with workers.
func (b *bench) embedded(name string, times int, program, file string, args ...string) testbed.Part {
	return testbed.Part{Name: name, Measure: func() error {
		same := sameOutput()
		run := func(r revision) func() (measured, error) {
			return func() (measured, error) {
				out := b.Path("out")
				if err := os.RemoveAll(out); err != nil {
					return nil, err
				}
				figures, err := b.run(name, r, program, nil, append([]string{"-input", b.Path(file), "-output", out}, args...)...)
				if err != nil {
					return nil, err
				}
				return figures, same(out)
			}
		}
		return b.compare(times, run(b.revisions[0]), run(b.revisions[1]))
	}}
}

// run measures one embedded job, with additional environment variables.
func (b *bench) run(name string, r revision, program string, env []string, args ...string) (measured, error) {
	unix.Sync() // exclude the dirty pages of earlier runs
	args = append(args, "-D", fmt.Sprintf("quern.embedded.slots=%d", b.Cores))
	if program != "grep" { // grep has no reduces
		args = append(args, "-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.Cores))
	}
	cmd := exec.CommandContext(b.Ctx, filepath.Join(r.programs, program), args...)
	cmd.Env = append(os.Environ(), env...)
	took, err := testbed.Timed(cmd)
	if err != nil {
		return nil, err
	}
	processor := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return measured{name + ", s": took.Seconds(), name + ", s of processors": processor.Seconds()}, nil
}

// sameOutput returns a function that compares every output with the first one.
func sameOutput() func(dir string) error {
	return sameOutputIn(local.New(), "file://")
}

// sameOutputIn is sameOutput for a file system, with the beginning of its URLs.
func sameOutputIn(f dfs.FS, prefix string) func(dir string) error {
	var first *[sha256.Size]byte
	return func(dir string) error {
		sum, err := testbed.Digest(f, prefix+dir)
		if err != nil {
			return err
		}
		if first == nil {
			first = &sum
		}
		if sum != *first {
			return fmt.Errorf("the output in %s differs from the first run's", dir)
		}
		return nil
	}
}

// compare alternates both revisions, each times*Runs times, and prints a row for each figure.
func (b *bench) compare(times int, before, now func() (measured, error)) error {
	all, err := testbed.Alternate(1, times*b.Runs, before, now)
	if err != nil {
		return err
	}
	for _, name := range rowNames(all) {
		printRow(name, column(all[0], name), column(all[1], name))
	}
	return nil
}
