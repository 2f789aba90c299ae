package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
)

type bench struct {
	dir   string
	bytes int64
	cores int
	runs  int
}

// sortMB is mapreduce.task.io.sort.mb, mergeMB the merge buffers of one home:
// GNU sort is given as much memory as all slots together use.
const sortMB, mergeMB = 100, 16

// needle is a word of the text's tail: some lines match, most do not.
const needle = "qu"

type benchCase struct {
	name string
	run  func(*bench) (columns []string, err error)
}

func (b *bench) cases() []benchCase {
	return []benchCase{
		{"word count against one Go loop × cores", (*bench).wordCount},
		{"sort of 100-byte lines against GNU sort", (*bench).sort},
		{"grep -F against GNU grep × cores", (*bench).grep},
		{"peak memory of a worker, sort, input 20 × the budget", (*bench).memory},
		{"heap objects per input record: word count, sort, grep", (*bench).objects},
		{"word count of 1 KB, start to _SUCCESS", (*bench).small},
		{"synced output: word count against unsynced", func(b *bench) ([]string, error) { return b.synced("wordcount", "text", b.cores) }},
		{"synced output: sort of 100-byte lines against unsynced", func(b *bench) ([]string, error) { return b.synced("sort", "lines", b.cores) }},
		{"synced output: word count of 1 KB against unsynced", func(b *bench) ([]string, error) { return b.synced("wordcount", "small", 1) }},
	}
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// prepare builds the jobs and makes the inputs.
func (b *bench) prepare() error {
	for _, job := range []string{"wordcount", "sort", "grep"} {
		cmd := exec.Command("go", "build", "-trimpath", "-o", b.path(job), "github.com/quernmr/quern/examples/"+job)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", job, err, out)
		}
	}
	if err := errors.Join(
		input.Text(b.path("text"), b.bytes),
		input.Lines(b.path("lines"), b.bytes),
		input.Text(b.path("small"), 1<<10)); err != nil {
		return err
	}
	for _, name := range []string{"text", "lines"} { // into the page cache
		f, err := os.Open(b.path(name))
		if err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, f); err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

func (b *bench) wordCount() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ours, peer, err := b.pair(
		b.job("wordcount", "text", "-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.cores)),
		exec.Command(self, wordLoopVerb, b.path("text"), b.path("peer")))
	if err != nil {
		return nil, err
	}
	// Partitions are by hash, so ours is in order only within each part.
	if err := b.sameOutput(true); err != nil {
		return nil, err
	}
	ratio := peer.Seconds() / ours.Seconds() / float64(b.cores)
	return b.row(ours, peer, ratio, "≥ 0.6"), nil
}

func (b *bench) sort() ([]string, error) {
	memory := (sortMB + mergeMB) * b.cores
	cmd := exec.Command("sort", fmt.Sprintf("--parallel=%d", b.cores), "-S", fmt.Sprintf("%dM", memory), "-T", b.dir,
		"-o", b.path("peer"), b.path("lines"))
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	ours, peer, err := b.pair(b.job("sort", "lines", "-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.cores)), cmd)
	if err != nil {
		return nil, err
	}
	if err := b.sameOutput(false); err != nil {
		return nil, err
	}
	return b.row(ours, peer, peer.Seconds()/ours.Seconds(), "≥ 1"), nil
}

func (b *bench) grep() ([]string, error) {
	cmd := exec.Command("sh", "-c", fmt.Sprintf("LC_ALL=C exec grep -F %s %s > %s", needle, b.path("text"), b.path("peer")))
	ours, peer, err := b.pair(b.job("grep", "text", "-e", needle), cmd)
	if err != nil {
		return nil, err
	}
	if err := b.sameOutput(false); err != nil {
		return nil, err
	}
	ratio := peer.Seconds() / ours.Seconds() / float64(b.cores)
	return b.row(ours, peer, ratio, "≥ 0.4"), nil
}

func (b *bench) memory() ([]string, error) {
	budget := max(b.bytes/20>>20, 1)
	cmd := b.job("sort", "lines", "-D", fmt.Sprintf("mapreduce.task.io.sort.mb=%d", budget))
	peak, err := peakWorker(cmd)
	if err != nil {
		return nil, err
	}
	limit := budget + 64
	return []string{fmt.Sprintf("%d MB", peak>>20), fmt.Sprintf("io.sort.mb %d MB", budget),
		fmt.Sprintf("%.2f", float64(peak>>20)/float64(limit)), fmt.Sprintf("≤ 1 (of %d MB)", limit)}, nil
}

// objects divides the heap objects that all attempts allocated by the records of
// the input.
func (b *bench) objects() ([]string, error) {
	var each []string
	worst := 0.0
	for _, cmd := range []*exec.Cmd{b.job("wordcount", "text"), b.job("sort", "lines"), b.job("grep", "text", "-e", needle)} {
		if err := os.RemoveAll(b.path("out")); err != nil {
			return nil, err
		}
		said, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, said)
		}
		per := counter(said, "HEAP_OBJECTS_ALLOCATED") / counter(said, "Map input records")
		each = append(each, fmt.Sprintf("%.4f", per))
		worst = max(worst, per)
	}
	return []string{strings.Join(each, ", "), "", fmt.Sprintf("%.4f", worst), "≤ 0.01"}, nil
}

// counter reads a counter that a job printed.
func counter(said []byte, name string) float64 {
	_, after, _ := bytes.Cut(said, []byte("\t"+name+"="))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	n, err := strconv.ParseFloat(string(line), 64)
	if err != nil {
		return math.NaN()
	}
	return n
}

func (b *bench) small() ([]string, error) {
	var times []time.Duration
	for range max(b.runs, 20) {
		t, err := b.once(b.job("wordcount", "small"))
		if err != nil {
			return nil, err
		}
		times = append(times, t)
	}
	slices.Sort(times)
	return []string{fmt.Sprintf("p50 %d ms", testbed.Median(times).Milliseconds()),
		fmt.Sprintf("(slowest %d ms)", times[len(times)-1].Milliseconds()), "", "p50 ≤ 150 ms"}, nil
}

// synced compares a job with itself, which leaves its output to the page cache.
func (b *bench) synced(name, file string, reduces int) ([]string, error) {
	job := func(sync bool) *exec.Cmd {
		return b.job(name, file, "-D", fmt.Sprintf("mapreduce.job.reduces=%d", reduces), "-D", fmt.Sprintf("quern.output.sync=%v", sync))
	}
	ours, peer, err := b.pair(job(true), job(false))
	if err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("%.3f s", ours.Seconds()), fmt.Sprintf("%.3f s", peer.Seconds()),
		fmt.Sprintf("%.2f", peer.Seconds()/ours.Seconds()), "–"}, nil
}

