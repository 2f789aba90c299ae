// Package hadoop compares embedded jobs with the same jobs on Hadoop's local runner, which gets as many map and reduce
// tasks at a time as Quern has slots. The processes alternate, and their part files must be equal.
package hadoop

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

type bench struct {
	*testbed.Bench
	classpath string
}

// Section declares the flags and parts.
func Section() testbed.Section {
	b := &bench{}
	columns := []string{"job", "Quern", "Hadoop", "Hadoop ÷ Quern", "processor time of Quern", "of Hadoop", "Hadoop ÷ Quern", "target"}
	section := testbed.Section{
		Name: "hadoop", About: "embedded jobs compared with Hadoop's local runner; needs Java and Maven",
		Runs: 3, Size: "1G", Cores: runtime.NumCPU(),
		Programs: []string{"examples/wordcount", "bench/hadoop/sequencewords", "cmd/mrsubmit", "examples/sort"},
		Open:     b.prepare,
		Parts: []testbed.Part{
			{Name: "word count of text", Columns: columns, Measure: func() error { return b.words("text", "wordcount", "", "–") }},
			{Name: "word count of bzip2", Columns: columns, Measure: func() error { return b.words("text.bz2", "wordcount", "", "≥ 3") }},
			{Name: "word count of a SequenceFile", Columns: columns, Measure: func() error {
				return b.words("sequence", "sequencewords", "SequenceFileInputFormat", "≥ 6")
			}},
		},
	}
	section.Parts = append(section.Parts, b.streamingParts()...)
	return section
}

// prepare writes the inputs. They have size bytes before compression.
func (b *bench) prepare(base *testbed.Bench) (err error) {
	b.Bench = base
	if b.classpath, err = minicluster.Classpath(b.Ctx, minicluster.LocalRunner("mapreduce-examples", "streaming", "yarn-client")...); err != nil {
		return err
	}
	if err := input.Text(b.Path("text"), b.Bytes); err != nil {
		return err
	}
	if _, err := os.Stat(b.Path("text.bz2")); err != nil {
		if out, err := exec.CommandContext(b.Ctx, "bzip2", "-k", b.Path("text")).CombinedOutput(); err != nil {
			return fmt.Errorf("bzip2: %w: %s", err, out)
		}
	}
	if _, err := os.Stat(b.Path("sequence")); err == nil {
		return nil
	}
	_, err = testbed.Timed(b.quern("sequencewords", "text", "sequence", "-make", "-D", "mapreduce.output.fileoutputformat.compress=true",
		"-D", "mapreduce.output.fileoutputformat.compress.type=BLOCK", "-D", "mapreduce.output.fileoutputformat.compress.codec=deflate"))
	return err
}

func (b *bench) quern(program, in, out string, args ...string) *exec.Cmd {
	args = append([]string{"-input", b.Path(in), "-output", b.Path(out), "-D", fmt.Sprintf("quern.embedded.slots=%d", b.Cores)}, args...)
	return exec.CommandContext(b.Ctx, b.Program(program), args...)
}

// hadoop is Hadoop's example wordcount.
func (b *bench) hadoop(in, out, format string) *exec.Cmd {
	args := []string{"-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.Cores)}
	if format != "" {
		args = append(args, "-D", "mapreduce.job.inputformat.class=org.apache.hadoop.mapreduce.lib.input."+format)
	}
	return b.LocalHadoop(b.classpath, "org.apache.hadoop.examples.WordCount", append(args, "file://"+b.Path(in), "file://"+b.Path(out))...)
}

// words alternates two word counts.
func (b *bench) words(in, program, format, target string) error {
	if err := testbed.WarmCache(b.Path(in)); err != nil {
		return err
	}
	ours, theirs := b.quern(program, in, "out-quern", "-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.Cores)), b.hadoop(in, "out-hadoop", format)
	used, err := testbed.Alternate(0, b.Runs,
		func() (testbed.Usage, error) { return testbed.UsedAgain(b.Ctx, ours, b.Path("out-quern")) },
		func() (testbed.Usage, error) { return testbed.UsedAgain(b.Ctx, theirs, b.Path("out-hadoop")) })
	if err != nil {
		return err
	}
	if err := b.same("out-hadoop"); err != nil {
		return err
	}
	quern, quernProcessor := medians(used[0])
	peer, peerProcessor := medians(used[1])
	testbed.Row(program+" of "+in, testbed.Speed(b.Bytes, quern), testbed.Speed(b.Bytes, peer), testbed.Ratio(peer, quern),
		testbed.Seconds(quernProcessor), testbed.Seconds(peerProcessor), testbed.Ratio(peerProcessor, quernProcessor), target)
	return nil
}

func medians(used []testbed.Usage) (elapsed, processor time.Duration) {
	var all [2][]time.Duration
	for _, u := range used {
		all[0], all[1] = append(all[0], u.Elapsed), append(all[1], u.Processor)
	}
	return testbed.Median(all[0]), testbed.Median(all[1])
}

// same compares the part files with those of a peer.
func (b *bench) same(peer string) error {
	parts, err := filepath.Glob(b.Path("out-quern/part-*"))
	if err == nil && len(parts) != b.Cores {
		err = fmt.Errorf("%d part files, want %d", len(parts), b.Cores)
	}
	for _, ours := range parts {
		theirs := b.Path(filepath.Join(peer, filepath.Base(ours)))
		if printed, differ := exec.CommandContext(b.Ctx, "cmp", ours, theirs).CombinedOutput(); differ != nil {
			err = errors.Join(err, fmt.Errorf("output differs: %w\n%s", differ, bytes.TrimSpace(printed)))
		}
	}
	return err
}
