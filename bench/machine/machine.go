// Package machine measures Quern against single-machine tools on the same files, in the same
// run.
//
// It reads the inputs once, so that they are in the page cache. It then alternates processes of
// Quern and of the peer, and compares their outputs before it prints a figure.
package machine

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
)

type bench struct{ *testbed.Bench }

// Section declares the flags and parts.
func Section() testbed.Section {
	b := &bench{}
	return testbed.Section{
		Name: "machine", About: "Quern compared with a Go loop, GNU sort and GNU grep on one machine",
		Runs: 3, Size: "1G", Cores: runtime.NumCPU(),
		Programs: []string{"examples/wordcount", "examples/sort", "examples/grep", "bench/machine/driven", "bench/machine/joined"},
		Open:     b.prepare,
		Columns:  []string{"benchmark", "quern", "peer", "ratio", "target"},
		Parts: []testbed.Part{
			b.row("word count against one Go loop × cores", b.wordCount),
			b.row("word count against a hand-written program", b.wordBatches),
			b.row("sort of 100-byte lines against GNU sort", b.sort),
			b.row("sort of 100-byte lines against its reads and writes", b.rawIO),
			b.row("grep -F against GNU grep × cores", func() ([]string, error) { return b.grep("-F", Needle) }),
			b.row("grep -E against GNU grep × cores", func() ([]string, error) { return b.grep("-E", Expression) }),
			b.row("sort, one key of 50 % against balanced keys", b.skewedSort),
			b.row("join, one key of 50 % against balanced keys", b.skewedJoin),
			b.row("peak memory of a worker, sort, input 20 × the budget", b.memory),
			b.row("heap objects per input record: word count, sort, grep", b.objects),
			b.row("word count of 1 KB, start to _SUCCESS", b.small),
			b.row("a step of a driver: one map, one reduce, one record", b.step),
			b.row("synced output: word count against unsynced", func() ([]string, error) { return b.synced("wordcount", "text", b.Cores) }),
			b.row("synced output: sort of 100-byte lines against unsynced", func() ([]string, error) { return b.synced("sort", "lines", b.Cores) }),
			b.row("synced output: word count of 1 KB against unsynced", func() ([]string, error) { return b.synced("wordcount", "small", 1) }),
		},
	}
}

// row returns a part that prints one row.
func (b *bench) row(name string, measure func() ([]string, error)) testbed.Part {
	return testbed.Part{Name: name, Measure: func() error {
		columns, err := measure()
		if err == nil {
			testbed.Row(append([]string{name}, columns...)...)
		}
		return err
	}}
}

// prepare writes the inputs.
func (b *bench) prepare(base *testbed.Bench) error {
	b.Bench = base
	return errors.Join(
		input.Text(b.Path("text"), b.Bytes), input.Lines(b.Path("lines"), b.Bytes), input.Text(b.Path("small"), 1<<10),
		testbed.WarmCache(b.Path("text")), testbed.WarmCache(b.Path("lines")))
}

// sortMB is mapreduce.task.io.sort.mb, mergeMB the merge buffers of one home. GNU sort gets the
// memory of all slots together.
const sortMB, mergeMB = 100, 16

// SlotMB is what a program may have for each core, to be compared with Quern.
const SlotMB = sortMB + mergeMB

// Needle is a rare word of the text: some lines match, most do not.
const Needle = "qu"

// Expression matches a part of the lines with the needle.
const Expression = "qu[a-z]*x"

func (b *bench) wordCount() ([]string, error) { return b.countWords(WordLoop, b.Cores, "≥ 0.6") }

func (b *bench) wordBatches() ([]string, error) { return b.countWords(WordBatches, 1, "≥ 0.8") }

