package core

import (
	"time"

	"github.com/quernmr/quern/jobtracker/core/assign"
	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// queuesLast is how many plan periods a plan's queues stay in force without a new plan.
const queuesLast = 4

// fillSlots launches tasks in free slots. A Step launches some of many: the next one continues.
func (l *leader) fillSlots() {
	l.speculate(true)
	l.assign.AllowLaunches(max(1, l.works.budget/launchCost/2))
	l.assign.AssignMaps()
	l.launchGathered()
	l.assign.AssignReduces()
	l.moveReady()
	l.speculate(false)
	if l.assign.MapsWait() {
		l.assign.AssignMaps() // recomputeLost or speculate has added maps, or a reduce has ended the saving of a tracker
	}
	l.works.stepAgain = l.works.stepAgain || l.assign.Exhausted()
}

// launchCost is what it costs to launch a task, in entries.
const launchCost = 2

// updateLines makes the assigner update a job's place in the lines before it assigns slots. See
// package assign.
func (l *leader) updateLines(j *job) { l.assign.MarkChanged(&j.assign) }

// toLaunch counts the tasks of a phase that wait for a slot.
func (l *leader) toLaunch(j *job, phase int) int { return l.assign.ToLaunch(phase, &j.assign) }

// learnRacks learns the racks of hosts from a job's splits, which the file system has located.
func (l *leader) learnRacks(splits []Split) {
	learned := false
	for i := range splits {
		s := &splits[i]
		for k, host := range s.Hosts {
			if k < len(s.Racks) && l.fleet.topo.Learn(host, s.Racks[k]) {
				learned = true
			}
		}
	}
	if !learned {
		return
	}
	for _, t := range l.fleet.byIndex {
		if t != nil {
			l.setRack(t)
		}
	}
}

func (l *leader) setRack(t *tracker) {
	t.rack = l.fleet.topo.Rack(t.Host, t.Tracker.Rack)
	l.assign.SetRack(&t.assign, t.rack)
}

// countLevel counts a launched or adopted map by locality, unless the splits are not read yet.
func (l *leader) countLevel(a *attempt) {
	if a.id.Task.Kind == wire.Map && a.job.assign.Indexed() {
		a.level = a.job.assign.LevelOf(a.id.Task.N, &a.tracker.assign)
		a.job.tally.levels[a.level]++
		l.c.counts.Levels[a.level].Add(1)
	}
}

// expireQueues drops the queues of plans that are too old.
func (l *leader) expireQueues() {
	for i := range l.phases {
		if l.assign.ExpireQueues(i) {
			l.phases[i].plan.Queues = nil
			l.recordPlan(&l.phases[i])
		}
	}
}

// queuesFor converts the queues of a plan for the assigner.
func (l *leader) queuesFor(p *phase) []assign.Queue {
	var queues []assign.Queue
	for _, q := range p.plan.Queues {
		var queue assign.Queue
		if t := l.fleet.trackers[q.Tracker]; t != nil {
			queue.Tracker = &t.assign
		}
		for _, r := range q.Runs {
			if j := l.job(r.Job); j != nil {
				queue.Runs = append(queue.Runs, assign.Run{Job: &j.assign, Tasks: r.Tasks})
			}
		}
		queues = append(queues, queue)
	}
	return queues
}

// assignCluster implements assign.Cluster for the leader.
type assignCluster struct{ l *leader }

var _ assign.Cluster = assignCluster{}

func jobOf(j *assign.Job) *job             { return j.Owner.(*job) }
func trackerOf(t *assign.Tracker) *tracker { return t.Owner.(*tracker) }

func (x assignCluster) Now() time.Duration { return x.l.now }

func (x assignCluster) Launch(job *assign.Job, m int, t *assign.Tracker) {
	j := jobOf(job)
	x.l.launch(j, &j.maps[m].task, trackerOf(t), wire.AttemptID{})
}

func (x assignCluster) MayReduce(job *assign.Job, at *assign.Tracker) bool {
	j, t := jobOf(job), trackerOf(at)
	ready := t.hosting.ready[j]
	return ready != nil && ready.Len() > 0 || x.l.nextToGather(j, t) >= 0
}

func (x assignCluster) LaunchReduce(job *assign.Job, at *assign.Tracker, gather bool) bool {
	j, t := jobOf(job), trackerOf(at)
	if ready := t.hosting.ready[j]; ready != nil && ready.Len() > 0 {
		x.l.launch(j, &j.reduces[nextReduce(j, ready)], t, wire.AttemptID{})
		return true
	}
	if !gather {
		return false
	}
	p := x.l.nextToGather(j, t)
	if p < 0 || x.l.outranLately(t) && x.l.hasFasterSlot(j, p) {
		return false
	}
	x.l.gatherInSlot(j, p, t)
	return true
}

// nextReduce returns the partition that is reduced first. A large one begins before the others: if it began last, it
// would run alone at the end.
func nextReduce(j *job, ready *taskset.Set) int {
	if p := j.partitions.sizes.Large(ready.Has); p >= 0 {
		return p
	}
	return ready.Next(0)
}

func (x assignCluster) Runnable(job *assign.Job) bool {
	j := jobOf(job)
	return j.plannable()
}

func (x assignCluster) ToGather(j *assign.Job) int { return jobOf(j).partitionsToGather() }

func (x assignCluster) Pool(j *assign.Job) (string, wire.Priority) {
	s := jobOf(j).facts.Submission()
	return poolName(s), s.Priority()
}

func (x assignCluster) MayRetry(job *assign.Job, m int, t *assign.Tracker, strict bool) bool {
	j := jobOf(job)
	tk := &j.maps[m].task
	if !j.avoids(tk, trackerOf(t)) {
		return true
	}
	// A map that has failed everywhere must not wait for slots that no other job can use.
	return j.faults.AvoidUntil(tk.key()) == 0 && (!strict || !x.l.hasAlternative(j, tk))
}

func (x assignCluster) StopAvoiding(job *assign.Job, m int) bool {
	j := jobOf(job)
	tk := &j.maps[m].task
	if x.l.seekAlternative(j, tk) {
		return false
	}
	j.faults.StopAvoiding(tk.key())
	return true
}

func (x assignCluster) Releases(t *assign.Tracker, all []time.Duration) []time.Duration {
	wall := x.l.wall()
	for _, a := range trackerOf(t).attempts {
		if a.id.Task.Kind == wire.Map {
			ran := time.Duration(wall-a.began) * time.Millisecond
			all = append(all, x.l.assign.Remaining(&a.job.assign, a.level, ran))
		}
	}
	return all
}

func (x assignCluster) Alarm(j *assign.Job, at time.Duration) { x.l.alarm(jobOf(j), at) }

func (x assignCluster) PlanNow(phase int) { x.l.phases[phase].planNow(x.l.now) }

func (x assignCluster) PlanSoon(phase int) {
	switch p := &x.l.phases[phase]; {
	case p.surveying != nil:
		p.planAgain = true
	case p.nextPlanAt == never:
		p.planNow(x.l.now)
	}
}
