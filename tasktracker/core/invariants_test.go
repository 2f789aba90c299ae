package core

import (
	"slices"
	"testing"
)

// fataler has methods that testing.T and rapid.T have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

var _ fataler = (*testing.T)(nil)

// checkInvariants checks the invariants of the package comment.
func checkInvariants(t fataler, c *Core) {
	t.Helper()
	busy := make(map[*worker]*attempt)
	var used [2]int
	for _, a := range c.active {
		if a.phase == final || c.attempts[a.id] != a {
			t.Fatalf("%v is active in phase %d", a.id, a.phase)
		}
		if (a.worker != nil) != (a.phase >= starting && a.phase <= ending) {
			t.Fatalf("%v in phase %d has worker %v", a.id, a.phase, a.worker)
		}
		if a.worker == nil {
			continue
		}
		if busy[a.worker] != nil || a.worker.attempt != a || a.worker.staging != a.job.staging {
			t.Fatalf("T1: worker %d runs %v and more", a.worker.id, a.id)
		}
		busy[a.worker] = a
		if a.id.Task.Kind.Slotted() {
			used[slotOf(a)]++
		}
		for _, r := range a.runs {
			if r.uses < 1 {
				t.Fatalf("T5: %v reads run %d, which has no uses", a.id, r.id)
			}
		}
	}
	for _, j := range c.jobs {
		for _, a := range j.attempts {
			if j.dropped {
				break // its remaining attempts end unreported
			}
			if slotted := a.id.Task.Kind.Slotted(); slotted && a.disk != nil && a.disk.bad != "" && (a.phase <= running || a.hasOutput()) {
				t.Fatalf("T8: %v in phase %d is on disk %s: %s", a.id, a.phase, a.disk.path, a.disk.bad)
			}
		}
		for _, h := range j.homes {
			if h.disk.bad != "" || c.noUsableDisk() {
				t.Fatalf("T8: home %d is on disk %s: %s", h.partition, h.disk.path, h.disk.bad)
			}
		}
	}
	if used[0] > c.cfg.MapSlots || used[1] > c.cfg.ReduceSlots {
		t.Fatalf("T2: %v slots used of %d and %d", used, c.cfg.MapSlots, c.cfg.ReduceSlots)
	}
	if len(c.idle) > c.cfg.IdleWorkers {
		t.Fatalf("%d idle workers", len(c.idle))
	}
	for _, w := range c.idle {
		if w.attempt != nil || !c.submissionNeeded(w.staging) {
			t.Fatalf("worker %d is idle and has attempt %v", w.id, w.attempt)
		}
	}
	if len(c.merges) > c.cfg.Merges {
		t.Fatalf("%d concurrent merges", len(c.merges))
	}
	checkQueues(t, c)
	for _, j := range c.jobs {
		if j.dropped && len(j.homes) > 0 {
			t.Fatalf("T7: %v is dropped and has homes", j.id)
		}
		checkWants(t, c, j)
		for _, h := range j.homes {
			checkHome(t, c, h)
		}
	}
}

// checkQueues checks the counts of fetches.
func checkQueues(t fataler, c *Core) {
	t.Helper()
	sum, within := 0, 0
	_, others := c.fetchOrder()
	for _, j := range c.queued {
		active := 0
		for _, q := range j.queues {
			if active += q.active; q.active > c.cfg.FetchesPerHost || !slices.Contains(q.host.queues, q) {
				t.Fatalf("%v has %d fetches from %s: too many, or its host has no such queue", j.id, q.active, q.host.addr)
			}
		}
		if active != j.fetching {
			t.Fatalf("%v has %d fetches, counted %d", j.id, active, j.fetching)
		}
		sum += active
		within += min(active, c.guaranteed(j, others))
	}
	if sum != c.fetching || sum > shareBurst*c.cfg.Fetches || within > c.cfg.Fetches+len(c.queued) {
		t.Fatalf("%d concurrent fetches, counted %d, %d within shares", sum, c.fetching, within)
	}
	copies := 0
	for _, f := range c.fetches {
		if f.batch != nil && f.batch.sources != nil {
			copies++
		}
	}
	if copies != c.copying {
		t.Fatalf("%d batches of own outputs, counted %d", copies, c.copying)
	}
	for _, h := range c.hosts {
		active := 0
		for _, q := range h.queues {
			active += q.active
		}
		if active != h.active || active > shareBurst*c.cfg.FetchesPerHost {
			t.Fatalf("%d concurrent fetches from %s, counted %d", active, h.addr, h.active)
		}
	}
}

