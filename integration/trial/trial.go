// Package trial runs jobs for the integration tests, on whatever cluster, and knows
// what they must come to: commands that are waited for, inputs that are the same from
// run to run, what a single process makes of them, and how that is compared with what
// a job has written.
//
// The program trial/paced is what most tests run: a word count that leaves a trace of
// each attempt, and whose maps can be made to wait. A [Job] is a run of it.
//
// All wait for events, with a deadline that only ends what would hang for ever. A [Run]
// is one test's, and ends with it at the latest, by the context of its command.
package trial

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Paced is the package of the program paced.
const Paced = "integration/trial/paced"

// Job is a run of the program paced. Its attempts leave traces in a directory.
type Job struct {
	*Run
	Out string // its output, as it was told
	dir string // of the traces, and of the file for which maps wait
}

const gateName = "gate"

// Flags are the program's own: what it reads and writes, and the directory for its
// traces by the name that this has where attempts run. Of more, "-gate" has its maps
// wait until the job is opened.
func Flags(in, out, traces string, more ...string) []string {
	flags := []string{"-input", in, "-output", out, "-trace", traces}
	for _, flag := range more {
		if flags = append(flags, flag); flag == "-gate" {
			flags = append(flags, filepath.Join(traces, gateName))
		}
	}
	return flags
}

// Follow makes a Job of a run with such flags, whose directory of traces is dir here.
func Follow(run *Run, out, dir string) *Job { return &Job{Run: run, Out: out, dir: dir} }

// Open lets the maps go on that wait.
func (j *Job) Open() {
	j.t.Helper()
	if err := os.WriteFile(filepath.Join(j.dir, gateName), nil, 0o666); err != nil {
		j.t.Fatal(err)
	}
}

// Traces lists the attempts of a kind of task, "m" or "r", that have "began" or "ended",
// as "<task>.<try>.<pid>".
func (j *Job) Traces(kind, what string) []string {
	files, _ := filepath.Glob(filepath.Join(j.dir, "*_"+kind+"_*."+what)) // the pattern is well-formed
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), "."+what)
	}
	return files
}

// Reached waits until so many attempts of a kind have begun or ended.
func (j *Job) Reached(kind, what string, n int) {
	j.t.Helper()
	j.Until(fmt.Sprintf("%d attempts of kind %s have %s", n, kind, what), func() bool { return len(j.Traces(kind, what)) >= n })
}

// Began waits until so many attempts of a kind have begun.
func (j *Job) Began(kind string, n int) {
	j.t.Helper()
	j.Reached(kind, "began", n)
}

// Once checks that no task of these kinds was tried twice, and that every attempt came
// to its end.
func (j *Job) Once(kinds ...string) {
	j.t.Helper()
	for _, kind := range kinds {
		began, ended := j.Traces(kind, "began"), j.Traces(kind, "ended")
		if !slices.Equal(began, ended) {
			j.t.Errorf("attempts did not all run to their end:\nbegan %v\nended %v", began, ended)
		}
		tasks := make(map[string]bool)
		for _, a := range began {
			task, _, _ := strings.Cut(a, ".")
			if tasks[task] {
				j.t.Errorf("%s ran twice: %v", task, began)
			}
			tasks[task] = true
		}
	}
}
