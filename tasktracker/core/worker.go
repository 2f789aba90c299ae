package core

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/quernmr/quern/wire"
)

// worker is a process of a submission's program.
type worker struct {
	id      int
	staging string
	digest  []byte // of the submission
	owner   string // of its jobs
	dir     string
	limited bool     // the last Limit was not zero
	memory  int64    // highest memory limit of its attempts: it may still hold that much
	attempt *attempt // nil: idle, or being stopped
	remove  []string // files to remove after its death
}

// startWorker starts a worker for an attempt.
func (c *Core) startWorker(a *attempt) *worker {
	staging, launch := a.job.staging, a.launch
	w := &worker{id: next(&c.last.worker), staging: staging, digest: launch.Digest, owner: launch.Owner}
	w.dir = c.workerDir(w.id)
	c.workers[w.id] = w
	c.do(StartWorker{
		Worker: w.id, Staging: staging, Digest: w.digest, Owner: w.owner, Root: c.staging, Dir: w.dir, First: a.firstJob(),
	})
	return w
}

// takeIdle returns the last used idle worker of the attempt's submission, or nil. It skips
// workers that may hold more memory than the attempt's limit. Only one submission has a directory,
// unless two clients submit with the same one at once: so digest and owner must be the same too.
func (c *Core) takeIdle(a *attempt) *worker {
	for i := len(c.idle) - 1; i >= 0; i-- {
		w := c.idle[i]
		if w.staging == a.job.staging && bytes.Equal(w.digest, a.launch.Digest) && w.owner == a.launch.Owner && (a.launch.Memory == 0 || w.memory <= a.launch.Memory) {
			c.idle = slices.Delete(c.idle, i, i+1)
			return w
		}
	}
	return nil
}

// firstJob returns the first job of the attempt's submission. The jobs of a submission have consecutive numbers.
func (a *attempt) firstJob() wire.JobID {
	return wire.JobID{Start: a.id.Task.Job.Start, N: a.id.Task.Job.N - a.launch.Index}
}

func (c *Core) assign(w *worker, a *attempt) { w.attempt, a.worker = a, w }

// keepIdle keeps a worker for its submission's next attempt. If there are too many idle
// workers, it stops the one that was idle for longest.
func (c *Core) keepIdle(w *worker) {
	if !c.submissionNeeded(w.staging) {
		c.do(KillWorker{w.id})
		return
	}
	c.idle = append(c.idle, w)
	for len(c.idle) > c.cfg.IdleWorkers {
		c.do(KillWorker{c.idle[0].id})
		c.idle = slices.Delete(c.idle, 0, 1)
	}
}

func (c *Core) stopIdle(match func(*worker) bool) {
	c.idle = slices.DeleteFunc(c.idle, func(w *worker) bool {
		if !match(w) {
			return false
		}
		c.do(KillWorker{w.id})
		return true
	})
}

func (c *Core) fromWorker(ev FromWorker) {
	w := c.workers[ev.Worker]
	if w == nil || w.attempt != nil && w.attempt.phase >= ending {
		return // it is being killed
	}
	a := w.attempt
	if a == nil {
		if c.removeIdle(w) {
			c.do(KillWorker{w.id}) // idle workers send nothing: it is broken
		}
		return
	}
	switch m := ev.Message.(type) {
	case *wire.WorkerHello:
		if a.phase == starting && m.Protocol == wire.WorkerProtocol {
			c.run(a)
			return
		}
		if a.phase == starting {
			c.end(a, wire.AttemptFailed, &wire.Result{
				Error: fmt.Sprintf("the job's program speaks worker protocol %d, this tracker %d", m.Protocol, wire.WorkerProtocol),
				Fatal: true,
			})
			return
		}
	case *wire.WorkerProgress:
		if a.phase != starting {
			c.workerProgress(a, m)
			return
		}
	case *wire.CommitReady:
		if a.phase == running {
			a.phase = ready
			c.send(a.report())
			return
		}
	case *wire.WorkerDone:
		if a.phase != starting {
			c.workerDone(w, a, &m.Result, ev.NoLeftovers)
			return
		}
	}
	c.end(a, wire.AttemptFailed, &wire.Result{Error: fmt.Sprintf("its worker sent an unexpected %T", ev.Message)})
}

// removeIdle removes a worker from the idle workers, and reports whether it was idle.
func (c *Core) removeIdle(w *worker) bool {
	i := slices.Index(c.idle, w)
	if i >= 0 {
		c.idle = slices.Delete(c.idle, i, i+1)
	}
	return i >= 0
}

func (c *Core) workerProgress(a *attempt, m *wire.WorkerProgress) {
	if m.Activity > a.activity {
		a.activity, a.progressAt = m.Activity, c.now
	}
	if a.bytes != m.Bytes {
		a.bytes = m.Bytes
		c.progressUnsent = true
	}
	if hot := m.Hot.Bound(); hot != nil {
		a.hot, a.hotSent = hot, false
		c.progressUnsent = true
	}
}

// workerDone handles the result of an attempt. A worker is used again only after a success
// that left no processes.
func (c *Core) workerDone(w *worker, a *attempt, result *wire.Result, noLeftovers bool) {
	result.Truncate()
	if size := resultBytes(result); size > maxResult {
		result = &wire.Result{Error: fmt.Sprintf("its result of %d bytes is too long to report: too many counters?", size), Fatal: true}
	}
	if result.Error != "" {
		for i := range result.Lost {
			c.unreadable(&result.Lost[i])
		}
		if strings.Contains(result.Error, noSpace) && !strings.Contains(result.Error, a.disk.path) {
			result.Error += fmt.Sprintf(" (its own disk is %s of tracker %s)", a.disk.path, c.cfg.Tracker)
		}
		a.failedItself = true
		c.end(a, wire.AttemptFailed, result)
		return
	}
	w.attempt, a.worker = nil, nil
	dir := a.dir()
	c.succeeded(a, result)
	if noLeftovers {
		c.keepIdle(w)
		return
	}
	c.do(KillWorker{w.id})
	if result.Output != nil {
		dir = WorkDir(dir)
	}
	w.remove = []string{dir} // a second time: leftover processes may have written there
}

func (c *Core) workerExited(ev WorkerExited) {
	w := c.workers[ev.Worker]
	if w == nil {
		return
	}
	delete(c.workers, w.id)
	c.removeIdle(w)
	c.endSubmission(w.staging)
	for _, path := range w.remove {
		c.do(Remove{path})
	}
	if a := w.attempt; a != nil {
		w.attempt = nil
		if ev.Overran > 0 && a.result != nil {
			a.result.Error += fmt.Sprintf("; killed %v after SIGTERM", ev.Overran)
			if !c.cfg.Embedded { // only a task tracker has the flag
				a.result.Error += fmt.Sprintf(" (-stop-grace of tracker %s)", c.cfg.Tracker)
			}
		}
		c.workerDied(a, w, ev)
		return
	}
	c.do(Remove{w.dir})
}
