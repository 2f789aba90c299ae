package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// jobIDs parses the arguments as ids of jobs and flows. For a flow it returns the ids of its jobs.
func (q *query) jobIDs(ctx context.Context) ([]wire.JobID, error) {
	return q.resolve(ctx, q.args, func(jobs []wire.JobStatus) []wire.JobStatus { return jobs })
}

// targetIDs is jobIDs for changes, which the cluster applies to whole flows. It returns one job per
// flow, which can probably be changed for the longest time. Among equal jobs it takes the last,
// since the jobs of a flow end in order.
func (q *query) targetIDs(ctx context.Context, args []string) ([]wire.JobID, error) {
	return q.resolve(ctx, args, func(jobs []wire.JobStatus) []wire.JobStatus {
		best := slices.MinFunc(jobs, func(a, b wire.JobStatus) int {
			return cmp.Or(changeRank(a.State)-changeRank(b.State), b.ID.Compare(a.ID))
		})
		return []wire.JobStatus{best}
	})
}

// changeRank orders states: 0 if a job can be changed, 1 if it commits, 2 if it has ended.
func changeRank(s wire.State) int {
	switch {
	case s.Ended():
		return 2
	case s == wire.Committing:
		return 1
	}
	return 0
}

// firstIDs parses the first argument as jobIDs does, and reports whether it is a flow.
func (q *query) firstIDs(ctx context.Context) (ids []wire.JobID, flow bool, err error) {
	_, bad := wire.ParseFlowID(q.args[0])
	ids, err = q.resolve(ctx, q.args[:1], func(jobs []wire.JobStatus) []wire.JobStatus { return jobs })
	return ids, bad == nil, err
}

// resolve parses ids, and returns the ids of jobs without duplicates. choose selects jobs of a
// flow.
func (q *query) resolve(ctx context.Context, args []string, choose func([]wire.JobStatus) []wire.JobStatus) ([]wire.JobID, error) {
	ids, flows, err := parseIDs(args)
	if err != nil || len(flows) == 0 {
		return distinct(ids), err
	}
	for _, flow := range flows {
		var jobs []wire.JobStatus
		if q.staging == "" { // with -staging there may be no job tracker
			jobs, err = q.jobsOf(ctx, flow)
		}
		if err == nil && len(jobs) == 0 {
			jobs, err = q.flowFromHistories(ctx, flow)
		}
		if err == nil && len(jobs) == 0 {
			err = fmt.Errorf("%v: %w: no job of this flow is known", flow, admission.ErrUnknownJob)
		}
		if err != nil {
			return nil, err
		}
		for _, job := range choose(jobs) {
			ids = append(ids, job.ID)
		}
	}
	return distinct(ids), nil
}

// parseIDs parses ids of jobs and of flows.
func parseIDs(args []string) (jobs []wire.JobID, flows []wire.FlowID, err error) {
	for _, text := range args {
		if flow, err := wire.ParseFlowID(text); err == nil {
			flows = append(flows, flow)
			continue
		}
		job, err := wire.ParseJobID(text)
		if err != nil {
			return nil, nil, usagef("%q is not the id of a job or flow: mrsubmit list shows them", text)
		}
		jobs = append(jobs, job)
	}
	return jobs, flows, nil
}

// distinct drops duplicates.
func distinct(ids []wire.JobID) []wire.JobID {
	var unique []wire.JobID
	for _, id := range ids {
		if !slices.Contains(unique, id) {
			unique = append(unique, id)
		}
	}
	return unique
}

// jobsOf returns the jobs of a flow that the cluster knows, by id.
func (q *query) jobsOf(ctx context.Context, flow wire.FlowID) ([]wire.JobStatus, error) {
	known, err := q.cluster.Jobs(ctx, core.Query{Oldest: true, Filter: admission.Filter{Flow: flow}})
	if err != nil {
		return nil, err
	}
	jobs := make([]wire.JobStatus, len(known))
	for i := range known {
		if jobs[i], err = known[i].Status(); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// flowFromHistories lists the jobs of a flow that have a history, by id.
func (q *query) flowFromHistories(ctx context.Context, flow wire.FlowID) ([]wire.JobStatus, error) {
	list, skipped, err := q.past().Histories(ctx, core.Query{Filter: admission.Filter{Flow: flow}}, 0)
	if err != nil {
		return nil, err
	}
	slices.Reverse(list)
	for _, why := range skipped {
		q.reportSkipped(errors.New(why))
	}
	jobs := make([]wire.JobStatus, len(list))
	for i := range list {
		if jobs[i], err = list[i].Status(); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}
