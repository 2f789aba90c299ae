package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/quernmr/quern/dfs"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// flowSize is how many jobs a submission has: one, or up to four.
func flowSize(shapes *rand.Rand) int {
	if shapes.IntN(3) > 0 {
		return 1
	}
	return 2 + shapes.IntN(3)
}

// connect has jobs read the output of earlier ones. Some of what is read is temporary.
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
		if len(inputs) > 0 { // else it reads what the first one reads
			jobs[k].Inputs = inputs
		}
	}
}

// life is what the log makes of a job: the rules of flows, told once more.
type life struct {
	committing     bool
	stopped, ended string // outcomes
}

// lived follows an entry about a job's life.
func (b *book) lived(w *world, kind string, job int, outcome string) {
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

// stopFlow stops the others of a job's flow, but for those that end by themselves.
func (b *book) stopFlow(job int, outcome string) (taken int) {
	for n, other := range b.jobs {
		if x := b.lives[n+1]; other.client == b.jobs[job-1].client && x.ended == "" && x.stopped == "" && !x.committing {
			x.stopped = outcome
			taken++
		}
	}
	return taken
}

// begun checks that a job of which something is launched reads what is there.
func (b *book) begun(w *world, id wire.AttemptID) {
	job := id.Task.Job
	c, i := w.job(job)
	for _, before := range c.sub.Plan.Jobs[i].After() {
		if x := b.lives[job.N-i+before]; x.ended != wire.Succeeded.String() {
			w.fail("V16: %v is launched, and job %d, whose output it reads, is not done: %+v", id, job.N-i+before, *x)
		}
	}
}

// prepared checks that the splits of a job are all of the output that it reads.
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
	for _, before := range plan.After() {
		files, err := w.fs.List(outputOf(sub, before))
		w.must(err)
		success := false
		for _, f := range files {
			want += f.Size
			success = success || strings.HasSuffix(f.Name, "/_SUCCESS")
		}
		if !success {
			w.fail("V16: job %d reads what job %d has not finished", job, job-p.index+before)
		}
	}
	if have != want && len(plan.After()) > 0 {
		w.fail("V16: job %d reads %d bytes of the %d that the jobs before it have written", job, have, want)
	}
}

// splits reads what is staged of a job of which only the number is known.
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

// outlived checks that a job has ended as the log has it.
func (b *book) outlived(w *world, s wire.JobStatus) {
	if x := b.lives[s.ID.N]; x.ended != s.State.String() {
		w.fail("V16: %v is %v, by the log it is %+v", s.ID, s.State, *x)
	}
}

func parseLife(rest string) (job int, outcome string, err error) {
	number, outcome, _ := strings.Cut(rest, " ")
	_, err = fmt.Sscanf(number, "%d", &job)
	return job, outcome, err
}
