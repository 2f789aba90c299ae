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

// checkHome compares the counts of a home with its entries.
func checkHome(t fataler, c *Core, h *home) {
	t.Helper()
	var heldCount int
	var digest uint64
	var bytes int64
	levels := make([]int, len(h.levels))
	for i := range h.entries {
		e := &h.entries[i]
		if (e.state == fetching) != (e.fetch != nil) {
			t.Fatalf("home %d map %d: state %d, fetch %v", h.partition, i, e.state, e.fetch)
		}
		if e.state != held {
			continue
		}
		heldCount++
		digest += e.digest
		bytes += e.bytes
		if want, named := h.job.outputs[i]; named && e.digest != want.Digest {
			t.Fatalf("T4: home %d holds digest %d of map %d, want %d", h.partition, e.digest, i, want.Digest)
		}
		if e.run != nil && !slices.Contains(h.runs, e.run) {
			t.Fatalf("T4: home %d map %d is in a removed run", h.partition, i)
		}
	}
	maps := make(map[int]bool)
	for _, r := range h.runs {
		levels[r.level]++
		for _, m := range r.maps {
			if maps[m] || h.entries[m].run != r || h.entries[m].state != held {
				t.Fatalf("T4: map %d is in two runs of home %d, or none", m, h.partition)
			}
			maps[m] = true
		}
		if r.removed {
			t.Fatalf("run %d of home %d is removed", r.id, h.partition)
		}
	}
	if heldCount != h.heldCount || digest != h.digest || bytes != h.bytes || !slices.Equal(levels, h.levels) {
		t.Fatalf("home %d counts %d maps, digest %d, %d bytes, levels %v; its entries give %d, %d, %d, %v", h.partition,
			h.heldCount, h.digest, h.bytes, h.levels, heldCount, digest, bytes, levels)
	}
	if h.reported.Complete != c.complete(h) {
		t.Fatalf("home %d: complete is %v, reported %v", h.partition, c.complete(h), h.reported.Complete)
	}
}