// countWords compares word counts of Quern and of this program. It multiplies the program's speed by cores.
func (b *bench) countWords(program string, cores int, target string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	// Partitions are by hash, so our output is in order only within each part.
	return b.against(b.job("wordcount", "text", "-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.Cores)),
		exec.Command(self, program, b.Path("text"), b.Path("peer"), strconv.Itoa(b.Cores)), true, cores, target)
}

// programs are the peers that the benchmark program contains, by its first argument.
var programs = map[string]func(input, output string, cores int) error{WordLoop: CountWords, WordBatches: CountWordsInBatches}

// RunProgram runs a peer, if args name one: its name, input, output, and number of cores.
func RunProgram(args []string) (ok bool, err error) {
	if len(args) != 4 || programs[args[0]] == nil {
		return false, nil
	}
	cores, err := strconv.Atoi(args[3])
	if err != nil || cores < 1 {
		return true, fmt.Errorf("%s: the number of cores must be positive, got %q", args[0], args[3])
	}
	return true, programs[args[0]](args[1], args[2], cores)
}

func (b *bench) sort() ([]string, error) {
	memory := SlotMB * b.Cores
	cmd := exec.Command("sort", fmt.Sprintf("--parallel=%d", b.Cores), "-S", fmt.Sprintf("%dM", memory), "-T", b.Dir,
		"-o", b.Path("peer"), b.Path("lines"))
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	return b.against(b.job("sort", "lines", "-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.Cores)), cmd, false, 1, "≥ 1")
}

func (b *bench) grep(kind, pattern string) ([]string, error) {
	cmd := exec.Command("sh", "-c", fmt.Sprintf("LC_ALL=C exec grep %s '%s' %s > %s", kind, pattern, b.Path("text"), b.Path("peer")))
	return b.against(b.job("grep", "text", "-e", pattern), cmd, false, b.Cores, "≥ 0.7")
}

// against compares a job with a peer. It multiplies the peer's speed by cores.
func (b *bench) against(job, peer *exec.Cmd, resort bool, cores int, target string) ([]string, error) {
	ourTime, peerTime, err := b.pair(job, peer)
	if err == nil {
		err = b.sameOutput(resort)
	}
	if err != nil {
		return nil, err
	}
	return []string{testbed.Speed(b.Bytes, ourTime), testbed.Speed(b.Bytes, peerTime), testbed.Ratio(peerTime, ourTime*time.Duration(cores)), target}, nil
}

func (b *bench) memory() ([]string, error) {
	budget := max(b.Bytes/20>>20, 1)
	cmd := b.job("sort", "lines", "-D", fmt.Sprintf("mapreduce.task.io.sort.mb=%d", budget))
	peak, err := peakWorker(cmd)
	if err != nil {
		return nil, err
	}
	limit := budget + 64
	return []string{fmt.Sprintf("%d MB", peak>>20), fmt.Sprintf("io.sort.mb %d MB", budget),
		fmt.Sprintf("%.2f", float64(peak>>20)/float64(limit)), fmt.Sprintf("≤ 1 (of %d MB)", limit)}, nil
}

// objects divides the heap objects of all attempts by the records of the input.
func (b *bench) objects() ([]string, error) {
	var each []string
	worst := 0.0
	for _, cmd := range []*exec.Cmd{b.job("wordcount", "text"), b.job("sort", "lines"), b.job("grep", "text", "-e", Needle)} {
		if err := os.RemoveAll(b.Path("out")); err != nil {
			return nil, err
		}
		printed, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, printed)
		}
		per := counter(printed, "HEAP_OBJECTS_ALLOCATED") / counter(printed, "Map input records")
		each = append(each, fmt.Sprintf("%.4f", per))
		worst = max(worst, per)
	}
	return []string{strings.Join(each, ", "), "", fmt.Sprintf("%.4f", worst), "≤ 0.01"}, nil
}

// counter reads a counter that a job printed.
func counter(printed []byte, name string) float64 {
	_, after, _ := bytes.Cut(printed, []byte("\t"+name+"="))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	n, err := strconv.ParseFloat(string(line), 64)
	if err != nil {
		return math.NaN()
	}
	return n
}

func (b *bench) small() ([]string, error) {
	times, err := testbed.Alternate(0, max(b.Runs, 20), b.once(b.job("wordcount", "small")))
	if err != nil {
		return nil, err
	}
	return []string{"p50 " + testbed.Millis(testbed.Median(times[0])), "(slowest " + testbed.Millis(slices.Max(times[0])) + ")", "", "p50 ≤ 150 ms"}, nil
}

// step measures runs of one program. The first one, which also starts the workers, counts too.
func (b *bench) step() ([]string, error) {
	cmd := exec.CommandContext(b.Ctx, b.Program("driven"), "-steps", strconv.Itoa(10*max(b.Runs, 3)))
	cmd.Stderr = new(bytes.Buffer)
	printed, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, cmd.Stderr)
	}
	var times []time.Duration
	for line := range strings.Lines(string(printed)) {
		took, err := time.ParseDuration(strings.TrimSpace(line) + "ns")
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	return []string{"p50 " + testbed.Millis(testbed.Median(times)), "(slowest " + testbed.Millis(slices.Max(times)) + ")", "", "p50 ≤ 50 ms"}, nil
}

