// Package trial runs jobs for the integration tests, on any cluster, and checks their output. It
// runs commands, waits for events, generates inputs and computes the right outputs.
//
// Most tests run the program trial/paced: a word count that writes trace files for each attempt.
// Its maps can wait for the test. A [Job] is a run of it.
//
// Waits are for events, with a deadline only against hanging. A [Run] belongs to one test. The
// context of its command ends it with the test.
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

// Stages is the package of the program stages, a flow of any shape.
const Stages = "integration/trial/stages"

// Bad is the package of the program bad, a word count with bad records.
const Bad = "integration/trial/bad"

// Job is a run of the program paced. Its attempts write trace files into a directory.
type Job struct {
	*Run
	Out    string // output directory
	traces string // directory of the traces and of the gate file
}

const gateName = "gate"

// Flags returns the program's flags. traces is the traces' directory as the attempts see it. With
// "-gate" in more, the maps wait for OpenGate.
func Flags(in, out, traces string, more ...string) []string {
	flags := []string{"-input", in, "-output", out, "-trace", traces}
	if !slices.Contains(more, Speculate) {
		flags = append(flags, "-D", "mapreduce.map.speculative=false", "-D", "mapreduce.reduce.speculative=false")
	}
	for _, flag := range more {
		switch flag {
		case Speculate:
		case "-gate":
			flags = append(flags, flag, filepath.Join(traces, gateName))
		default:
			flags = append(flags, flag)
		}
	}
	return flags
}

// Speculate is a flag for Flags: slow tasks get second attempts. Most tests count attempts, and their
// gates make maps slow.
const Speculate = "-speculate"

// NewJob returns the Job of a run with such flags. dir is the traces' directory as this process
// sees it.
func NewJob(run *Run, out, dir string) *Job { return &Job{Run: run, Out: out, traces: dir} }

// OpenGate lets waiting maps continue.
func (j *Job) OpenGate() {
	j.t.Helper()
	if err := os.WriteFile(filepath.Join(j.traces, gateName), nil, 0o666); err != nil {
		j.t.Fatal(err)
	}
}

// Traces lists attempts of a kind of task, "m" or "r", as "<task>.<attempt>.<random>". what is "began"
// or "ended".
func (j *Job) Traces(kind, what string) []string {
	files, _ := filepath.Glob(filepath.Join(j.traces, "*_"+kind+"_*."+what)) // the pattern is well-formed
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), "."+what)
	}
	return files
}

// AwaitTraces waits until n attempts of a kind have begun or ended.
func (j *Job) AwaitTraces(kind, what string, n int) {
	j.t.Helper()
	j.Await(fmt.Sprintf("%d attempts of kind %s have %s", n, kind, what), func() bool { return len(j.Traces(kind, what)) >= n })
}

// AwaitBegan waits until n attempts of a kind have begun.
func (j *Job) AwaitBegan(kind string, n int) {
	j.t.Helper()
	j.AwaitTraces(kind, "began", n)
}

// CheckOnce checks that each task of these kinds had one attempt, and that every attempt ended.
func (j *Job) CheckOnce(kinds ...string) {
	j.t.Helper()
	for _, kind := range kinds {
		began, ended := j.Traces(kind, "began"), j.Traces(kind, "ended")
		if !slices.Equal(began, ended) {
			j.t.Errorf("some attempts have not ended:\nbegan %v\nended %v", began, ended)
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
