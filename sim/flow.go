package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/quernmr/quern/dfs"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// flowSize draws the number of jobs in a submission: one, or up to four.
func flowSize(shapes *rand.Rand) int {
	if shapes.IntN(3) > 0 {
		return 1
	}
	return 2 + shapes.IntN(3)
}

// connect lets jobs read the output of earlier ones. Some of these outputs are temporary.
func (c *client) connect(shapes *rand.Rand) {
	jobs := c.sub.Plan.Jobs
	for k := 1; k < len(jobs); k++ {
		var inputs []wire.InputPlan
		for before := range k {
			if shapes.IntN(k+1) == 0 || before == k-1 && shapes.IntN(2) == 0 {
				inputs = append(inputs, wire.InputPlan{Format: "lines", From: before + 1})
				if shapes.IntN(2) == 0 {
					jobs[before].Output = ""
				}
			}
		}
		if len(inputs) > 0 { // otherwise it reads the first job's input
			jobs[k].Inputs = inputs
		}
	}
}

// life is a job's state by the log: the rules of flows, implemented independently of the core.
type life struct {
	committing     bool
	stopped, ended string // outcomes
}

// advance follows an entry that changes a job's state.
func (b *book) advance(w *world, kind string, job int, outcome string) {
	x := b.lives[job]
	switch {
	case x.ended != "":
	case kind == "committing":
		x.committing = x.committing || x.stopped == ""
	case kind == "stopped" && x.stopped == "" && (outcome == wire.Failed.String() || !x.committing):
		x.stopped = outcome
		taken := b.stopFlow(job, outcome)
		w.note("job %d is %s and takes %d of its flow with it", job, outcome, taken)
	case kind == "ended" && (x.stopped == outcome || x.stopped == "" && x.committing && outcome == wire.Succeeded.String()):
		x.ended = outcome
	}
}

// stopFlow stops the other jobs of a flow, except those that end by themselves.
func (b *book) stopFlow(job int, outcome string) (taken int) {
	for n, other := range b.jobs {
		if x := b.lives[n+1]; other.client == b.jobs[job-1].client && x.ended == "" && x.stopped == "" && !x.committing {
			x.stopped = outcome
			taken++
		}
	}
	return taken
}

// begun checks that the inputs of a launched job are complete.
func (b *book) begun(w *world, id wire.AttemptID) {
	job := id.Task.Job
	c, i := w.job(job)
	for _, before := range c.sub.Plan.Jobs[i].InputJobs() {
		if x := b.lives[job.N-i+before]; x.ended != wire.Succeeded.String() {
			w.fail("V16: %v is launched, but job %d before it is not done: %+v", id, job.N-i+before, *x)
		}
	}
}

// prepared checks that the splits of a job are the whole output that it reads.
func (b *book) prepared(w *world, job int) {
	if x := b.lives[job]; x.stopped != "" || x.ended != "" {
		return // the entry comes late
	}
	p := b.jobs[job-1]
	sub, plan := p.client.sub, &p.client.sub.Plan.Jobs[p.index]
	have, want := int64(0), int64(0)
	for _, info := range b.splits(w, sub.Staging, job) {
		have += info.Length
	}
	for _, before := range plan.InputJobs() {
		files, err := w.fs.List(outputOf(sub, before))
		w.must(err)
		success := false
		for _, f := range files {
			want += f.Size
			success = success || strings.HasSuffix(f.Name, "/_SUCCESS")
		}
		if !success {
			w.fail("V16: job %d reads the unfinished output of job %d", job, job-p.index+before)
		}
	}
	if have != want && len(plan.InputJobs()) > 0 {
		w.fail("V16: job %d reads %d of the %d bytes that earlier jobs have written", job, have, want)
	}
}

// splits reads the staged splits of a job by its number.
func (b *book) splits(w *world, staging string, job int) []mrruntime.SplitInfo {
	dirs, err := w.fs.List(staging)
	w.must(err)
	for _, d := range dirs {
		if id, err := wire.ParseJobID(dfs.Base(d.Name)); err == nil && id.N == job {
			infos, _, err := mrruntime.ReadSplits(w.fs, staging, id)
			w.must(err)
			return infos
		}
	}
	w.fail("V16: nothing is staged of job %d", job)
	return nil
}

// checkLife checks that a job has ended as in the log.
func (b *book) checkLife(w *world, s wire.JobStatus) {
	if x := b.lives[s.ID.N]; x.ended != s.State.String() {
		w.fail("V16: %v is %v, but %+v by the log", s.ID, s.State, *x)
	}
}

func parseLife(rest string) (job int, outcome string, err error) {
	number, outcome, _ := strings.Cut(rest, " ")
	_, err = fmt.Sscanf(number, "%d", &job)
	return job, outcome, err
}
