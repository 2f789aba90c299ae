package hadoop

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/quernmr/quern/bench/testbed"
)

// Scripts of word counts. They are in the working directory of the benchmark.
var scripts = map[string]string{
	"map.py": "import sys\nfor line in sys.stdin:\n    for word in line.split():\n        print(word + '\\t1')\n",
	"reduce.py": "import sys\nlast, total = None, 0\nfor line in sys.stdin:\n    word, count = line.rstrip('\\n').split('\\t')\n" +
		"    if word != last:\n        if last is not None:\n            print(last + '\\t' + str(total))\n        last, total = word, 0\n    total += int(count)\n" +
		"if last is not None:\n    print(last + '\\t' + str(total))\n",
	"map.awk":    "{ for (i = 1; i <= NF; i++) print $i \"\\t1\" }\n",
	"reduce.awk": "BEGIN { FS = \"\\t\" } $1 != last { if (NR > 1) print last \"\\t\" n; last = $1; n = 0 } { n += $2 } END { if (NR) print last \"\\t\" n }\n",
}

// streamingParts are jobs of Hadoop Streaming.
func (b *bench) streamingParts() []testbed.Part {
	columns := []string{"commands", "Quern", "peer", "peer ÷ Quern", "target"}
	words := func(name, program string, target, byHand string) testbed.Part {
		return testbed.Part{Name: "streaming word count in " + name, Columns: columns, Measure: func() error {
			mapper, reducer := program+" map."+name, program+" reduce."+name
			if err := b.streamed(name, mapper, reducer, "Hadoop", target, b.hadoopStreaming(mapper, reducer)); err != nil || byHand == "" {
				return err
			}
			return b.streamed(name, mapper, reducer, "pipes", byHand, b.pipes(mapper, reducer))
		}}
	}
	return []testbed.Part{
		words("py", "python3", "≥ 2", "≥ 0.87"),
		words("awk", "awk -f", "≥ 4", ""),
		{Name: "streaming sort", Columns: columns, Measure: func() error {
			return b.streamed("sort", "cat", "cat", "sort and cat", "≥ 0.63", b.sortAndCat())
		}},
	}
}

// writeScripts writes the scripts. Images of containers often set PYTHONUNBUFFERED. With it, Python makes two writes for each
// print, and all that is measured here is the kernel's time for them.
func (b *bench) writeScripts() error {
	err := os.Unsetenv("PYTHONUNBUFFERED")
	for name, text := range scripts {
		err = errors.Join(err, os.WriteFile(b.Path(name), []byte(text), 0o666))
	}
	return err
}

// streamingArgs are the options of a job that both understand.
func (b *bench) streamingArgs(mapper, reducer, out string) []string {
	return []string{"-files", b.Path("map.py") + "," + b.Path("reduce.py") + "," + b.Path("map.awk") + "," + b.Path("reduce.awk"),
		"-input", b.Path("text"), "-output", b.Path(out), "-mapper", mapper, "-reducer", reducer, "-numReduceTasks", fmt.Sprint(b.Cores)}
}

func (b *bench) hadoopStreaming(mapper, reducer string) *exec.Cmd {
	return b.LocalHadoop(b.classpath, "org.apache.hadoop.streaming.HadoopStreaming", b.streamingArgs(mapper, reducer, "out-peer")...)
}

// halve cuts the input at a line, for the processes of pipes and sortAndCat.
func (b *bench) halve() error {
	out, err := exec.CommandContext(b.Ctx, "split", "-n", fmt.Sprintf("l/%d", b.Cores), b.Path("text"), b.Path("half-")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("split: %w: %s", err, out)
	}
	return nil
}

// pipes runs the commands by hand: a process and a sort for each half of the input, and one process for the result.
func (b *bench) pipes(mapper, reducer string) *exec.Cmd {
	script := fmt.Sprintf(`cd %s; mkdir out-peer; export LC_ALL=C
for half in half-*; do %s < $half | sort > out-peer/$half.sorted & done; wait
sort -m out-peer/*.sorted | %s > out-peer/part-00000`, b.Dir, mapper, reducer)
	return exec.CommandContext(b.Ctx, "sh", "-c", script)
}

// sortAndCat is the native sort, and the same bytes twice through cat.
func (b *bench) sortAndCat() *exec.Cmd {
	script := fmt.Sprintf(`%s -hash -input %s -output %s -D quern.embedded.slots=%d -D mapreduce.job.reduces=%d &&
for half in %s*; do cat $half | cat > /dev/null & done; wait`, b.Program("sort"), b.Path("text"), b.Path("out-peer"), b.Cores, b.Cores, b.Path("half-"))
	return exec.CommandContext(b.Ctx, "sh", "-c", script)
}

// streamed alternates a job with a peer.
func (b *bench) streamed(name, mapper, reducer, peer, target string, theirs *exec.Cmd) error {
	if err := errors.Join(testbed.WarmCache(b.Path("text")), b.writeScripts(), b.halve()); err != nil {
		return err
	}
	args := append([]string{"streaming", "-quiet", "-D", fmt.Sprintf("quern.embedded.slots=%d", b.Cores)}, b.streamingArgs(mapper, reducer, "out-quern")...)
	ours := exec.CommandContext(b.Ctx, b.Program("mrsubmit"), args...)
	times, err := testbed.Alternate(0, b.Runs,
		func() (time.Duration, error) { return testbed.TimedAgain(b.Ctx, ours, b.Path("out-quern")) },
		func() (time.Duration, error) { return testbed.TimedAgain(b.Ctx, theirs, b.Path("out-peer")) })
	if err != nil {
		return err
	}
	if peer == "Hadoop" {
		err = b.same("out-peer")
	} else {
		err = b.sameLines()
	}
	if err != nil {
		return err
	}
	quern, other := testbed.Median(times[0]), testbed.Median(times[1])
	testbed.Row(name+", "+peer, testbed.Speed(b.Bytes, quern), testbed.Speed(b.Bytes, other), testbed.Ratio(other, quern), target)
	return nil
}

// sameLines compares the lines of an output with those of a peer that partitions otherwise. Streaming writes a tab after a
// line without a value.
func (b *bench) sameLines() error {
	script := `export LC_ALL=C; sort -m out-quern/part-* | sed 's/\t$//' > quern.lines; sort -m out-peer/part-* | cmp quern.lines -`
	compare := exec.CommandContext(b.Ctx, "sh", "-c", script)
	compare.Dir = b.Dir
	if printed, err := compare.CombinedOutput(); err != nil {
		return fmt.Errorf("output differs: %w\n%s", err, printed)
	}
	return nil
}
