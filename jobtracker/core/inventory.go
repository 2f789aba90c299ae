package core

import (
	"maps"
	"slices"

	"github.com/quernmr/quern/wire"
)

// listed has the homes and attempts of the leader that the pages of an inventory have listed so far, and
// nothing else: a tracker may send any number of pages.
type listed struct {
	homes    map[homeKey]bool
	attempts map[wire.AttemptID]bool
}

// inventoryPage handles a page of a tracker's inventory when it comes, and what the last one completes.
// The cost must not depend on the number of jobs: after a failover all inventories come at once.
func (l *leader) inventoryPage(t *tracker, page *wire.Inventory) {
	if t.contact.inventoried {
		return // only one inventory comes on a stream
	}
	if t.contact.listed.homes == nil {
		t.contact.listed = listed{make(map[homeKey]bool), make(map[wire.AttemptID]bool)}
	}
	t.contact.readingInventory = true
	l.readPage(t, page)
	if !page.More {
		l.inventoryRead(t)
	}
	t.contact.readingInventory = false
}

// readPage handles the homes before the attempts: a reduce is adopted only at its home.
func (l *leader) readPage(t *tracker, page *wire.Inventory) {
	x, dropped := t.contact.listed, make(map[wire.JobID]bool)
	for i := range page.Homes {
		h := &page.Homes[i]
		l.dropUnknown(t, h.Job, dropped)
		l.homeReport(t, h)
		if l.isHome(t, h) {
			x.homes[homeKey{h.Job, h.Partition, h.Generation}] = true
		}
	}
	for _, id := range page.Jobs {
		l.dropUnknown(t, id, dropped)
	}
	for _, k := range page.Known {
		if j := l.job(k.Job); j != nil && t.hosting.homes[j] != nil {
			j.outputs.log.Reader(t.assign.Index()).Knows(k.Sums)
		}
	}
	for i := range page.Attempts {
		r := &page.Attempts[i]
		l.dropUnknown(t, r.Attempt.Task.Job, dropped)
		l.attemptReport(t, r)
		if j := l.job(r.Attempt.Task.Job); j != nil && j.attempt(r.Attempt) != nil {
			x.attempts[r.Attempt] = true
		}
	}
}

// inventoryRead acts on the end of a tracker's inventory.
func (l *leader) inventoryRead(t *tracker) {
	x := t.contact.listed
	t.contact.listed = listed{}
	l.endMissing(t, x.attempts)
	t.contact.inventoried = true
	l.stopExpectingAll(t.Name)
	for _, j := range sortedJobs(t.hosting.homes) {
		l.resendHomes(j, t, x.homes)
	}
	l.inventoryDone(t.Name)
	l.resendShares(t)
	l.refresh(t)
	l.retryHomes(t)
}

// isHome reports whether a tracker is the home that it reports.
func (l *leader) isHome(t *tracker, r *wire.HomeReport) bool {
	j := l.job(r.Job)
	if j == nil || r.Partition < 0 || r.Partition >= len(j.partitions.homes) {
		return false
	}
	h := &j.partitions.homes[r.Partition]
	return h.tracker == t && h.generation == r.Generation
}

// retryHomes touches the jobs that may place homes on a tracker, which has become usable.
func (l *leader) retryHomes(t *tracker) {
	if !t.canBeHome() {
		return
	}
	many := len(l.todo.noHomeFound) > l.works.budget/8
	for _, j := range l.todo.noHomeFound {
		if j.partitions.noHomeFound = false; !many {
			l.touch(j)
		}
	}
	if l.charge(len(l.todo.noHomeFound) / 8); many {
		l.touchAll()
	}
	l.todo.noHomeFound = l.todo.noHomeFound[:0]
	for i := range l.fleet.outOfService.All() {
		for j := range l.fleet.byIndex[i].hosting.homes {
			l.touch(j)
		}
	}
}

// sortedJobs lists jobs by number.
func sortedJobs[V any](jobs map[*job]V) []*job {
	return slices.SortedFunc(maps.Keys(jobs), func(a, b *job) int { return a.facts.N() - b.facts.N() })
}

// homeKey identifies a home in an inventory.
type homeKey struct {
	job       wire.JobID
	partition int
	gen       wire.Generation
}

// dropUnknown tells a tracker to drop a job that has ended, or that Facts do not have. It does
// so once for all jobs in dropped.
func (l *leader) dropUnknown(t *tracker, id wire.JobID, dropped map[wire.JobID]bool) {
	f := l.facts.Find(id)
	if f != nil && !f.Ended() || dropped[id] {
		return
	}
	dropped[id] = true
	drop := &wire.DropJob{Epoch: l.epoch, Job: id}
	if f != nil {
		drop.EndedStaging = l.facts.StagingIfEnded(f.Submission())
	}
	l.send(t, drop)
}

// endMissing ends attempts that the inventory does not list: their Launch was lost with an
// earlier stream.
func (l *leader) endMissing(t *tracker, reported map[wire.AttemptID]bool) {
	for _, a := range sortedAttempts(slices.Values(t.attempts)) {
		if !reported[a.id] {
			l.attemptLost(a)
		}
	}
}

