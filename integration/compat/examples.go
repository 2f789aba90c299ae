package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// exampleJobs runs Hadoop's examples and Quern's. Hadoop's answers for small inputs are recorded; part files of
// larger ones are compared.
type exampleJobs struct{ dir string }

// exampleRun is a run of Hadoop's example, and the same run of Quern's.
type exampleRun struct {
	name string
	tool string
	args []string // of Hadoop, where the output's directory stands for OUT
	ours []string // program and arguments of Quern; nil: only recorded
}

const compareRows, compareLines = 20_000, 20_000

func (e exampleJobs) compared(ctx context.Context) (a answers, err error) {
	dir := filepath.Join(e.dir, "examples")
	if err := os.Mkdir(dir, 0o777); err != nil {
		return a, err
	}
	for name, content := range map[string]string{
		"text": examples.Text(100), "numbers": examples.Numbers(100), "left": examples.Table("left", 40), "right": examples.Table("right", 40),
		"empty": "", "bigtext": examples.Text(compareLines), "bignumbers": examples.Numbers(compareLines),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			return a, err
		}
	}
	java, err := e.compile(ctx, dir)
	if err != nil {
		return a, err
	}
	small, large := smallRuns(), largeRuns()
	// The rows come first: the input of other runs is made from them. The local runner has one map for them.
	rows := []exampleRun{
		{name: "teragen", tool: "teragen", args: []string{fmt.Sprint(examples.Rows), "OUT"}},
		{name: "bigrows", tool: "teragen", args: []string{fmt.Sprint(compareRows), "OUT"}, ours: []string{"tera", "-do", "gen", "-maps", "1", "-rows", fmt.Sprint(compareRows)}},
	}
	codes, err := java(rows)
	if err != nil {
		return a, err
	}
	if err := e.damage(dir); err != nil {
		return a, err
	}
	more, err := java(append(small, large...))
	if err != nil {
		return a, err
	}
	maps.Copy(codes, more)
	a = answers{version: hadoopVersion, records: make(map[string]string)}
	var recorded strings.Builder
	recorded.WriteString("# What Hadoop's examples write: run, file, content or its SHA-256. Make compat records it.\n\n")
	for _, r := range append(rows[:1], small...) {
		files, err := filesOf(dir, r.name, codes[r.name])
		if err != nil {
			return a, err
		}
		recorded.WriteString(examples.Lines(r.name, files))
	}
	a.records[examples.Recorded] = recorded.String()
	return a, e.compare(ctx, dir, append(rows[1:], large...), codes, &a)
}

