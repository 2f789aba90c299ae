package core

import (
	"maps"
	"slices"

	"github.com/quernmr/quern/wire"
)

// inventoryPage collects a tracker's inventory and, when it is whole, brings what
// the leader believes of that tracker into line with it. What that costs goes by what is
// in the inventory and what the leader has there, not by how many jobs there are: after
// a failover all trackers send theirs at once.
func (l *Live) inventoryPage(t *tracker, page *wire.Inventory) {
	if t.contact.inventoried {
		return // a stream has one inventory
	}
	t.contact.pages = append(t.contact.pages, page)
	if page.More {
		return
	}
	pages := t.contact.pages
	t.contact.pages = nil
	t.contact.taking = true
	defer func() { t.contact.taking = false }()
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
	l.missing(t, reported)
	t.contact.inventoried = true
	l.allExpectedNoMore(t.Name)
	l.inventoryIn(t.Name)
	for _, j := range sortedJobs(t.hosting.homes) {
		l.homesAgain(j, t, homes)
	}
	l.sharesLost(t)
	l.refresh(t)
	l.mayHomeAgain(t)
}

// mayHomeAgain has those jobs looked at that may want homes on a tracker which can be
// spoken to from now on: others do not wait for one.
func (l *Live) mayHomeAgain(t *tracker) {
	if !t.mayHome() {
		return
	}
	for _, j := range l.todo.unhoused {
		j.housing.unhoused = false
		l.touch(j)
	}
	l.todo.unhoused = l.todo.unhoused[:0]
	for i := range l.fleet.unfit.All() {
		for j := range l.fleet.byIndex[i].hosting.homes {
			l.touch(j)
		}
	}
}

// sortedJobs lists jobs by number.
func sortedJobs[V any](jobs map[*job]V) []*job {
	return slices.SortedFunc(maps.Keys(jobs), func(a, b *job) int { return a.facts.N() - b.facts.N() })
}

// homeKey names a home as a tracker reports it.
type homeKey struct {
	job       wire.JobID
	partition int
	gen       wire.Generation
}

// dropUnknown lets a tracker forget a job that has ended behind its back, once.
func (l *Live) dropUnknown(t *tracker, id wire.JobID, dropped map[wire.JobID]bool) {
	f := l.facts.Find(id)
	if f != nil && !f.Ended() || dropped[id] {
		return
	}
	dropped[id] = true
	drop := &wire.DropJob{Epoch: l.epoch, Job: id}
	if f != nil {
		drop.Done = l.facts.StagingIfEnded(f.Submission())
	}
	l.send(t, drop)
}

// missing ends the attempts that the tracker was to run and does not have: the
// launch was lost with an earlier stream.
func (l *Live) missing(t *tracker, reported map[wire.AttemptID]bool) {
	for _, a := range sortedAttempts(slices.Values(t.attempts)) {
		if !reported[a.id] {
			l.vanished(a)
		}
	}
}

// inventoryIn counts down to the release of recovered jobs: their tasks are
// assigned when every tracker has told what it has, or is lost.
func (l *Live) inventoryIn(name string) {
	if !l.recovery.awaiting[name] {
		return
	}
	delete(l.recovery.awaiting, name)
	l.releaseIfDue()
}

// checkAwaited has recovered jobs wait no longer than a lease of what was read: by then a
// tracker's inventory is in, or the tracker is lost.
func (l *Live) checkAwaited() {
	if l.c.read >= l.recovery.awaitDue {
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
		if j.held {
			l.release(j)
		}
	}
}

// release lets a recovered job go on from what the inventories told.
func (l *Live) release(j *job) {
	j.held = false
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
		l.phases[i].begun(l.now)
	}
	l.judgeHomes(j)
	for i := range j.housing.hosts.All() {
		l.tellAll(j, i)
	}
}

// adopt takes over a running attempt that an earlier leader launched. One that is
// no longer wanted is killed, but noted all the same: it holds its slot, and may
// write, until it has ended.
func (l *Live) adopt(t *tracker, j *job, r *wire.Report) *attempt {
	tk := j.task(r.Attempt.Task)
	if tk == nil && r.Attempt.Task.Kind == wire.Fence { // whose task went with its leader
		j.service.forgotten--
		tk = &task{kind: wire.Fence, n: j.service.forgotten}
	}
	if tk == nil {
		l.send(t, &wire.Kill{Epoch: l.epoch, Attempt: r.Attempt, Reason: "no longer wanted"})
		return nil
	}
	wanted := !t.contact.fresh && l.wants(t, j, r.Attempt) != nil
	a := l.start(j, tk, t, r.Attempt)
	if !wanted {
		l.kill(a, "no longer wanted")
	}
	return a
}

// wants finds the task that an unknown running attempt is welcome to, or nil.
func (l *Live) wants(t *tracker, j *job, id wire.AttemptID) *task {
	n := id.Task.N
	state := l.facts.State(j.facts)
	switch {
	case id.N/wire.EpochAttempts >= int(l.epoch):
		return nil // ours, and ended
	case id.Task.Kind == wire.Setup && n == 0 && state == wire.Preparing:
		return j.service.setup.idle()
	case id.Task.Kind == wire.Commit && n == 0 && state == wire.Committing:
		return j.service.commit.idle()
	case id.Task.Kind == wire.Cleanup && n == 0 && state == wire.Stopping:
		return j.service.cleanup.idle()
	case state != wire.Running || !id.Task.Kind.Slotted():
		return nil
	case id.Task.Kind == wire.Map && n < len(j.maps):
		return l.wantsTask(j, &j.maps[n].task, id, j.maps[n].output.atHand(), true)
	case id.Task.Kind == wire.Reduce && n < len(j.reduces):
		h := &j.housing.homes[n]
		return l.wantsTask(j, &j.reduces[n], id, false, h.tracker == t)
	}
	return nil
}

// wantsTask decides for a task with a slot. An attempt with the grant is always
// wanted, unless a fence against it has begun.
func (l *Live) wantsTask(j *job, tk *task, id wire.AttemptID, output, placed bool) *task {
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
