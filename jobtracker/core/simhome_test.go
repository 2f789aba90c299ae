package core

import (
	"time"

	"github.com/quernmr/quern/wire"
)

// This file simulates the homes on a task tracker, which gather map outputs.

func (t *simTracker) setHome(m *wire.SetHome) {
	name := homeName{m.Job, m.Partition}
	if h := t.homes[name]; h != nil && !h.request.Generation.Less(m.Generation) {
		return
	}
	t.homes[name] = &simHome{request: m, outputs: make(map[int]wire.MapOutput)}
	t.sendHomeReport(name)
}

// fetchNew fetches new outputs for every home of the job.
func (t *simTracker) fetchNew(job wire.JobID, outputs []wire.MapOutput) {
	for _, name := range t.homeNames() {
		if name.job != job {
			continue
		}
		h := t.homes[name]
		for _, o := range outputs {
			old, ok := h.outputs[o.Map]
			if ok && old.Digest == o.Digest {
				continue
			}
			if ok {
				delete(h.outputs, o.Map)
				t.sendHomeReport(name)
			}
			if o.GivenUp {
				h.outputs[o.Map] = o
				t.sendHomeReport(name)
				continue
			}
			t.fetch(name, h, o, 0)
		}
	}
}

func (t *simTracker) fetch(name homeName, h *simHome, o wire.MapOutput, retries int) {
	w := t.w
	w.after(w.randomTime(200*time.Millisecond), func() {
		if t.down || t.homes[name] != h || h.outputs[o.Map].GivenUp {
			return
		}
		id := wire.AttemptID{Task: wire.TaskID{Job: name.job, Kind: wire.Map, N: o.Map}, N: o.Attempt}
		for _, from := range w.trackers {
			if from.name == o.Tracker && !from.down && from.outputs[id] == o.Digest && !w.fault(0.05) {
				h.outputs[o.Map] = o
				t.sendHomeReport(name)
				return
			}
		}
		if retries < 2 {
			t.fetch(name, h, o, retries+1)
			return
		}
		t.send(&wire.OutputLost{Job: name.job, Map: o.Map, Attempt: o.Attempt, Reason: "no answer", Unreachable: true})
	})
}

func (t *simTracker) sendHomeReport(name homeName) { t.send(t.homeReport(name)) }

func (t *simTracker) homeReport(name homeName) *wire.HomeReport {
	h := t.homes[name]
	r := &wire.HomeReport{
		Job: name.job, Partition: name.partition, Generation: h.request.Generation, Maps: len(h.outputs),
		Complete: len(h.outputs) == h.request.Maps,
	}
	for _, o := range h.outputs {
		r.Digest += o.Digest
		r.Bytes += o.Bytes
	}
	return r
}