// smallRuns returns the runs with recorded answers.
func smallRuns() (runs []exampleRun) {
	joined := []string{"-inFormat", "org.apache.hadoop.mapreduce.lib.input.KeyValueTextInputFormat", "-outFormat", "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat", "-outKey", "org.apache.hadoop.io.Text"}
	for _, reduces := range []string{"1", "2", "7"} {
		n := "-Dmapreduce.job.reduces=" + reduces
		runs = append(runs,
			exampleRun{name: "wordcount-" + reduces, tool: "wordcount", args: []string{n, "text", "OUT"}},
			exampleRun{name: "grep-" + reduces, tool: "grep", args: []string{n, "text", "OUT", examples.Pattern}},
			exampleRun{name: "sort-" + reduces, tool: "sort", args: append(sortLines(reduces), "text", "OUT")},
			exampleRun{name: "secondarysort-" + reduces, tool: "secondarysort", args: []string{n, "numbers", "OUT"}},
			exampleRun{name: "terasort-" + reduces, tool: "terasort", args: []string{n, "teragen.out", "OUT"}},
			exampleRun{name: "joined-" + reduces, tool: "join", args: append(slices.Concat([]string{"-r", reduces}, joined), "-joinOp", "inner", "left", "right", "OUT")},
			exampleRun{name: "empty-" + reduces, tool: "wordcount", args: []string{n, "empty", "OUT"}},
			exampleRun{name: "simple-" + reduces, tool: "terasort", args: []string{n, "-Dmapreduce.terasort.simplepartitioner=true", "teragen.out", "OUT"}},
		)
	}
	return append(runs,
		exampleRun{name: "validate-unsorted", tool: "teravalidate", args: []string{"teragen.out", "OUT"}},
		exampleRun{name: "validate-sorted", tool: "teravalidate", args: []string{"simple-2.out", "OUT"}},
		exampleRun{name: "validate-swapped", tool: "teravalidate", args: []string{"swapped", "OUT"}},
		exampleRun{name: "validate-short", tool: "teravalidate", args: []string{"short", "OUT"}},
		exampleRun{name: "checksum", tool: "terachecksum", args: []string{"teragen.out", "OUT"}},
		exampleRun{name: "wordmean", tool: "wordmean", args: []string{"text", "OUT"}},
		exampleRun{name: "wordmean-empty", tool: "wordmean", args: []string{"empty", "OUT"}},
		exampleRun{name: "pi-3-1000", tool: "pi", args: []string{"3", "1000"}},
		exampleRun{name: "pi-7-999", tool: "pi", args: []string{"7", "999"}},
		exampleRun{name: "join-inner", tool: "join", args: append(slices.Concat([]string{"-r", "0"}, joined), "-joinOp", "inner", "left", "right", "OUT")},
		exampleRun{name: "join-outer", tool: "join", args: append(slices.Concat([]string{"-r", "0"}, joined), "-joinOp", "outer", "left", "right", "OUT")},
		exampleRun{name: "randomtext", tool: "randomtextwriter", args: []string{"-Dmapreduce.randomtextwriter.bytespermap=1000000", "-Dmapreduce.randomtextwriter.totalbytes=1000000", "-outFormat", "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat", "OUT"}},
	)
}

// largeRuns returns the runs with part files that are compared with those of Quern.
func largeRuns() (runs []exampleRun) {
	for _, reduces := range []string{"1", "2", "7"} {
		n := "-Dmapreduce.job.reduces=" + reduces
		d := []string{"-D", "mapreduce.job.reduces=" + reduces}
		tera := "bigterasort-" + reduces
		runs = append(runs,
			exampleRun{name: "bigwordcount-" + reduces, tool: "wordcount", args: []string{n, "bigtext", "OUT"}, ours: append([]string{"wordcount", "-input", "bigtext"}, d...)},
			exampleRun{name: "biggrep-" + reduces, tool: "grep", args: []string{n, "bigtext", "OUT", examples.Pattern},
				ours: []string{"grep", "-input", "bigtext", "-count", "-e", examples.Pattern, "-D", "grep-search:mapreduce.job.reduces=" + reduces}},
			exampleRun{name: "bigsort-" + reduces, tool: "sort", args: append(sortLines(reduces), "bigtext", "OUT"), ours: append([]string{"sort", "-hash", "-input", "bigtext"}, d...)},
			exampleRun{name: "bigsecondarysort-" + reduces, tool: "secondarysort", args: []string{n, "bignumbers", "OUT"}, ours: append([]string{"secondarysort", "-input", "bignumbers"}, d...)},
			exampleRun{name: tera, tool: "terasort", args: []string{n, "bigrows.out", "OUT"}, ours: append([]string{"tera", "-do", "sort", "-input", "bigrows.out", "-partitions", tera + ".out/_partition.lst"}, d...)},
		)
	}
	return runs
}

// sortLines returns arguments with which Hadoop's Sort writes its input's lines unchanged.
func sortLines(reduces string) []string {
	return []string{"-r", reduces, "-inFormat", "HadoopExamples$Lines", "-outFormat", "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat",
		"-outKey", "org.apache.hadoop.io.Text", "-outValue", "org.apache.hadoop.io.NullWritable"}
}

