package core

import (
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// job is what the tracker has of a job.
type job struct {
	id       wire.JobID
	staging  string // of its submission, empty before its first launch here
	dropped  bool
	busy     int                    // attempts not final, fetches and merges not answered
	attempts []*attempt             // as launched
	homes    []*home                // by partition
	outputs  map[int]wire.MapOutput // as last chosen by the leader
	queues   []*queue               // with something to fetch or fetched, by address
	fetching int                    // fetches under way
	asked    string                 // address of the host asked last
}

// job finds a job or begins it.
func (c *Core) job(id wire.JobID) *job {
	j := c.jobs[id]
	if j == nil {
		j = &job{id: id, outputs: make(map[int]wire.MapOutput)}
		c.jobs[id] = j
	}
	return j
}

func (c *Core) sortedJobs() []*job {
	return slices.SortedFunc(maps.Values(c.jobs), func(a, b *job) int { return a.id.Compare(b.id) })
}

// dropJob ends all of a job. Its directories go when nothing writes there any more.
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
	case m.Done != "":
		c.leave(m.Done)
	case j.staging != "":
		c.linger(j.staging)
	}
	c.jobIdle(j)
}

// lingering is a submission of which more jobs are to come.
type lingering struct {
	staging string
	until   time.Duration
}

// lingers is for how long a submission is waited with while none of its jobs is here.
const lingers = 5 * time.Second

// linger keeps what idles for a submission one of whose jobs has ended: if processes were
// started, and the program was fetched, for each job of a flow anew, that would take
// longer than many a task.
func (c *Core) linger(staging string) {
	c.lingerNoMore(staging)
	c.lingering = append(c.lingering, lingering{staging, c.now + lingers})
}

func (c *Core) lingerNoMore(staging string) {
	c.lingering = slices.DeleteFunc(c.lingering, func(x lingering) bool { return x.staging == staging })
}

// endLingering leaves submissions that were waited with for too long.
func (c *Core) endLingering() {
	for len(c.lingering) > 0 && c.lingering[0].until <= c.now {
		c.leave(c.lingering[0].staging)
	}
}

// leave stops what idles for a submission, unless it has jobs here.
func (c *Core) leave(staging string) {
	c.lingerNoMore(staging)
	if !c.needed(staging) {
		c.stopIdle(func(w *worker) bool { return w.staging == staging })
		c.do(Forget{staging})
	}
}

// Live lists the jobs that were not dropped.
func (c *Core) Live() map[wire.JobID]bool {
	live := make(map[wire.JobID]bool, len(c.jobs))
	for id, j := range c.jobs {
		if !j.dropped {
			live[id] = true
		}
	}
	return live
}

// Has says whether a job is here that was not dropped.
func (c *Core) Has(id wire.JobID) bool {
	j := c.jobs[id]
	return j != nil && !j.dropped
}

// needed says whether a submission has a job here that is not dropped, or is waited with.
func (c *Core) needed(staging string) bool {
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

// done counts down what keeps a dropped job's directories.
func (c *Core) done(j *job) {
	j.busy--
	c.jobIdle(j)
}

func (c *Core) jobIdle(j *job) {
	if !j.dropped || j.busy > 0 {
		return
	}
	delete(c.jobs, j.id)
	for _, d := range c.disks {
		c.do(Remove{d.jobDir(j.id)})
	}
	if c.state.n == stateDisk {
		c.do(Remove{c.state.jobDir(j.id)}) // of service attempts
	}
	if !c.cfg.KeepLogs {
		c.do(Remove{c.jobLogs(j.id)})
	}
}
