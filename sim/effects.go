package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/scheduler"
)

// maxFileEffects and policyDeadline are as in real job trackers.
const (
	maxFileEffects = 16
	policyDeadline = 2 * time.Second
)

var errPolicyDeadline = errors.New("the policy did not answer in time")

// effect carries out a command that results in an event, some time later.
func (n *jobTracker) effect(c core.Command) {
	w := n.w
	switch c := c.(type) {
	case core.LoadSplits:
		n.runOnFiles(c.Epoch, c.Delay, func(err error) core.Event {
			r := core.SplitsLoaded{Epoch: c.Epoch, Job: c.Job, Err: err}
			if err == nil {
				r.Splits, r.Err = loadSplits(w, c)
			}
			return r
		})
	case core.RemoveStaging:
		n.runOnFiles(c.Epoch, c.Delay, func(err error) core.Event {
			if w.refused[StagingRemovals] {
				err = errFault
			}
			if err == nil && w.sabotage != keepStaging {
				err = w.fs.RemoveAll(c.URL)
			}
			if err != nil {
				w.book.failedRemovals[c.URL]++
			}
			return core.StagingRemoved{Epoch: c.Epoch, Key: c.Key, Err: err}
		})
	case core.WriteHistory:
		n.runOnFiles(c.Epoch, c.Delay, func(err error) core.Event {
			if w.refused[Histories] || w.refused[StagingWrites] {
				err = errFault
			}
			if err == nil {
				err = history.Write(w.fs, c.URL, c.Record())
			}
			return core.HistoryWritten{Epoch: c.Epoch, Job: c.Job, Err: err}
		})
	case core.LoadHistory:
		n.runOnFiles(c.Epoch, 0, func(err error) core.Event {
			r := core.HistoryLoaded{Epoch: c.Epoch, JobName: c.JobName, Err: err}
			if err == nil {
				r.Profile, r.Err = history.ReadProfile(w.fs, c.URLs, c.Job)
			}
			return r
		})
	case core.Tidy: // no file of a run gets old enough
		n.runOnFiles(c.Epoch, 0, func(err error) core.Event { return core.Tidied{Epoch: c.Epoch, Err: err} })
	case core.RemoveNonce: // an earlier process may have written it
		n.beside(n.fileTime(), func() { _ = w.fs.Remove(c.URL) })
	case core.Allocate:
		n.runPolicy(c)
	default:
		w.fail("%s has a command %T that the simulation does not know", n.name, c)
	}
}

// fileTime draws the time of an effect on files.
func (n *jobTracker) fileTime() time.Duration {
	d := n.w.upTo(20 * time.Millisecond)
	if n.w.fault(n.w.rates.slowFiles) {
		d += n.w.upTo(5 * time.Second)
	}
	return d
}

func (n *jobTracker) effectError() error {
	if n.w.fault(n.w.rates.effects) {
		return errFault
	}
	return nil
}

// runOnFiles carries out an effect on files after a delay, at most maxFileEffects at once. It
// skips an effect of an earlier epoch that has not begun. A call to the file system may complete
// while its process is stopped.
func (n *jobTracker) runOnFiles(epoch uint64, delay time.Duration, effect func(err error) core.Event) {
	var ev core.Event
	var err error
	start := func() (time.Duration, bool) {
		if !n.core.IsLeader() || n.core.Epoch() != epoch {
			return 0, false
		}
		d, life := n.fileTime(), n.life
		err = n.effectError()
		if n.w.fault(n.w.rates.lateCalls) {
			n.w.after(d, func() {
				if n.life == life {
					ev = effect(err)
				}
			})
		}
		return d, true
	}
	end := func() {
		if ev == nil {
			ev = effect(err)
		}
		n.do(func() { n.step(ev) })
	}
	if delay == 0 {
		n.files.run(start, end)
		return
	}
	n.beside(delay, func() { n.files.run(start, end) })
}

// runPolicy runs a policy, one call of each at once, and answers by the deadline.
func (n *jobTracker) runPolicy(c core.Allocate) {
	answered := false
	answer := func(plan scheduler.Plan, err error) {
		if answered || !n.core.IsLeader() || n.core.Epoch() != c.Epoch {
			return
		}
		answered = true
		n.do(func() { n.step(core.Allocated{Epoch: c.Epoch, Seq: c.Seq, Phase: c.Phase, Plan: plan, Err: err}) })
	}
	slot := n.policies[c.Policy]
	if slot == nil {
		slot = &gate{p: &n.process, limit: 1}
		n.policies[c.Policy] = slot
	}
	var plan scheduler.Plan
	slot.run(func() (time.Duration, bool) {
		var d time.Duration
		plan, d = n.w.allocate(c)
		return n.fileTime() + n.slowed(d), true
	}, func() { answer(plan, n.effectError()) })
	n.beside(policyDeadline, func() { answer(scheduler.Plan{}, errPolicyDeadline) })
}

func loadSplits(w *world, c core.LoadSplits) ([]core.Split, error) {
	infos, hash, err := mrruntime.ReadSplits(w.fs, c.Staging, c.Job)
	if err != nil {
		return nil, err
	}
	if hash != c.Hash {
		return nil, fmt.Errorf("splits of %v: hash %x; the setup attempt wrote %x", c.Job, hash, c.Hash)
	}
	splits := make([]core.Split, len(infos))
	for i, info := range infos {
		splits[i] = core.Split{Bytes: info.Length, Hosts: info.Hosts, Racks: info.Racks}
	}
	return splits, nil
}

func writeFile(w *world, name string, data []byte) error {
	f, err := w.fs.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
