package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	mrruntime "github.com/quernmr/quern/runtime"
)

// effect carries out a command that results in an event, some time later. Like a real effect
// it continues after its job tracker has lost leadership.
func (n *jobTracker) effect(c core.Command) {
	w := n.w
	switch c := c.(type) {
	case core.LoadSplits:
		n.runEffect(c.Delay, func(err error) core.Event {
			r := core.SplitsLoaded{Epoch: c.Epoch, Job: c.Job, Err: err}
			if err == nil {
				r.Splits, r.Err = loadSplits(w, c)
			}
			return r
		})
	case core.RemoveStaging:
		n.runEffect(c.Delay, func(err error) core.Event {
			if err == nil && w.sabotage != keepStaging {
				err = w.fs.RemoveAll(c.URL)
			}
			if err != nil {
				w.book.failedRemovals[c.URL]++
			}
			return core.StagingRemoved{Epoch: c.Epoch, Key: c.Key, Err: err}
		})
	case core.WriteHistory:
		n.runEffect(c.Delay, func(err error) core.Event {
			if err == nil {
				err = history.Write(w.fs, c.URL, c.Record)
			}
			return core.HistoryWritten{Epoch: c.Epoch, Job: c.Job, Err: err}
		})
	case core.LoadHistory:
		n.runEffect(0, func(err error) core.Event {
			r := core.HistoryLoaded{Epoch: c.Epoch, JobName: c.JobName, Err: err}
			if err == nil {
				r.Profile, r.Err = history.ReadProfile(w.fs, c.URLs, c.Job)
			}
			return r
		})
	case core.Tidy: // no file of a run gets old enough
		n.runEffect(0, func(err error) core.Event { return core.Tidied{Epoch: c.Epoch, Err: err} })
	case core.RemoveNonce:
		_ = w.fs.Remove(c.URL) // an earlier process may have written it
	case core.Allocate:
		n.runEffect(0, func(err error) core.Event {
			r := core.Allocated{Epoch: c.Epoch, Seq: c.Seq, Phase: c.Phase, Err: err}
			if err == nil {
				r.Plan = w.allocate(c)
			}
			return r
		})
	default:
		w.fail("%s has a command %T that the simulation does not know", n.name, c)
	}
}

// runEffect carries out an effect after a while. A call to the file system may complete while the
// calling process is stopped.
func (n *jobTracker) runEffect(after time.Duration, effect func(err error) core.Event) {
	w, life := n.w, n.life
	after += w.upTo(20 * time.Millisecond)
	if w.fault(w.rates.slowFiles) {
		after += w.upTo(5 * time.Second)
	}
	var err error
	if w.fault(w.rates.effects) {
		err = errFault
	}
	w.after(after, func() {
		switch {
		case n.life != life:
		case w.fault(w.rates.lateCalls):
			ev := effect(err)
			n.do(func() { n.step(ev) })
		default:
			n.do(func() { n.step(effect(err)) })
		}
	})
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
