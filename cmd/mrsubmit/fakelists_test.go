package main

import (
	"context"
	"slices"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

func (f *fakeJobTracker) Explanations(ctx context.Context, after wire.JobID) (all []wire.Explanation, next wire.JobID, err error) {
	jobs, next, err := f.Jobs(ctx, core.Query{After: after, Oldest: true})
	for _, j := range jobs {
		if x, err := f.Explain(ctx, j.ID); err == nil && !j.State.Ended() {
			all = append(all, x)
		}
	}
	return all, next, err
}

// Recent lists an attempt that runs, and one that has ended.
func (f *fakeJobTracker) Recent(context.Context) (*core.Recent, error) {
	id := wire.JobID{Start: 7, N: 2}
	running := wire.AttemptStatus{Attempt: wire.AttemptID{Task: wire.TaskID{Job: id, Kind: wire.Map, N: 3}, N: 1000}, Tracker: "t1", State: wire.AttemptRunning}
	return &core.Recent{Jobs: []wire.JobAttempts{{Attempts: append([]wire.AttemptStatus{running}, f.attempts(id)[0])}}}, nil
}

// Jobs returns pages of one job. All were submitted at the same time.
func (f *fakeJobTracker) Jobs(_ context.Context, q core.Query) (page []wire.JobStatus, next wire.JobID, err error) {
	all := slices.Clone(f.jobs)
	if !q.Oldest {
		slices.Reverse(all)
	}
	i := 1 + slices.IndexFunc(all, func(j wire.JobStatus) bool { return j.ID == q.After })
	if i >= len(all) {
		return nil, next, nil
	}
	if q.Filter.Selects(&all[i], 1000, true) {
		page = all[i : i+1]
	}
	if i+1 < len(all) {
		next = all[i].ID
	}
	return page, next, nil
}

func (f *fakeJobTracker) Histories(ctx context.Context, q core.Query) (*history.Page, error) {
	if q.Filter.Flow.IsZero() {
		return history.ReadPage(ctx, files(), f.staging, history.Query{After: q.After, Select: func(r *history.Record) bool {
			job := r.Job
			job.Owner = r.Owner
			return q.Filter.Selects(&job, r.Submitted, true)
		}})
	}
	p, err := history.ReadFlow(ctx, files(), f.staging, q.Filter.Flow)
	if err == nil {
		slices.Reverse(p.Records)
	}
	return p, err
}