// damage writes the inputs of TeraValidate that have mistakes.
func (e exampleJobs) damage(dir string) error {
	rows, err := filesOf(dir, "teragen", "0")
	if err != nil {
		return err
	}
	first := rows["part-m-00000"]
	for name, content := range map[string]string{"swapped/part-r-00000": examples.Damage(first), "short/part-r-00000": first[:250]} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o777), os.WriteFile(name, []byte(content), 0o666)); err != nil {
			return err
		}
	}
	return nil
}

// compile returns a function that runs examples in Hadoop and returns their exit codes.
func (e exampleJobs) compile(ctx context.Context, dir string) (func([]exampleRun) (map[string]string, error), error) {
	java, err := compiled(ctx, dir, "HadoopExamples", minicluster.LocalRunner("mapreduce-examples")...)
	if err != nil {
		return nil, err
	}
	return func(runs []exampleRun) (map[string]string, error) {
		var in strings.Builder
		for _, r := range runs {
			line := strings.Join(append([]string{r.name, r.tool}, r.args...), "\t")
			in.WriteString(strings.ReplaceAll(line, "\tOUT", "\t"+r.name+".out") + "\n")
		}
		printed, err := java(in.String())
		if err != nil {
			return nil, err
		}
		codes := make(map[string]string)
		for line := range strings.Lines(printed) {
			name, code, _ := strings.Cut(strings.TrimSpace(line), " ")
			codes[name] = code
		}
		return codes, nil
	}, nil
}

// filesOf returns what a run of Hadoop has written and printed.
func filesOf(dir, run, code string) (map[string]string, error) {
	files := make(map[string]string)
	names, err := filepath.Glob(filepath.Join(dir, run+".out", "*"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if base := filepath.Base(name); base != "_SUCCESS" && base[0] != '.' {
			files[base] = string(content)
		}
	}
	printed, err := os.ReadFile(filepath.Join(dir, run+".stdout"))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(printed)) {
		if strings.HasPrefix(line, "Estimated value") || strings.HasPrefix(line, "The mean is") {
			files["printed"] = line
		}
	}
	switch {
	case code != "0":
		return map[string]string{"exit-code": code}, nil
	case run == "randomtext": // other words in each run
		for name, content := range files {
			files[name] = examples.Sentences(content)
		}
	case strings.HasPrefix(run, "joined-"):
		for name, content := range files {
			files[name] = examples.Sorted(map[string]string{name: content})
		}
	case strings.HasPrefix(run, "join-"), strings.HasPrefix(run, "validate-"): // values of a key have no order
		files = map[string]string{"sorted": examples.Sorted(files)}
	}
	return files, nil
}

// compare runs Quern's examples and compares their part files with Hadoop's.
func (e exampleJobs) compare(ctx context.Context, dir string, runs []exampleRun, codes map[string]string, a *answers) error {
	build := exec.CommandContext(ctx, "go", "build", "-o", dir+"/bin/", "./examples/tera", "./examples/wordcount", "./examples/grep", "./examples/sort", "./examples/secondarysort")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the examples: %w\n%s", err, out)
	}
	for _, r := range runs {
		theirs, err := filesOf(dir, r.name, codes[r.name])
		if err != nil {
			return err
		}
		if code := codes[r.name]; code != "0" {
			return fmt.Errorf("exit code %s of Hadoop's %s", code, r.name)
		}
		output := filepath.Join(dir, r.name+".quern")
		cmd := exec.CommandContext(ctx, filepath.Join(dir, "bin", r.ours[0]), append(r.ours[1:], "-output", output)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("run %s: %w\n%s", strings.Join(r.ours, " "), err, out)
		}
		if strings.HasPrefix(r.name, "biggrep") {
			output += "/grep-sort"
		}
		for name, want := range theirs {
			if strings.HasPrefix(name, "_") {
				continue
			}
			a.lines++
			if got, err := os.ReadFile(filepath.Join(output, name)); err != nil || string(got) != want {
				a.differences = append(a.differences, fmt.Sprintf("%s: %s differs: %d bytes of Hadoop, %d of Quern, %v", r.name, name, len(want), len(got), err))
			}
		}
	}
	return nil
}
