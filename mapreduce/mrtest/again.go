package mrtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Program makes a job that is built again for every attempt, as on a cluster. Pass the
// function that you give to [mapreduce.Main]. A job that is built only once hides
// captured values that differ in every worker, such as the time.
//
// Program calls build only: it does not call Main or parse flags. So it cannot detect
// errors that depend on these:
//
//   - Values outside build: package variables, values that main computes, and variables
//     that build captures are the same for all attempts here, but not in workers.
//   - The worker's environment and directory: attempts run in the test's.
//   - Values that are the same in both compared runs, such as today's date, and code
//     that this input does not run.
//   - Data races between attempts: attempts run one after the other.
func Program[P *mapreduce.Job | *mapreduce.Flow](build func() (P, error)) Runnable {
	return program(func() (Runnable, error) {
		p, err := build()
		if err == nil && p == nil {
			err = errors.New("the program returned nil")
		}
		return any(p).(Runnable), err
	})
}

type program func() (Runnable, error)

// Compile builds the job and compiles it.
func (p program) Compile(s bridge.Settings) (*bridge.Compiled, error) {
	job, err := p()
	if err != nil {
		return nil, err
	}
	return job.Compile(s)
}

// emitted is the map output of a run, by map task.
type emitted struct {
	mu   sync.Mutex
	maps map[mapTask]*mapOutput
}

type mapTask struct{ job, n int }

type mapOutput struct {
	job, split string
	records    []emittedRecord
	text       func(key, value []byte) string
}

type emittedRecord struct {
	partition  int
	key, value string
}

// intercept wraps the maps of a job to record their output.
func (e *emitted) intercept(compiled *bridge.Compiled) {
	for i := range compiled.Program.Jobs {
		job := &compiled.Program.Jobs[i]
		for input, text := range job.Texts {
			run, name := job.Maps[input], compiled.Program.Plan.Jobs[i].Name
			job.Maps[input] = func(t *runtime.Task, in *runtime.Split, out runtime.Collector) error {
				if t.ID.Task.Kind != wire.Map { // a sample
					return run(t, in, out)
				}
				o := &mapOutput{job: name, split: splitText(in.Chunks()), text: text}
				e.mu.Lock()
				e.maps[mapTask{i, t.ID.Task.N}] = o
				e.mu.Unlock()
				return run(t, in, &recorder{out, o})
			}
		}
	}
}

// recorder records the output of a map.
type recorder struct {
	runtime.Collector
	output *mapOutput
}

func (r *recorder) Collect(partition int, key, value []byte) error {
	r.output.records = append(r.output.records, emittedRecord{partition, string(key), string(value)})
	return r.Collector.Collect(partition, key, value)
}

func splitText(chunks []runtime.Chunk) string {
	var all []string
	for _, c := range chunks {
		if c.Path == "" { // of Generate
			all = append(all, fmt.Sprintf("number %d", c.Offset))
			continue
		}
		all = append(all, fmt.Sprintf("%s from byte %d to %d", strings.TrimPrefix(c.Path, inputDir+"/"), c.Offset, c.Offset+c.Length))
	}
	return strings.Join(all, ", ")
}

// compareRuns compares two equal runs: the records of each map in any order, then the
// output of each task.
func compareRuns(first, second *emitted, want, got *Output) error {
	order := func(a, b mapTask) int { return cmp.Or(a.job-b.job, a.n-b.n) }
	for _, task := range slices.SortedFunc(maps.Keys(first.maps), order) {
		a, b := first.maps[task], second.maps[task]
		if b == nil {
			return fmt.Errorf("job %s: a second run has no map of %s", a.job, a.split)
		}
		if difference := a.difference(b); difference != "" {
			return fmt.Errorf("job %s, map of %s emits something else when it is run a second time: %s", a.job, a.split, difference)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(want.Files)) {
		if a, b := sortLines(want.Files[file]), sortLines(got.Files[file]); a != b {
			return fmt.Errorf("%s %s differs when the job is run a second time: %s", outputOwner(file), file, firstDifference(a, b))
		}
	}
	return nil
}

// outputOwner describes the output that a file belongs to.
func outputOwner(file string) string {
	if strings.Contains(path.Base(file), "-m-") {
		return "the map's output"
	}
	return "the reduce's output"
}

// difference describes the first record, by key and value, in which two outputs differ.
func (o *mapOutput) difference(other *mapOutput) string {
	a, b := o.sorted(), other.sorted()
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	if i == len(a) && i == len(b) {
		return ""
	}
	at := func(records []emittedRecord) string {
		if i == len(records) {
			return "no more records"
		}
		r := records[i]
		return fmt.Sprintf("%s for reduce %d", quote(o.text([]byte(r.key), []byte(r.value))), r.partition)
	}
	return "sorted by key, " + at(b) + " instead of " + at(a)
}

func (o *mapOutput) sorted() []emittedRecord {
	return slices.SortedFunc(slices.Values(o.records), func(a, b emittedRecord) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.value, b.value), a.partition-b.partition)
	})
}