// synced compares a job with one that does not sync its output.
func (b *bench) synced(name, file string, reduces int) ([]string, error) {
	job := func(sync bool) *exec.Cmd {
		return b.job(name, file, "-D", fmt.Sprintf("mapreduce.job.reduces=%d", reduces), "-D", fmt.Sprintf("quern.output.sync=%v", sync))
	}
	withSync, without, err := b.pair(job(true), job(false))
	if err != nil {
		return nil, err
	}
	return []string{fmt.Sprintf("%.3f s", withSync.Seconds()), fmt.Sprintf("%.3f s", without.Seconds()),
		testbed.Ratio(without, withSync), "–"}, nil
}

// job returns a command that runs an example over an input in the working directory.
func (b *bench) job(name, file string, args ...string) *exec.Cmd {
	args = append([]string{"-input", b.Path(file), "-output", b.Path("out"),
		"-D", fmt.Sprintf("quern.embedded.slots=%d", b.Cores)}, args...)
	return exec.CommandContext(b.Ctx, b.Program(name), args...)
}

// pair alternates both commands and returns the medians of their times.
func (b *bench) pair(job, peer *exec.Cmd) (time.Duration, time.Duration, error) {
	times, err := testbed.Alternate(0, b.Runs, b.once(job), b.once(peer))
	if err != nil {
		return 0, 0, err
	}
	return testbed.Median(times[0]), testbed.Median(times[1]), nil
}

// once runs a copy of cmd from a clean start and times its whole process.
func (b *bench) once(cmd *exec.Cmd) func() (time.Duration, error) {
	output := b.Path("peer")
	if slices.Contains(cmd.Args, b.Path("out")) {
		output = b.Path("out")
	}
	return func() (time.Duration, error) { return testbed.TimedAgain(b.Ctx, cmd, output) }
}

// sameOutput compares our parts, joined in order, with the peer's file byte by byte. With
// resort it sorts our parts first, because ours are in order only within each part.
func (b *bench) sameOutput(resort bool) error {
	parts, err := filepath.Glob(b.Path("out/part-*")) // in order
	if err != nil {
		return err
	}
	joined := exec.CommandContext(b.Ctx, "cat", parts...)
	if resort {
		joined = exec.CommandContext(b.Ctx, "sort", append([]string{"-s", "-t", "\t", "-k1,1"}, parts...)...)
		joined.Env = append(os.Environ(), "LC_ALL=C")
	}
	pipe, err := joined.StdoutPipe()
	if err != nil {
		return err
	}
	if err := joined.Start(); err != nil {
		return err
	}
	compare := exec.CommandContext(b.Ctx, "cmp", "-", b.Path("peer"))
	compare.Stdin = pipe
	printed, differs := compare.CombinedOutput()
	pipe.Close() // otherwise joined would wait until the rest is read
	err = joined.Wait()
	if differs != nil {
		return fmt.Errorf("output differs from the peer's: %w\n%s", differs, printed)
	}
	return err
}
