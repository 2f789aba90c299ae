package core

import (
	"time"

	"github.com/quernmr/quern/wire"
)

// The part of simTracker that gathers map outputs.

func (t *simTracker) setHome(m *wire.SetHome) {
	name := homeName{m.Job, m.Partition}
	if h := t.homes[name]; h != nil && !h.set.Generation.Less(m.Generation) {
		return
	}
	t.homes[name] = &simHome{set: m, has: make(map[int]wire.MapOutput)}
	t.gathered(name)
}

// fetchNew fetches new outputs for every home of the job.
func (t *simTracker) fetchNew(m *wire.Outputs) {
	for _, name := range t.homeNames() {
		if name.job != m.Job {
			continue
		}
		h := t.homes[name]
		for _, o := range m.Outputs {
			had, ok := h.has[o.Map]
			if ok && had.Digest == o.Digest {
				continue
			}
			if ok {
				delete(h.has, o.Map)
				t.gathered(name)
			}
			t.fetch(name, h, o, 0)
		}
	}
}

func (t *simTracker) fetch(name homeName, h *simHome, o wire.MapOutput, tries int) {
	w := t.w
	w.after(w.upTo(200*time.Millisecond), func() {
		if t.down || t.homes[name] != h {
			return
		}
		id := wire.AttemptID{Task: wire.TaskID{Job: name.job, Kind: wire.Map, N: o.Map}, N: o.Attempt}
		for _, from := range w.trackers {
			if from.name == o.Tracker && !from.down && from.outputs[id] == o.Digest && !w.fault(0.05) {
				h.has[o.Map] = o
				t.gathered(name)
				return
			}
		}
		if tries < 2 {
			t.fetch(name, h, o, tries+1)
			return
		}
		t.send(&wire.OutputLost{Job: name.job, Map: o.Map, Attempt: o.Attempt, Reason: "no answer"})
	})
}

func (t *simTracker) gathered(name homeName) { t.send(t.homeReport(name)) }

func (t *simTracker) homeReport(name homeName) *wire.HomeReport {
	h := t.homes[name]
	r := &wire.HomeReport{
		Job: name.job, Partition: name.partition, Generation: h.set.Generation, Maps: len(h.has),
		Complete: len(h.has) == h.set.Maps,
	}
	for _, o := range h.has {
		r.Digest += o.Digest
		r.Bytes += o.Bytes
	}
	return r
}
