// Package files measures what the codecs of files and of map output cost: jobs with each codec, beside the same job
// with plain files. The jobs of a part alternate, and their outputs are compared before a figure is printed.
package files

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/quernmr/quern/bench/input"
	"github.com/quernmr/quern/bench/testbed"
	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/shuffle"
)

type bench struct{ *testbed.Bench }

// plain is the name of the variant without a codec; it comes first in each part.
const plain = "plain"

// Section declares the flags and parts.
func Section() testbed.Section {
	b := &bench{}
	columns := []string{"codec", "time", "plain", "time ÷ plain", "bytes ÷ plain"}
	return testbed.Section{
		Name: "files", About: "codecs of input, output and map output compared with plain files",
		Runs: 3, Size: "256M", Cores: runtime.NumCPU(),
		Programs: []string{"examples/wordcount", "examples/sort", "examples/grep"},
		Open:     b.prepare,
		Parts: []testbed.Part{
			{Name: "output: copy of a text", Columns: columns, Measure: b.output},
			{Name: "input: word count of the copies", Columns: columns, Measure: b.input},
			{Name: "input: word count of one file", Columns: columns, Measure: b.oneFile},
			{Name: "map output: sort of 100-byte lines", Columns: columns, Measure: b.mapOutput},
		},
	}
}

// variant is a job of a part. It returns the bytes that its codec wrote or read.
type variant struct {
	name  string
	job   *exec.Cmd
	bytes func() (int64, error)
}

func codecs() []string {
	names := []string{plain}
	for _, c := range compression.Codecs() {
		names = append(names, c.Name)
	}
	return names
}

// prepare writes the inputs, and a copy of the text by each codec.
func (b *bench) prepare(base *testbed.Bench) error {
	b.Bench = base
	if err := errors.Join(input.Text(b.Path("text"), b.Bytes), input.Lines(b.Path("lines"), b.Bytes)); err != nil {
		return err
	}
	for _, name := range codecs() {
		if _, err := os.Stat(b.Path("copy-" + name)); err == nil {
			continue
		}
		if _, err := testbed.Timed(b.copyJob(name, "copy-"+name)); err != nil {
			return err
		}
		if err := b.join("copy-"+name, "one-"+name+suffix(name)); err != nil {
			return err
		}
	}
	return nil
}

func suffix(name string) string {
	codec, err := compression.Named(name)
	if err != nil {
		return "" // plain
	}
	return codec.Suffix
}

// join writes the files of a directory into one.
func (b *bench) join(dir, file string) error {
	parts, err := filepath.Glob(b.Path(dir + "/part-*"))
	if err != nil {
		return err
	}
	out, err := os.Create(b.Path(file))
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(b.Ctx, "cat", parts...)
	cmd.Stdout = out
	return errors.Join(cmd.Run(), out.Close())
}

// copyJob writes all lines of the text into a directory.
func (b *bench) copyJob(codec, output string) *exec.Cmd {
	return b.job("grep", "text", output, codec, "mapreduce.output.fileoutputformat.compress", "-e", "")
}

// job runs an example with a codec for the property and its .codec.
func (b *bench) job(program, in, out, codec, property string, args ...string) *exec.Cmd {
	args = append([]string{"-input", b.Path(in), "-output", b.Path(out), "-D", fmt.Sprintf("quern.embedded.slots=%d", b.Cores)}, args...)
	if codec != plain {
		args = append(args, "-D", property+"=true", "-D", property+".codec="+codec)
	}
	return exec.CommandContext(b.Ctx, b.Program(program), args...)
}

func (b *bench) output() error {
	var all []variant
	for _, name := range codecs() {
		all = append(all, variant{name, b.copyJob(name, "out"), func() (int64, error) { return size(b.Path("out")) }})
	}
	return b.measure(all, false)
}

func (b *bench) input() error {
	return b.words(func(name string) string { return "copy-" + name })
}

func (b *bench) oneFile() error {
	return b.words(func(name string) string { return "one-" + name + suffix(name) })
}

func (b *bench) words(in func(codec string) string) error {
	var all []variant
	for _, name := range codecs() {
		job := b.job("wordcount", in(name), "out", plain, "", "-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.Cores))
		all = append(all, variant{name, job, func() (int64, error) { return size(b.Path(in(name))) }})
	}
	return b.measure(all, true)
}

func (b *bench) mapOutput() error {
	var all []variant
	for _, name := range shuffle.CodecNames() {
		name = cmp.Or(name, plain)
		job := b.job("sort", "lines", "out", name, "mapreduce.map.output.compress", "-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.Cores))
		all = append(all, variant{name: name, job: job})
	}
	return b.measure(all, true)
}

// measure alternates jobs and prints a row for each but the first one. With same, all outputs must be equal.
func (b *bench) measure(all []variant, same bool) error {
	sizes := make([]int64, len(all))
	var runs []func() (time.Duration, error)
	for i, v := range all {
		runs = append(runs, func() (time.Duration, error) {
			took, err := testbed.TimedAgain(b.Ctx, v.job, b.Path("out"))
			if err != nil {
				return 0, err
			}
			if v.bytes != nil {
				if sizes[i], err = v.bytes(); err != nil {
					return 0, err
				}
			}
			if same {
				err = b.same(i == 0)
			}
			return took, err
		})
	}
	times, err := testbed.Alternate(0, b.Runs, runs...)
	if err != nil {
		return err
	}
	base := testbed.Median(times[0])
	for i, v := range all[1:] {
		took, share := testbed.Median(times[i+1]), "–"
		if v.bytes != nil {
			share = fmt.Sprintf("%.2f", float64(sizes[i+1])/float64(sizes[0]))
		}
		testbed.Row(v.name, testbed.Speed(b.Bytes, took), testbed.Speed(b.Bytes, base), testbed.Ratio(took, base), share)
	}
	return nil
}

// same keeps the first job's output, and compares the output of the others with it.
func (b *bench) same(first bool) error {
	if first {
		return errors.Join(os.RemoveAll(b.Path("expected")), os.Rename(b.Path("out"), b.Path("expected")))
	}
	printed, err := exec.CommandContext(b.Ctx, "diff", "-rq", b.Path("expected"), b.Path("out")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("output differs: %w\n%s", err, bytes.TrimSpace(printed))
	}
	return nil
}

// size returns the bytes of a file, or of the parts in a directory.
func size(name string) (total int64, err error) {
	names, err := filepath.Glob(name + "/part-*")
	if err != nil {
		return 0, err
	}
	if len(names) == 0 {
		names = []string{name}
	}
	for _, n := range names {
		info, err := os.Stat(n)
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}
