package flowflex

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/scheduler"
)

// Policy is FlowFlex in a running system (section 5.2): each allocation period it schedules the
// present flows to their end, and the start of that schedule is the Plan.
//
// A node is a phase of a job. A job outside flows is a flow of one job, with its reduces after
// its maps. Phases that cannot use slots yet have the work of their tasks; a task of an unmeasured
// phase counts as the mean task of the measured phases. A reduce phase is among the Jobs once a
// configured part of its maps has ended. Until it can use its slots, other jobs get them.
//
// Phases of the other kind run in other slots. Here they are nodes of one slot that take as long
// as all their tasks side by side. So the critical path is right, and their area is small. The
// time between jobs of a flow, for commit and setup, is such a node too.
//
// Stretch is the time to the end, divided by the seconds of the whole flow alone, ended phases
// included, from the Snapshot's Flows. Without Flows the divisor is the slot-seconds left. A
// schedule that meets a deadline or an SLA step with little slack pays part of its cost; see
// expectedCost.
//
// Pseudo-jobs share their slots in proportion, because pieces of the wrap-around rule would be too
// short. Minima, which FlowFlex does not have, come first. Slots go by the schedule, and slots
// left go by its order. O(J log J) for J phases, plus Solve.
type Policy struct{}

// Plan implements [scheduler.Policy].
func (Policy) Plan(s scheduler.Snapshot) (scheduler.Plan, error) {
	normal, err := s.Normal()
	if err != nil {
		return scheduler.Plan{}, err
	}
	if normal.Slots == 0 || len(normal.Jobs) == 0 {
		return makePlan(normal, nil, nil), nil
	}
	g, err := graph(normal)
	if err != nil {
		return scheduler.Plan{}, err
	}
	schedule, err := Solve(Problem{Slots: normal.Slots, Flows: g.flows}, Options{Aggregate: s.Metric.Aggregate})
	if err != nil {
		return scheduler.Plan{}, fmt.Errorf("flowflex: %w", err)
	}
	return makePlan(normal, g, schedule), nil
}

// makePlan assigns minima, then the schedule's shares, then the other slots. Without a schedule,
// because there are no slots or no jobs, targets have no slots.
func makePlan(s scheduler.Snapshot, g *snapshotGraph, schedule *Schedule) scheduler.Plan {
	plan := scheduler.Plan{Targets: make([]scheduler.Target, 0, len(s.Jobs))}
	if schedule == nil {
		for _, j := range s.Jobs {
			plan.Targets = append(plan.Targets, scheduler.Target{Job: j.ID})
		}
		return plan
	}
	slots, left := make([]int, len(s.Jobs)), s.Slots
	for i, j := range s.Jobs {
		slots[i] = j.Min
		left -= j.Min
	}
	for _, share := range schedule.Now {
		if at := g.jobIndex[share.Flow][share.Job]; at >= 0 {
			more := max(0, min(left, share.Slots-slots[at]))
			slots[at] += more
			left -= more
		}
	}
	for _, i := range schedule.Order {
		for k, at := range g.jobIndex[i] {
			if at < 0 {
				continue
			}
			more := min(left, s.Jobs[at].Max-slots[at])
			left -= more
			plan.Targets = append(plan.Targets,
				scheduler.Target{Job: s.Jobs[at].ID, Slots: slots[at] + more, End: schedule.Ends[i][k]})
		}
	}
	return plan
}

// snapshotGraph is a snapshot as flows.
type snapshotGraph struct {
	flows    []Flow
	jobIndex [][]int         // by flow and job: its index in Snapshot.Jobs, -1 if it is not there
	alone    map[int]float64 // Flow.Alone by Flow.First
}

// node is a phase that becomes a Job.
type node struct {
	id      scheduler.PhaseID
	flow    int // 0: the job is not in a flow
	arrived time.Duration
	job     Job
	alone   float64
	goal    scheduler.Goal
	index   int
	after   []scheduler.PhaseID
	lag     float64
}

