// Package mrtest tests jobs in the test's own process. Quern runs them on an in-memory
// file system: records are encoded, sorted and shuffled, outputs are committed.
//
//	func TestWordcount(t *testing.T) {
//		if got := mrtest.Run(t, mrtest.Program(wordcount), "b a\nb\n"); got != "a\t1\nb\t2\n" {
//			t.Errorf("got %q", got)
//		}
//	}
//
// [Program] builds the job again for every attempt, as workers do. You can also pass a
// *mapreduce.Job or *mapreduce.Flow; its attempts share captured variables.
//
// On a cluster, a job must write the same records for any splits and any number of
// tasks. So every call runs the job several times:
//
//   - unchanged, twice: the output of each map and each task must be equal, which
//     detects uses of the clock and of random numbers;
//   - with a split for every few bytes, so that each map reads one record or none;
//   - with the lines of its input in reverse order (only [Run], and only if no map asks for the Position or Line of
//     a record, which would change);
//   - without its combiner;
//   - on three reduces, unless the job fixes their number.
//
// The outputs must hold the same records, in any order. They are compared as lines of
// text; a job with another [mapreduce.Format] runs with Text for the comparison.
// All runs except the first two overwrite the arguments of combiners and reduces as soon
// as they are no longer valid. This detects code that keeps them.
//
// Attempts run one after the other in the test's process. So, unlike on a cluster, they
// share package variables, and relative file names are relative to the test.
package mrtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/mapreduce/internal/bridge"
)

// Runnable is implemented by the result of [Program], *mapreduce.Job and *mapreduce.Flow.
type Runnable = bridge.Compiler

// Output holds the output and counters of a job or flow.
type Output struct {
	// Files are the part files by name: part-r-00000, errors-m-00000. In a flow
	// of several jobs each final job has a directory: sorted/part-r-00000.
	Files    map[string]string
	Counters map[string]map[string]int64 // by group and name, of all jobs
}

// Text returns the main output: the contents of the part files, in order.
func (o *Output) Text() string { return o.Named("part") }

// Named returns a named output: the contents of its part files, in order.
func (o *Output) Named(name string) string {
	var b strings.Builder
	for _, file := range slices.Sorted(maps.Keys(o.Files)) {
		if strings.HasPrefix(path.Base(file), name+"-") {
			b.WriteString(o.Files[file])
		}
	}
	return b.String()
}

// inputName is the file with the input of Run.
const inputName = "input"

// Run runs a job that reads -input on the given text, and returns its main output. It
// fails the test if the job fails, or if its runs have different outputs.
func Run(t testing.TB, job Runnable, input string) string {
	t.Helper()
	out := report(t, &runner{ctx: t.Context(), dir: t.TempDir(), job: job}, map[string]string{inputName: input}, true)
	return out.Text()
}

// RunFiles runs a job or flow on files, given by relative path. -input is all of them.
// It fails the test as [Run] does.
func RunFiles(t testing.TB, job Runnable, files map[string]string) *Output {
	t.Helper()
	return report(t, &runner{ctx: t.Context(), dir: t.TempDir(), job: job}, files, false)
}

func report(t testing.TB, k *runner, files map[string]string, reverse bool) *Output {
	t.Helper()
	out, err := k.runAll(files, reverse)
	switch {
	case out == nil:
		t.Fatal(err)
	case err != nil:
		t.Error(err)
	}
	return out
}

// Print runs a job as [Run] does and prints its main output, for Example functions. It
// panics if Run would fail the test.
func Print(job Runnable, input string) {
	fmt.Print(mustRun(job, map[string]string{inputName: input}, true).Text())
}

// PrintFiles runs a job or flow as [RunFiles] does and prints every file of its
// output after the file's name. It panics if RunFiles would fail the test.
func PrintFiles(job Runnable, files map[string]string) {
	out := mustRun(job, files, false)
	for _, name := range slices.Sorted(maps.Keys(out.Files)) {
		fmt.Printf("%s:\n%s", name, out.Files[name])
	}
}

func mustRun(job Runnable, files map[string]string, reverse bool) *Output {
	out, err := (&runner{ctx: context.Background(), job: job}).runAll(files, reverse)
	if err != nil {
		panic(err)
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

// collect reads the files below a directory, except _SUCCESS.
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

// compareOutputs compares main and named outputs as sorted lines.
func compareOutputs(how string, want, got *Output) error {
	var errs []error
	for _, name := range outputNames(want, got) {
		if a, b := sortLines(want.Named(name)), sortLines(got.Named(name)); a != b {
			errs = append(errs, fmt.Errorf("output %s differs when the job is run %s: %s", name, how, firstDifference(a, b)))
		}
	}
	return errors.Join(errs...)
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