// job is one of the built examples over an input of the working directory.
func (b *bench) job(name, file string, args ...string) *exec.Cmd {
	args = append([]string{"-input", b.path(file), "-output", b.path("out"),
		"-D", fmt.Sprintf("quern.embedded.slots=%d", b.cores)}, args...)
	return exec.Command(b.path(name), args...)
}

// pair runs both commands in turn and gives the medians of their times.
func (b *bench) pair(ours, peer *exec.Cmd) (time.Duration, time.Duration, error) {
	var a, p []time.Duration
	for range b.runs {
		t, err := b.once(ours)
		if err != nil {
			return 0, 0, err
		}
		u, err := b.once(peer)
		if err != nil {
			return 0, 0, err
		}
		a, p = append(a, t), append(p, u)
	}
	return testbed.Median(a), testbed.Median(p), nil
}

// once runs a copy of cmd from a clean start and times its whole process.
func (b *bench) once(cmd *exec.Cmd) (time.Duration, error) {
	fresh := exec.Command(cmd.Path, cmd.Args[1:]...)
	fresh.Env = cmd.Env
	output := b.path("peer")
	if slices.Contains(cmd.Args, b.path("out")) {
		output = b.path("out")
	}
	if err := os.RemoveAll(output); err != nil {
		return 0, err
	}
	unix.Sync() // an earlier run's dirty pages are not this run's work
	start := time.Now()
	if out, err := fresh.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return time.Since(start), nil
}

func (b *bench) row(ours, peer time.Duration, ratio float64, reach string) []string {
	rate := float64(b.bytes) / 1e6
	return []string{
		fmt.Sprintf("%.2f s (%.0f MB/s)", ours.Seconds(), rate/ours.Seconds()),
		fmt.Sprintf("%.2f s (%.0f MB/s)", peer.Seconds(), rate/peer.Seconds()),
		fmt.Sprintf("%.2f", ratio), reach}
}

// sameOutput compares our parts, joined in order, with the peer's file, byte for
// byte; sorted first when ours is in order only within each part.
func (b *bench) sameOutput(resort bool) error {
	parts, err := filepath.Glob(b.path("out/part-*"))
	if err != nil {
		return err
	}
	slices.Sort(parts)
	joined := exec.Command("cat", parts...)
	if resort {
		joined = exec.Command("sort", append([]string{"-s", "-t", "\t", "-k1,1"}, parts...)...)
		joined.Env = append(os.Environ(), "LC_ALL=C")
	}
	pipe, err := joined.StdoutPipe()
	if err != nil {
		return err
	}
	if err := joined.Start(); err != nil {
		return err
	}
	peer, err := os.Open(b.path("peer"))
	if err != nil {
		return err
	}
	defer peer.Close()
	if err := sameStream(pipe, peer); err != nil {
		return fmt.Errorf("output differs from the peer's: %w", err)
	}
	return joined.Wait()
}

func sameStream(a, b io.Reader) error {
	x, y := make([]byte, 1<<20), make([]byte, 1<<20)
	for at := int64(0); ; {
		n, errA := io.ReadFull(a, x)
		m, errB := io.ReadFull(b, y)
		if !bytes.Equal(x[:n], y[:m]) {
			return fmt.Errorf("within %d bytes from %d", max(n, m), at)
		}
		if errA != nil || errB != nil {
			return nil // equal to the shorter end, and the lengths were equal
		}
		at += int64(n)
	}
}
