package core

import (
	"maps"
	"slices"

	"github.com/quernmr/quern/wire"
)

// inventoryPage collects a tracker's inventory. When it is complete, the leader's view of that
// tracker follows it. The cost depends on the tracker, not on the number of jobs: after a
// failover all inventories come at once.
func (l *Live) inventoryPage(t *tracker, page *wire.Inventory) {
	if t.contact.inventoried {
		return // a stream has only one inventory
	}
	t.contact.pages = append(t.contact.pages, page)
	if page.More {
		return
	}
	pages := t.contact.pages
	t.contact.pages = nil
	t.contact.readingInventory = true
	defer func() { t.contact.readingInventory = false }()
	homes := make(map[homeKey]bool)
	dropped := make(map[wire.JobID]bool)
	for _, p := range pages {
		for i := range p.Homes {
			h := &p.Homes[i]
			homes[homeKey{h.Job, h.Partition, h.Generation}] = true
			l.dropUnknown(t, h.Job, dropped)
			l.homeReport(t, h)
		}
		for _, id := range p.Jobs {
			l.dropUnknown(t, id, dropped)
		}
	}
	reported := make(map[wire.AttemptID]bool)
	for _, p := range pages {
		for i := range p.Attempts {
			r := &p.Attempts[i]
			reported[r.Attempt] = true
			l.dropUnknown(t, r.Attempt.Task.Job, dropped)
			l.report(t, r)
		}
	}
	l.endMissing(t, reported)
	t.contact.inventoried = true
	l.stopExpectingAll(t.Name)
	l.inventoryDone(t.Name)
	for _, j := range sortedJobs(t.hosting.homes) {
		l.resendHomes(j, t, homes)
	}
	l.resendShares(t)
	l.refresh(t)
	l.retryHomes(t)
}

// retryHomes touches the jobs that may want a home on a tracker that became usable.
func (l *Live) retryHomes(t *tracker) {
	if !t.canBeHome() {
		return
	}
	for _, j := range l.todo.noHomeFound {
		j.housing.noHomeFound = false
		l.touch(j)
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

// dropUnknown makes a tracker drop a job that has ended without its notice, once.
func (l *Live) dropUnknown(t *tracker, id wire.JobID, dropped map[wire.JobID]bool) {
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

// endMissing ends attempts that the inventory does not list: the launch was lost with an
// earlier stream.
func (l *Live) endMissing(t *tracker, reported map[wire.AttemptID]bool) {
	for _, a := range sortedAttempts(slices.Values(t.attempts)) {
		if !reported[a.id] {
			l.attemptLost(a)
		}
	}
}

// inventoryDone notes that a tracker's inventory is in, or that it is lost. After the last one
// recovered jobs go on.
func (l *Live) inventoryDone(name string) {
	if !l.recovery.awaiting[name] {
		return
	}
	delete(l.recovery.awaiting, name)
	l.releaseIfDue()
}

// checkAwaited releases recovered jobs after a lease of read messages: by then each tracker has
// sent its inventory or is lost.
func (l *Live) checkAwaited() {
	if l.c.readUntil >= l.recovery.awaitDue {
		clear(l.recovery.awaiting)
		l.releaseIfDue()
	}
}

func (l *Live) releaseIfDue() {
	if len(l.recovery.awaiting) > 0 {
		return
	}
	l.recovery.awaitDue = never
	for _, j := range l.order {
		if j.recovering {
			l.release(j)
		}
	}
}

// release lets a recovered job go on after the inventories.
func (l *Live) release(j *job) {
	j.recovering = false
	l.touch(j)
	if !j.facts.Running() {
		return
	}
	for _, task := range j.facts.Grants() {
		tk := j.committer(task)
		if attempt, _ := j.facts.Grant(task); tk.numbered(attempt) == nil {
			l.fence(j, task)
		}
	}
	for m := range j.maps {
		l.updateMap(j, m)
	}
	for i := range l.phases {
		l.phases[i].planNow(l.now)
	}
	l.judgeHomes(j)
	for i := range j.housing.hosts.All() {
		l.queueAllOutputs(j, i)
	}
}

// adopt takes over a running attempt of an earlier leader. It kills an unwanted attempt but
// records it too: the attempt holds its slot and may write until it has ended.
func (l *Live) adopt(t *tracker, j *job, r *wire.Report) *attempt {
	tk := j.task(r.Attempt.Task)
	if tk == nil && r.Attempt.Task.Kind == wire.Fence { // its task is gone with its leader
		j.service.lastAdoptedFence--
		tk = &task{kind: wire.Fence, n: j.service.lastAdoptedFence}
	}
	if tk == nil {
		l.send(t, &wire.Kill{Epoch: l.epoch, Attempt: r.Attempt, Reason: "no longer wanted"})
		return nil
	}
	wanted := !t.contact.newInTerm && l.adoptableTask(t, j, r.Attempt) != nil
	a := l.start(j, tk, t, r.Attempt)
	if !wanted {
		l.kill(a, "no longer wanted")
	}
	return a
}

// adoptableTask finds the task for which an unknown running attempt may go on, or nil.
func (l *Live) adoptableTask(t *tracker, j *job, id wire.AttemptID) *task {
	n := id.Task.N
	state := l.facts.State(j.facts)
	switch {
	case id.N/wire.EpochAttempts >= int(l.epoch):
		return nil // it is ours and has ended
	case id.Task.Kind == wire.Setup && n == 0 && state == wire.Preparing:
		return j.service.setup.idle()
	case id.Task.Kind == wire.Commit && n == 0 && state == wire.Committing:
		return j.service.commit.idle()
	case id.Task.Kind == wire.Cleanup && n == 0 && state == wire.Stopping:
		return j.service.cleanup.idle()
	case state != wire.Running || !id.Task.Kind.Slotted():
		return nil
	case id.Task.Kind == wire.Map && n < len(j.maps):
		return l.adoptable(j, &j.maps[n].task, id, j.maps[n].output.atHand(), true)
	case id.Task.Kind == wire.Reduce && n < len(j.reduces):
		h := &j.housing.homes[n]
		return l.adoptable(j, &j.reduces[n], id, false, h.tracker == t)
	}
	return nil
}

// adoptable decides for a task with a slot. The attempt with the grant goes on unless a fence
// against it has begun.
func (l *Live) adoptable(j *job, tk *task, id wire.AttemptID, output, placed bool) *task {
	if id.Task.Kind == j.facts.Kind() {
		if grant, ok := j.facts.Grant(id.Task.N); ok {
			if grant == id.N && j.service.fences[id.Task.N] == nil {
				return tk
			}
			return nil
		}
		if j.facts.Committed(id.Task.N) {
			return nil
		}
	}
	if output || !placed || tk.runs() {
		return nil
	}
	return tk
}
