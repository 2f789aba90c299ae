package core

import (
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// job is the tracker's state of a job.
type job struct {
	id          wire.JobID
	staging     string // URL of its submission; empty before the first launch here
	dropped     bool
	busy        int                  // number of unfinished attempts, fetches and merges
	attempts    []*attempt           // in launch order
	homes       []*home              // by partition
	outputs     map[int]*namedOutput // by map
	wants       []int32              // by map: number of homes with the map in home.wanted
	inQueue     taskset.Set          // maps in the queue of their host
	inBatch     taskset.Set          // maps in a running batch
	batches     []*fetch             // running ones
	partitions  int                  // one more than the last of the homes so far
	unreachable map[int]unreachable  // by map: what was reported of hosts that cannot be reached
	queues      []*queue             // with waiting or running fetches, by address
	fetching    int                  // running fetches
	lastHost    string               // address of the last fetch
}

// namedOutput is a map output as the leader last chose it. Outputs that homes hold have its digest.
type namedOutput struct {
	wire.MapOutput
	named bool // false: it could not be read, and the leader must choose another one
}

// job returns the state of a job, and adds the job if it is new.
func (c *Core) job(id wire.JobID) *job {
	j := c.jobs[id]
	if j == nil {
		j = &job{id: id, outputs: make(map[int]*namedOutput)}
		c.jobs[id] = j
	}
	return j
}

// knownSums returns the sums of the outputs that the leader need not send again, see
// wire.KnownOutputs. A lost output is left out: when it comes again, it is tried again.
func (j *job) knownSums() []uint64 {
	var lost taskset.Set
	for m := range j.unreachable {
		lost.Add(m)
	}
	for _, h := range j.homes {
		for m, e := range h.entries {
			if e.lostReason != "" {
				lost.Add(m)
			}
		}
	}
	var sums []uint64
	for m, o := range j.outputs {
		for len(sums) <= m/wire.OutputsPage {
			sums = append(sums, 0)
		}
		if o.named && !lost.Has(m) {
			sums[m/wire.OutputsPage] += o.Sum()
		}
	}
	return sums
}

func (c *Core) sortedJobs() []*job {
	return slices.SortedFunc(maps.Values(c.jobs), func(a, b *job) int { return a.id.Compare(b.id) })
}

// dropJob ends all work of a job. Its directories are removed when nothing writes to them.
func (c *Core) dropJob(m *wire.DropJob) {
	j := c.job(m.Job)
	if j.dropped {
		return
	}
	j.dropped = true
	for _, a := range slices.Clone(j.attempts) {
		if a.phase == final {
			delete(c.attempts, a.id)
		} else {
			c.kill(a, "the job has ended")
		}
	}
	for len(j.homes) > 0 {
		c.dropHome(j.homes[0])
	}
	switch {
	case m.EndedStaging != "":
		c.releaseSubmission(m.EndedStaging)
	case j.staging != "":
		c.linger(j.staging)
	}
	c.removeIfEnded(j)
}

// lingering is a submission without jobs here that may have more jobs soon.
type lingering struct {
	staging string
	until   time.Duration
}

// lingerTime is the time for which a submission without jobs here is kept.
const lingerTime = 5 * time.Second

// linger keeps idle workers and the program of a submission for the next job of its flow.
// Starting them again would take longer than many tasks.
func (c *Core) linger(staging string) {
	c.stopLingering(staging)
	c.lingering = append(c.lingering, lingering{staging, c.now + lingerTime})
}

func (c *Core) stopLingering(staging string) {
	c.lingering = slices.DeleteFunc(c.lingering, func(x lingering) bool { return x.staging == staging })
}

// endLingering releases submissions that have lingered for lingerTime.
func (c *Core) endLingering() {
	for len(c.lingering) > 0 && c.lingering[0].until <= c.now {
		c.releaseSubmission(c.lingering[0].staging)
	}
}

// releaseSubmission stops idle workers and ends the submission here, unless jobs here need them.
func (c *Core) releaseSubmission(staging string) {
	c.stopLingering(staging)
	if !c.submissionNeeded(staging) {
		c.stopIdle(func(w *worker) bool { return w.staging == staging })
		c.endSubmission(staging)
	}
}

// endSubmission removes a submission's program, unless jobs or workers here need it. A worker that is being started may
// still make tokens and directories, so it counts until it has exited.
func (c *Core) endSubmission(staging string) {
	for _, w := range c.workers {
		if w.staging == staging {
			return
		}
	}
	if !c.submissionNeeded(staging) {
		c.do(RemoveProgram{staging})
	}
}

// LiveJobs returns the jobs here that are not dropped.
func (c *Core) LiveJobs() map[wire.JobID]bool {
	live := make(map[wire.JobID]bool, len(c.jobs))
	for id, j := range c.jobs {
		if !j.dropped {
			live[id] = true
		}
	}
	return live
}

// HasJob reports whether a job is here and not dropped.
func (c *Core) HasJob(id wire.JobID) bool {
	j := c.jobs[id]
	return j != nil && !j.dropped
}

// submissionNeeded reports whether a submission lingers, or has a job here that is not
// dropped.
func (c *Core) submissionNeeded(staging string) bool {
	if slices.ContainsFunc(c.lingering, func(x lingering) bool { return x.staging == staging }) {
		return true
	}
	for _, j := range c.jobs {
		if j.staging == staging && !j.dropped {
			return true
		}
	}
	return false
}

// endWork counts the end of an attempt, fetch or merge.
func (c *Core) endWork(j *job) {
	j.busy--
	c.removeIfEnded(j)
}

// removeIfEnded forgets a dropped job without work and removes its directories.
func (c *Core) removeIfEnded(j *job) {
	if !j.dropped || j.busy > 0 {
		return
	}
	delete(c.jobs, j.id)
	for _, d := range c.disks {
		c.do(Remove{d.jobDir(j.id)})
	}
	if c.state.index == stateDisk {
		c.do(Remove{c.state.jobDir(j.id)}) // of service attempts
	}
	if !c.cfg.KeepLogs {
		c.do(Remove{c.jobLogs(j.id)})
	}
}
