package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// jobIDs reads the arguments as ids of jobs, and of flows, which stand for all their jobs.
func (q *query) jobIDs(ctx context.Context) ([]wire.JobID, error) {
	return q.resolve(ctx, q.args, func(jobs []wire.JobStatus) []wire.JobStatus { return jobs })
}

// wholes is jobIDs for what is done to whole flows: one job of each stands for it, the
// one to which something can be done for longest: of those that are as little settled as
// any the last, for a flow's jobs end from the first on.
func (q *query) wholes(ctx context.Context, args []string) ([]wire.JobID, error) {
	return q.resolve(ctx, args, func(jobs []wire.JobStatus) []wire.JobStatus {
		best := slices.MinFunc(jobs, func(a, b wire.JobStatus) int { return cmp.Or(settled(a.State)-settled(b.State), b.ID.Compare(a.ID)) })
		return []wire.JobStatus{best}
	})
}

// settled orders states: 0 may still be changed, 1 is committing, 2 has ended.
func settled(s wire.State) int {
	switch {
	case s.Ended():
		return 2
	case s == wire.Committing:
		return 1
	}
	return 0
}

// firstIDs reads the first argument as jobIDs does. Flow: it is one, and what is printed of
// it a list.
func (q *query) firstIDs(ctx context.Context) (ids []wire.JobID, flow bool, err error) {
	_, bad := wire.ParseFlowID(q.args[0])
	ids, err = q.resolve(ctx, q.args[:1], func(jobs []wire.JobStatus) []wire.JobStatus { return jobs })
	return ids, bad == nil, err
}

// resolve reads ids, each once, those of jobs first. Of the jobs of a flow it takes those
// that choose does.
func (q *query) resolve(ctx context.Context, args []string, choose func([]wire.JobStatus) []wire.JobStatus) ([]wire.JobID, error) {
	ids, flows, err := parseIDs(args)
	if err != nil || len(flows) == 0 {
		return once(ids), err
	}
	var all []web.Job
	if q.staging == "" { // else no job tracker need be named
		if all, err = q.cluster.Jobs(ctx); err != nil {
			return nil, err
		}
	}
	for _, flow := range flows {
		jobs, err := jobsOf(flow, all)
		if err == nil && len(jobs) == 0 {
			jobs, err = q.pastFlow(ctx, flow)
		}
		if err == nil && len(jobs) == 0 {
			err = fmt.Errorf("%v: %w: no job of this flow is there", flow, admission.ErrUnknownJob)
		}
		if err != nil {
			return nil, err
		}
		for _, job := range choose(jobs) {
			ids = append(ids, job.ID)
		}
	}
	return once(ids), nil
}

// parseIDs tells ids of jobs from those of flows.
func parseIDs(args []string) (jobs []wire.JobID, flows []wire.FlowID, err error) {
	for _, text := range args {
		if flow, err := wire.ParseFlowID(text); err == nil {
			flows = append(flows, flow)
			continue
		}
		job, err := wire.ParseJobID(text)
		if err != nil {
			return nil, nil, wrong("%v, nor of a flow", err)
		}
		jobs = append(jobs, job)
	}
	return jobs, flows, nil
}

// once drops an id that is there already.
func once(ids []wire.JobID) []wire.JobID {
	var kept []wire.JobID
	for _, id := range ids {
		if !slices.Contains(kept, id) {
			kept = append(kept, id)
		}
	}
	return kept
}

// jobsOf is the jobs of a flow among those that the cluster knows.
func jobsOf(flow wire.FlowID, known []web.Job) ([]wire.JobStatus, error) {
	var jobs []wire.JobStatus
	for i := range known {
		if known[i].Flow != flow.String() {
			continue
		}
		job, err := known[i].Status()
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// pastFlow lists the jobs of a flow that have a history. They are numbered one after the
// other, from the flow's number on, so an unreadable history before one of another flow
// may be of this flow.
func (q *query) pastFlow(ctx context.Context, flow wire.FlowID) ([]wire.JobStatus, error) {
	staging, err := q.stagingURL(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := history.List(files(), staging)
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e history.Entry) bool { return e.Job.Start != flow.Start || e.Job.N < flow.N })
	slices.SortFunc(entries, func(a, b history.Entry) int { return a.Job.Compare(b.Job) })
	var jobs []wire.JobStatus
	for _, e := range entries {
		r, err := history.Read(files(), e.Name)
		if err != nil {
			if !errors.Is(err, history.ErrNotHistory) && !errors.Is(err, fs.ErrNotExist) {
				return nil, err // nor can the others be read
			}
			q.leaveOut(fmt.Errorf("%v, which may be of %v: %w", e.Job, flow, err))
			continue
		}
		if r.Job.Flow != flow {
			break
		}
		jobs = append(jobs, r.Job)
	}
	return jobs, nil
}
