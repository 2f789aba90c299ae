// Package mrtest tests jobs as Quern runs them, in the test's own process:
// encoded, sorted, shuffled and committed, on an in-memory file system.
//
//	func TestWordcount(t *testing.T) {
//		if got := mrtest.Run(t, mrtest.Program(wordcount), "b a\nb\n"); got != "a\t1\nb\t2\n" {
//			t.Errorf("got %q", got)
//		}
//	}
//
// [Program] builds the job again for every attempt, as workers do. A *mapreduce.Job
// or *mapreduce.Flow runs as well; its attempts share what its functions capture.
//
// A job must give the same records however its input is split and its work is
// spread, or it will surprise on a cluster. So every call runs it several times:
//
//   - as it is, twice: what each map emits and each task writes is compared, so that
//     the clock and random numbers show;
//   - with a split for every few bytes, so that each map sees a record or none;
//   - with the lines of its input in reverse order ([Run] alone);
//   - without its combiner;
//   - on three reduces, where the job does not fix their number.
//
// The outputs must hold the same records, in whatever order. They are compared as
// lines of text: a job of another [mapreduce.Format] is run with Text for that.
// In all runs but the first two, the bytes that a combiner or reduce has been given
// are overwritten when they are no longer valid: code that kept them shows.
//
// Attempts share the test's process and run one after the other, so here, unlike
// on a cluster, package variables are shared and relative file names are the test's.
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

// Runnable is a [Program], *mapreduce.Job or *mapreduce.Flow.
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
	out := report(t, &kit{ctx: t.Context(), dir: t.TempDir(), job: job}, map[string]string{inputName: input}, true)
	return out.Text()
}

// RunFiles runs a job or flow over files. Its paths name them, relative; what
// reads -input reads all of them. It fails the test as [Run] does.
func RunFiles(t testing.TB, job Runnable, files map[string]string) *Output {
	t.Helper()
	return report(t, &kit{ctx: t.Context(), dir: t.TempDir(), job: job}, files, false)
}

func report(t testing.TB, k *kit, files map[string]string, reverse bool) *Output {
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

// Print runs a job as [Run] does and prints its main output: for the Example
// functions of a job's package. It panics where Run fails the test.
func Print(job Runnable, input string) {
	fmt.Print(mustRun(job, map[string]string{inputName: input}, true).Text())
}

// PrintFiles runs a job or flow as [RunFiles] does and prints every file of its
// output below the file's name. It panics where RunFiles fails the test.
func PrintFiles(job Runnable, files map[string]string) {
	out := mustRun(job, files, false)
	for _, name := range slices.Sorted(maps.Keys(out.Files)) {
		fmt.Printf("%s:\n%s", name, out.Files[name])
	}
}

func mustRun(job Runnable, files map[string]string, reverse bool) *Output {
	out, err := (&kit{ctx: context.Background(), job: job}).runAll(files, reverse)
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
func agree(how string, want, got *Output) error {
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