// inventoryDone ends the wait for a tracker: its inventory is complete, or the tracker is lost.
func (l *leader) inventoryDone(name string) {
	if !l.recovery.awaiting[name] {
		return
	}
	delete(l.recovery.awaiting, name)
	l.recovery.awaitSince = l.now // others wait for their turn
	l.recovery.awaitUntil = max(l.recovery.awaitUntil, l.now+l.c.cfg.Lease)
	l.endRecoveryIfReady()
}

// checkAwaited ends the wait for inventories when none has come for a whole lease. A tracker
// without one is lost by then, or sends none. While the leader is late, the lease is longer as in
// checkLeases: heartbeats alone do not keep the jobs waiting.
func (l *leader) checkAwaited() {
	if l.c.readUntil < l.recovery.awaitUntil {
		return
	}
	if l.c.readUntil < l.c.lateUntil {
		l.recovery.awaitUntil = l.recovery.awaitSince + l.c.cfg.Lease + 2*l.c.latest
	}
	if l.c.readUntil >= l.recovery.awaitUntil {
		clear(l.recovery.awaiting)
		l.endRecoveryIfReady()
	}
}

func (l *leader) endRecoveryIfReady() {
	if len(l.recovery.awaiting) > 0 {
		return
	}
	l.recovery.awaitUntil = never
	l.visitJobs(&l.works.recovering)
}

// endRecovery lets a job continue after a change of leader.
func (l *leader) endRecovery(j *job) {
	if !j.recovering {
		return
	}
	j.recovering = false
	j.tally.awaitsFirst = j.isUnstarted()
	l.touch(j)
	if !j.facts.Running() {
		return
	}
	for _, task := range j.facts.Grants() {
		tk := j.committingTask(task)
		if attempt, _ := j.facts.Grant(task); tk.attempt(attempt) == nil {
			l.addFence(j, task)
		}
	}
	for m := range j.maps {
		l.updateMap(j, m)
	}
	for i := range l.phases {
		l.phases[i].planNow(l.now)
	}
	l.checkHomes(j)
	for i := range j.partitions.hosts.All() {
		l.queueAllOutputs(j, i)
	}
}

// adopt records a running attempt of an earlier leader. It also records an attempt that it kills:
// such an attempt uses its slot, and may write, until it has ended.
func (l *leader) adopt(t *tracker, j *job, r *wire.Report) *attempt {
	tk := j.task(r.Attempt.Task)
	if tk == nil && r.Attempt.Task.Kind == wire.Fence { // only the earlier leader knew the task
		j.service.lastAdoptedFence--
		tk = &task{kind: wire.Fence, n: j.service.lastAdoptedFence}
	}
	if tk == nil {
		l.send(t, &wire.Kill{Epoch: l.epoch, Attempt: r.Attempt, Reason: "no longer wanted"})
		return nil
	}
	wanted := !t.contact.newInTerm && l.adoptableTask(t, j, r.Attempt) != nil && !j.skipsOthers(r)
	a := l.addAttempt(j, tk, t, r.Attempt)
	if !wanted {
		l.killAttempt(a, "no longer wanted")
	}
	return a
}

// adoptableTask returns the task of an attempt that may continue, or nil if it must be killed.
func (l *leader) adoptableTask(t *tracker, j *job, id wire.AttemptID) *task {
	n := id.Task.N
	state := l.facts.State(j.facts)
	switch {
	case id.N/wire.EpochAttempts >= int(l.epoch):
		return nil // this leader launched it, and it has ended
	case id.Task.Kind == wire.Setup && n == 0 && state == wire.Preparing:
		return j.service.setup.ifIdle()
	case id.Task.Kind == wire.Commit && n == 0 && state == wire.Committing:
		return j.service.commit.ifIdle()
	case id.Task.Kind == wire.Cleanup && n == 0 && state == wire.Stopping:
		return j.service.cleanup.ifIdle()
	case state != wire.Running || !id.Task.Kind.Slotted():
		return nil
	case id.Task.Kind == wire.Map && n < len(j.maps):
		m := &j.maps[n]
		return l.adoptable(j, &m.task, id, !m.output.atHand() && m.mayRunOn(t, j.spec.Maps.Speculative))
	case id.Task.Kind == wire.Reduce && n < len(j.reduces):
		return l.adoptable(j, &j.reduces[n], id, j.partitions.homes[n].tracker == t && j.mayRunReduce(n))
	}
	return nil
}

// adoptable decides for an attempt with a slot. An attempt with the grant continues, unless a
// fence examines it. Another attempt continues if it could be launched now: the task has no output,
// and fewer than maxAttempts, all elsewhere; and a reduce only at its home. So of several attempts of a
// reduce those that are not at home may end. They do not hinder the one at home.
func (l *leader) adoptable(j *job, tk *task, id wire.AttemptID, mayRun bool) *task {
	if id.Task.Kind == j.facts.Kind() {
		if grant, ok := j.facts.Grant(id.Task.N); ok {
			if grant == id.N && j.service.fences[id.Task.N] == nil {
				return tk
			}
			return nil
		}
		if j.facts.Settled(id.Task.N) {
			return nil
		}
	}
	if !mayRun {
		return nil
	}
	return tk
}
