package mrtest

import (
	"slices"
	"testing"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/embedded"
	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// loader makes the job's program for every attempt, as a worker process does.
func loader(job Runnable, s bridge.Settings, poison bool) runtime.Load {
	return func(*wire.Submission) (*runtime.Program, error) {
		compiled, err := job.Compile(s)
		if err != nil {
			return nil, err
		}
		if poison {
			for i := range compiled.Program.Jobs {
				poisonJob(&compiled.Program.Jobs[i])
			}
		}
		return compiled.Program, nil
	}
}

// withoutReduces says whether a job of the plan has none: their number is then
// not changed.
func withoutReduces(plan *wire.Plan) bool {
	return slices.ContainsFunc(plan.Jobs, func(j wire.JobPlan) bool { return j.Reduces == 0 })
}

func compile(t testing.TB, job Runnable, s bridge.Settings) *bridge.Compiled {
	t.Helper()
	compiled, err := job.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// readsLines says whether all inputs are lines, whose order can be reversed.
func readsLines(t testing.TB, job Runnable) bool {
	t.Helper()
	compiled := compile(t, job, bridge.Settings{Inputs: []string{inputName}, Output: outputDir, Dir: inputDir})
	for _, j := range compiled.Program.Plan.Jobs {
		for _, in := range j.Inputs {
			if in.From == 0 && in.Format != "lines" && in.Format != "keyvalues" {
				return false
			}
		}
	}
	return true
}

// finish submits and waits for the jobs' end.
func finish(t testing.TB, c *embedded.Cluster, f dfs.FS, sub *wire.Submission) []wire.JobStatus {
	t.Helper()
	if err := client.Stage(f, c.Staging(), sub); err != nil {
		t.Fatal(err)
	}
	ids, err := c.Submit(t.Context(), *sub)
	if err != nil {
		t.Fatal(err)
	}
	var last []wire.JobStatus
	for statuses, err := range c.Watch(t.Context(), ids) {
		if err != nil {
			t.Fatal(err)
		}
		last = statuses
	}
	return last
}

// poisonJob makes the bytes that a reduce is given invalid as early as they may be.
func poisonJob(job *runtime.Job) {
	if reduce := job.Reduce; reduce != nil {
		job.Reduce = func(t *runtime.Task, in runtime.Records) error {
			return reduce(t, &poisoned{Records: in})
		}
	}
}

// poisoned gives copies of a cursor's keys and values and overwrites them at the
// next record.
type poisoned struct {
	runtime.Records
	key, value []byte
}

func (p *poisoned) Next() bool {
	clobber(p.key)
	clobber(p.value)
	if !p.Records.Next() {
		return false
	}
	p.key = slices.Clone(p.Records.Key())
	p.value = slices.Clone(p.Records.Value())
	return true
}

func (p *poisoned) Key() []byte   { return p.key }
func (p *poisoned) Value() []byte { return p.value }

func clobber(b []byte) {
	for i := range b {
		b[i] = 0xDB
	}
}
