// Package mrtest tests jobs as Quern runs them, in the test's own process:
// encoded, sorted, shuffled and committed, on an in-memory file system.
//
//	func TestWordcount(t *testing.T) {
//		job, err := wordcount()
//		if err != nil {
//			t.Fatal(err)
//		}
//		if got := mrtest.Run(t, job, "b a\nb\n"); got != "a\t1\nb\t2\n" {
//			t.Errorf("got %q", got)
//		}
//	}
//
// A job must give the same records however its input is split and its work is
// spread, or it will surprise on a cluster. So every call runs it several times:
//
//   - as it is;
//   - with a split for every few bytes, so that each map sees a record or none;
//   - with the lines of its input in reverse order ([Run] alone);
//   - without its combiner;
//   - on three reduces.
//
// The outputs must hold the same lines, in whatever order. In all runs but the
// first, the bytes that a reduce has been given are overwritten when they are no
// longer valid: code that kept them shows.
//
// Attempts share the test's process, so here, unlike on a cluster, what a job's
// functions capture lives as long as the job, and relative file names are the
// test's.
package mrtest

import (
	"cmp"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/embedded"
	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/wire"
)

// Runnable is *mapreduce.Job or *mapreduce.Flow.
type Runnable = bridge.Compiler

// Output is what a job or flow has written.
type Output struct {
	// Files are the part files by name: part-r-00000, errors-m-00000. In a flow
	// of several jobs each final job has a directory: sorted/part-r-00000.
	Files    map[string]string
	Counters map[string]map[string]int64 // by group and name, of all jobs
}

// Text is the main output: the part files' contents, in order.
func (o *Output) Text() string { return o.Named("part") }

// Named is a named output: its part files' contents, in order.
func (o *Output) Named(name string) string {
	var b strings.Builder
	for _, file := range slices.Sorted(maps.Keys(o.Files)) {
		if strings.HasPrefix(path.Base(file), name+"-") {
			b.WriteString(o.Files[file])
		}
	}
	return b.String()
}

// inputName is the file of Run's input.
const inputName = "input"

// Run runs a job that reads -input over the input given, and returns its main
// output. It fails the test if the job fails, or if its runs disagree.
func Run(t testing.TB, job Runnable, input string) string {
	t.Helper()
	files := map[string]string{inputName: input}
	reversed := map[string]string{inputName: reverseLines(input)}
	want := run(t, job, files, variant{})
	for _, v := range variants {
		agree(t, v.name, want, run(t, job, files, v))
	}
	if readsLines(t, job) {
		v := variant{name: "with its input in reverse order", poison: true}
		agree(t, v.name, want, run(t, job, reversed, v))
	}
	return want.Text()
}

// RunFiles runs a job or flow over files. Its paths name them, relative; what
// reads -input reads all of them. It fails the test as [Run] does.
func RunFiles(t testing.TB, job Runnable, files map[string]string) *Output {
	t.Helper()
	want := run(t, job, files, variant{})
	for _, v := range variants {
		agree(t, v.name, want, run(t, job, files, v))
	}
	return want
}

// variant is a way to run a job that must not change its output.
type variant struct {
	name       string
	properties map[string]string
	reduces    bool // properties change the number of reduces
	noCombine  bool
	poison     bool
}

var variants = []variant{
	{name: "split by record", poison: true, properties: map[string]string{"mapreduce.input.fileinputformat.split.maxsize": "8"}},
	{name: "without its combiner", poison: true, noCombine: true},
	{name: "on three reduces", poison: true, reduces: true, properties: map[string]string{"mapreduce.job.reduces": "3"}},
}

const (
	inputDir  = "mem://mrtest/in"
	outputDir = "mem://mrtest/out"
)

func run(t testing.TB, job Runnable, files map[string]string, v variant) *Output {
	t.Helper()
	memory := dfs.Mux{"mem": mem.New(1 << 20), "file": local.New()}
	settings := bridge.Settings{Output: outputDir, Dir: inputDir, NoCombine: v.noCombine}
	for name, content := range files {
		settings.Inputs = append(settings.Inputs, name)
		if err := write(memory, dfs.Join(inputDir, name), content); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(settings.Inputs)
	if !v.reduces || !withoutReduces(&compile(t, job, settings).Program.Plan) {
		settings.Properties = v.properties
	}
	load := loader(job, settings, v.poison)
	program, err := load(nil)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := embedded.Start(embedded.Config{FS: memory, Load: load, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	}()
	out := &Output{Files: make(map[string]string), Counters: make(wire.Counters)}
	for _, status := range finish(t, cluster, memory, &wire.Submission{Plan: program.Plan}) {
		if status.State != wire.Succeeded {
			t.Fatalf("job %s, %s: %v: %s", status.Name, cmp.Or(v.name, "as it is"), status.State, status.Error)
		}
		wire.Counters(out.Counters).Merge(status.Counters)
	}
	if err := collect(memory, outputDir, out.Files); err != nil {
		t.Fatal(err)
	}
	return out
}

func write(f dfs.FS, name, content string) error {
	if err := f.MkdirAll(dfs.Dir(name)); err != nil {
		return err
	}
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, content); err != nil {
		return err
	}
	return w.Close()
}

// collect reads the files below a directory, but for _SUCCESS.
func collect(f dfs.FS, dir string, files map[string]string) error {
	infos, err := f.List(dir)
	if err != nil {
		return err
	}
	for _, info := range infos {
		switch {
		case info.Dir:
			if err := collect(f, info.Name, files); err != nil {
				return err
			}
		case dfs.Base(info.Name) != "_SUCCESS":
			in, err := f.Open(info.Name)
			if err != nil {
				return err
			}
			content, err := io.ReadAll(in)
			if err != nil {
				return err
			}
			in.Close()
			files[strings.TrimPrefix(info.Name, outputDir+"/")] = string(content)
		}
	}
	return nil
}

// agree compares main and named outputs as sets of lines.
func agree(t testing.TB, how string, want, got *Output) {
	t.Helper()
	for _, name := range outputNames(want, got) {
		if a, b := sortLines(want.Named(name)), sortLines(got.Named(name)); a != b {
			t.Errorf("output %s differs when the job is run %s: %s", name, how, firstDifference(a, b))
		}
	}
}

func outputNames(outputs ...*Output) []string {
	var names []string
	for _, o := range outputs {
		for file := range o.Files {
			name, _, _ := strings.Cut(path.Base(file), "-")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func sortLines(s string) string {
	lines := strings.SplitAfter(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func firstDifference(want, got string) string {
	a, b := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	at := func(lines []string) string {
		if i < len(lines) && lines[i] != "" {
			return quote(lines[i])
		}
		return "no more lines"
	}
	return "sorted by line, " + at(b) + " instead of " + at(a)
}

func quote(line string) string {
	if len(line) > 100 {
		line = line[:100] + "…"
	}
	return "\"" + strings.TrimSuffix(line, "\n") + "\""
}

func reverseLines(s string) string {
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	lines := slices.Collect(strings.Lines(s))
	slices.Reverse(lines)
	return strings.Join(lines, "")
}
