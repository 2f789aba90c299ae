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

// jobState is a job's state according to the log. It implements the rules of flows a second
// time, independently of the core.
type jobState struct {
	committing     bool
	stopped, ended string // outcomes
}

// advanceJob follows an entry that changes a job's state.
func (b *book) advanceJob(w *world, kind string, job int, outcome string) {
	x := b.jobStates[job]
	switch {
	case x.ended != "":
	case kind == "committing":
		x.committing = x.committing || x.stopped == ""
	case kind == "stopped" && x.stopped == "" && (outcome == wire.Failed.String() || !x.committing):
		x.stopped = outcome
		others := b.stopFlow(job, outcome)
		w.note("job %d is %s and stops %d others of its flow", job, outcome, others)
	case kind == "ended" && (x.stopped == outcome || x.stopped == "" && x.committing && outcome == wire.Succeeded.String()):
		x.ended = outcome
		b.liveJobs--
	}
}

// stopFlow stops the other jobs of a flow, except jobs that commit, and counts them.
func (b *book) stopFlow(job int, outcome string) (stopped int) {
	for n, other := range b.jobs {
		if x := b.jobStates[n+1]; other.client == b.jobs[job-1].client && x.ended == "" && x.stopped == "" && !x.committing {
			x.stopped = outcome
			stopped++
		}
	}
	return stopped
}

// checkInputs checks that the inputs of a launched job are complete.
func (b *book) checkInputs(w *world, id wire.AttemptID) {
	job := id.Task.Job
	c, i := w.job(job)
	for _, before := range c.sub.Plan.Jobs[i].InputJobs() {
		if x := b.jobStates[job.N-i+before]; x.ended != wire.Succeeded.String() {
			w.fail("V16: %v is launched, but job %d before it is not done: %+v", id, job.N-i+before, *x)
		}
	}
}

// checkSplits checks that the splits of a job cover the whole output that it reads.
func (b *book) checkSplits(w *world, job int) {
	if x := b.jobStates[job]; x.stopped != "" || x.ended != "" {
		return // the entry came too late
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
			if strings.Contains(f.Name, "/"+mapFilesOutput+"-") {
				continue // later jobs read the main output only
			}
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

// splits reads the staged splits of a job with that number.
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

// checkOutcome checks that a job has the outcome that follows from the log.
func (b *book) checkOutcome(w *world, s wire.JobStatus) {
	if x := b.jobStates[s.ID.N]; x.ended != s.State.String() {
		w.fail("V16: %v is %v, but %+v according to the log", s.ID, s.State, *x)
	}
}

func parseJobEntry(rest string) (job int, outcome string, err error) {
	number, outcome, _ := strings.Cut(rest, " ")
	_, err = fmt.Sscanf(number, "%d", &job)
	return job, outcome, err
}