// checkWants compares a job's queues with what its homes want: each wanted map is in one queue, that of
// the host with its output, or set aside for this host.
func checkWants(t fataler, c *Core, j *job) {
	t.Helper()
	wants, queued, batched := make([]int32, len(j.wants)), make(map[int]string), 0
	for _, h := range j.homes {
		for m := range h.wanted.All() {
			wants[m]++
		}
	}
	for _, q := range j.queues {
		for _, m := range q.waiting {
			if _, twice := queued[int(m)]; twice || !j.inQueue.Has(int(m)) {
				t.Fatalf("map %d of %v is queued twice, or not noted", m, j.id)
			}
			queued[int(m)] = q.host.addr
		}
	}
	if j.inQueue.Len() != len(queued) {
		t.Fatalf("%d maps of %v are queued, noted %d", len(queued), j.id, j.inQueue.Len())
	}
	for _, f := range j.batches {
		for _, o := range f.batch.outputs {
			if queued[o.Map] != "" || !j.inBatch.Has(o.Map) {
				t.Fatalf("map %d of %v is in a batch, and queued at %q, or not noted", o.Map, j.id, queued[o.Map])
			}
			if batched++; j.outputs[o.Map] != nil {
				queued[o.Map] = j.outputs[o.Map].Addr
			}
		}
	}
	if batched != j.inBatch.Len() {
		t.Fatalf("%d maps of %v are in batches, noted %d", batched, j.id, j.inBatch.Len())
	}
	for _, x := range c.aside {
		for _, m := range x.maps {
			if o := j.outputs[int(m)]; x.job == j && o != nil && queued[int(m)] == "" && x.addr == o.Addr {
				queued[int(m)] = x.addr
			}
		}
	}
	for m := range j.unreachable {
		fetched := slices.ContainsFunc(j.homes, func(h *home) bool { e := h.entries[m]; return e != nil && e.fetch != nil })
		if wants[m] == 0 && !fetched {
			t.Fatalf("map %d of %v is reported lost, and no home wants or fetches it", m, j.id)
		}
	}
	for m, n := range wants {
		if n != j.wants[m] || n > 0 && queued[m] != j.outputs[m].Addr {
			t.Fatalf("%d homes of %v want map %d, counted %d; it is queued at %q", n, j.id, m, j.wants[m], queued[m])
		}
	}
}

// checkHome compares the counts of a home with its outputs.
func checkHome(t fataler, c *Core, h *home) {
	t.Helper()
	var digest uint64
	var bytes int64
	levels := make([]int, len(h.levels))
	for m := range h.maps {
		o, e := h.job.outputs[m], h.entries[m]
		if e != nil && ((e.state == fetching) != (e.fetch != nil) || e.home != h || e.mapN != m) {
			t.Fatalf("home %d map %d: state %d, fetch %v", h.partition, m, e.state, e.fetch)
		}
		busy := e != nil && e.state != idle
		named := o != nil && o.named
		ways := 0
		for _, way := range []bool{h.held.Has(m), h.wanted.Has(m), busy, !h.held.Has(m) && !named} {
			if way {
				ways++
			}
		}
		if ways != 1 && (ways != 2 || named || !busy) { // an output that is missing here is not named any more
			t.Fatalf("T4: home %d map %d: held %v, wanted %v, entry %+v, named %v", h.partition, m, h.held.Has(m), h.wanted.Has(m), e, named)
		}
		if h.held.Has(m) {
			digest += o.Digest
		}
	}
	maps := make(map[int32]bool)
	for _, r := range h.runs {
		levels[r.level]++
		bytes += r.bytes
		for _, m := range r.maps {
			if maps[m] || !h.held.Has(int(m)) {
				t.Fatalf("T4: map %d is in two runs of home %d, or is not held", m, h.partition)
			}
			maps[m] = true
		}
		if r.removed {
			t.Fatalf("run %d of home %d is removed", r.id, h.partition)
		}
	}
	if digest != h.digest || bytes != h.bytes || !slices.Equal(levels, h.levels) {
		t.Fatalf("home %d counts digest %d, %d bytes, levels %v; its outputs give %d, %d, %v", h.partition,
			h.digest, h.bytes, h.levels, digest, bytes, levels)
	}
	if h.reported.Complete != c.complete(h) {
		t.Fatalf("home %d: complete is %v, reported %v", h.partition, c.complete(h), h.reported.Complete)
	}
}