// graph returns the flows of a snapshot in normal form, in order of arrival. A flow arrives with
// the first of its present jobs, and has the goal of its first job by id.
func graph(s scheduler.Snapshot) (*snapshotGraph, error) {
	nodes, err := nodesOf(s)
	if err != nil {
		return nil, err
	}
	// Group the nodes of each flow.
	slices.SortStableFunc(nodes, func(a, b node) int {
		return cmp.Or(cmp.Compare(a.flow, b.flow), a.id.Job.Compare(b.id.Job), cmp.Compare(a.id.Phase, b.id.Phase))
	})
	var groups [][]node
	for len(nodes) > 0 {
		n := 1
		for n < len(nodes) && nodes[n].flow == nodes[0].flow && (nodes[0].flow != 0 || nodes[n].id.Job == nodes[0].id.Job) {
			n++
		}
		groups, nodes = append(groups, nodes[:n]), nodes[n:]
	}
	slices.SortStableFunc(groups, func(a, b []node) int {
		return cmp.Or(cmp.Compare(firstArrived(a), firstArrived(b)), a[0].id.Job.Compare(b[0].id.Job))
	})
	g := &snapshotGraph{alone: make(map[int]float64, len(s.Flows))}
	for _, f := range s.Flows {
		g.alone[f.First] = f.Alone
	}
	for _, group := range groups {
		g.addFlow(group, s)
	}
	return g, nil
}

func firstArrived(group []node) time.Duration {
	first := time.Duration(1<<63 - 1)
	for _, n := range group {
		if n.index >= 0 {
			first = min(first, n.arrived)
		}
	}
	return first
}

func nodesOf(s scheduler.Snapshot) ([]node, error) {
	work, tasks := 0.0, 0
	var nodes []node
	for i, j := range s.Jobs {
		work += j.Work
		tasks += j.Tasks
		nodes = append(nodes, node{
			id:      scheduler.PhaseID{Job: j.ID, Phase: s.Phase},
			flow:    j.Flow,
			arrived: j.Arrived,
			job:     Job{ID: j.ID.String(), Work: j.Work, Max: j.Max},
			alone:   j.Alone,
			goal:    j.Goal,
			index:   i,
		})
	}
	perTask := work / float64(tasks)
	seen := make(map[scheduler.PhaseID]bool, len(nodes)+len(s.Later))
	for _, n := range nodes {
		seen[n.id] = true
	}
	for _, l := range s.Later {
		id := scheduler.PhaseID{Job: l.ID, Phase: l.Phase}
		n := node{id: id, flow: l.Flow, job: Job{ID: l.ID.String(), Work: l.Work, Max: l.Max}, goal: l.Goal, index: -1, after: l.After, lag: l.Lag}
		switch {
		case seen[id]:
			return nil, fmt.Errorf("%v: its phase %v is given twice", l.ID, l.Phase)
		case l.Max < 0:
			return nil, fmt.Errorf("%v: Max is %d", l.ID, l.Max)
		}
		if err := l.Goal.Check(); err != nil {
			return nil, fmt.Errorf("%v: %w", l.ID, err)
		}
		seen[id] = true
		if l.Max == 0 {
			n.job.Work = 0
		} else if l.Work == 0 {
			n.job.Work = perTask * float64(l.Max)
		}
		n.alone = n.job.Work
		if l.Phase != s.Phase && l.Max > 0 {
			n.job.Work, n.job.Max = n.job.Work/float64(l.Max), 1
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// addFlow adds a flow of the given nodes.
func (g *snapshotGraph) addFlow(group []node, s scheduler.Snapshot) {
	at := make(map[scheduler.PhaseID]int, len(group))
	for i, n := range group {
		at[n.id] = i
	}
	f, first := Flow{ID: group[0].id.Job.String()}, group[0].id.Job.N
	if group[0].flow != 0 {
		f.ID, first = fmt.Sprint(group[0].flow), group[0].flow
	}
	alone, places := 0.0, make([]int, len(group))
	for i, n := range group {
		for _, before := range n.after {
			if k, ok := at[before]; ok { // otherwise it has ended
				n.job.After = append(n.job.After, k)
			}
		}
		f.Jobs = append(f.Jobs, n.job)
		alone += n.alone
		places[i] = n.index
	}
	for i, n := range group {
		if n.lag != 0 { // add a node before it for the time
			f.Jobs = append(f.Jobs, Job{ID: n.job.ID, Work: n.lag, Max: 1, After: f.Jobs[i].After})
			f.Jobs[i].After, places = []int{len(f.Jobs) - 1}, append(places, -1)
		}
	}
	if whole := g.alone[first]; whole > 0 {
		alone = whole
	}
	f.Cost = expectedCost(s.Metric.Cost(group[0].goal, alone, s.Now))
	g.flows = append(g.flows, f)
	g.jobIndex = append(g.jobIndex, places)
}
