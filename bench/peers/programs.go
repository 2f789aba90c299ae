package peers

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/quernmr/quern/bench/machine"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	queries "github.com/quernmr/quern/integration/tpch/peers"
)

var (
	//go:embed spark.py
	sparkScript string

	//go:embed LineJobs.java
	lineJobs []byte

	// hadoopLog makes Hadoop print why a job fails.
	//go:embed log4j.properties
	hadoopLog []byte
)

// Kinds of input.
const text, lines = "text", "lines"

// countWords is the plain tool's word count.
const countWords = `{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print w "\t" n[w] }`

// job returns a job with Quern first.
func (b *bench) job(name string) *job {
	cores := fmt.Sprint(b.Cores)
	switch name {
	case "word count":
		return &job{name: name, input: text, unordered: true, programs: []program{
			b.quern("wordcount", "-D", "mapreduce.job.reduces="+cores),
			b.byHand(),
			b.tool("awk", `awk "$1" "$2" > "$3"`, countWords),
			b.hadoopJob("org.apache.hadoop.examples.WordCount", ""),
			b.sparkJob("wordcount"),
		}}
	case "sort":
		return &job{name: name, input: lines, programs: []program{
			b.quern("sort", "-D", "mapreduce.job.reduces="+cores),
			b.tool("GNU sort", `sort --parallel="$1" -S "$2" -T "$3" -o "$5" "$4"`, cores, fmt.Sprintf("%dM", machine.SlotMB*b.Cores), b.Dir),
			b.hadoopJob("LineJobs", "sort", b.Dir),
			b.sparkJob("sort"),
		}}
	case "grep -F":
		return b.grep("-F", machine.Needle)
	}
	return b.grep("-E", machine.Expression)
}

func (b *bench) grep(kind, pattern string) *job {
	return &job{name: "grep " + kind, input: text, unordered: true, programs: []program{
		b.quern("grep", "-e", pattern),
		b.tool("GNU grep, one thread", `grep "$1" "$2" "$3" > "$4"`, kind, pattern),
		b.hadoopJob("LineJobs", "grep", pattern),
		b.sparkJob("grep "+kind, pattern),
	}}
}

func (b *bench) quern(example string, args ...string) program {
	return program{"Quern", func(in, out string) *exec.Cmd {
		args := append([]string{"-input", in, "-output", out, "-D", fmt.Sprintf("quern.embedded.slots=%d", b.Cores)}, args...)
		return b.at(exec.CommandContext(b.Ctx, b.Program(example), args...))
	}}
}

// byHand is a program that can only count words.
func (b *bench) byHand() program {
	return program{"by hand", func(in, out string) *exec.Cmd {
		return b.at(exec.CommandContext(b.Ctx, b.self, machine.WordBatches, in, out, fmt.Sprint(b.Cores)))
	}}
}

// tool is a command of the shell. The last two arguments are the input and the output.
func (b *bench) tool(name, command string, args ...string) program {
	return program{name, func(in, out string) *exec.Cmd {
		return b.shell(command, append(args[:len(args):len(args)], in, out)...)
	}}
}

func (b *bench) shell(command string, args ...string) *exec.Cmd {
	cmd := b.at(exec.CommandContext(b.Ctx, "sh", append([]string{"-c", command, "sh"}, args...)...))
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	return cmd
}

// hadoopJob is a class for Hadoop's local runner. The verb, if any, comes before the input and the output, args after them.
func (b *bench) hadoopJob(class, verb string, args ...string) program {
	return program{"Hadoop", func(in, out string) *exec.Cmd {
		all := []string{"-D", fmt.Sprintf("mapreduce.job.reduces=%d", b.Cores)}
		if verb != "" {
			all = append(all, verb)
		}
		return b.at(b.LocalHadoop(b.hadoop, class, append(append(all, "file://"+in, "file://"+out), args...)...))
	}}
}

func (b *bench) sparkJob(name string, args ...string) program {
	return program{"Spark", func(in, out string) *exec.Cmd {
		all := append([]string{"-c", sparkScript, name, fmt.Sprint(b.Cores), b.Dir, in, out}, args...)
		return b.at(exec.CommandContext(b.Ctx, b.spark, all...))
	}}
}

// at makes a command use the working directory of the benchmark, also for its temporary files.
func (b *bench) at(cmd *exec.Cmd) *exec.Cmd {
	cmd.Dir, cmd.Env = b.Dir, append(os.Environ(), "TMPDIR="+b.Dir)
	return cmd
}

// fetch gets Spark, and Hadoop with the class LineJobs.
func (b *bench) fetch() (err error) {
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	spark, err := queries.Spark(b.Ctx)
	if err != nil {
		return err
	}
	b.spark = spark.Program("python")
	jars, err := minicluster.Classpath(b.Ctx, minicluster.LocalRunner("mapreduce-examples")...)
	if err != nil {
		return err
	}
	classes := b.Path("classes")
	b.hadoop = classes + ":" + jars
	source := filepath.Join(classes, "LineJobs.java")
	if err := errors.Join(os.MkdirAll(classes, 0o777), os.WriteFile(source, lineJobs, 0o666),
		os.WriteFile(filepath.Join(classes, "log4j.properties"), hadoopLog, 0o666)); err != nil {
		return err
	}
	if out, err := exec.CommandContext(b.Ctx, "javac", "-cp", jars, "-d", classes, source).CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w\n%s", source, err, out)
	}
	return nil
}
