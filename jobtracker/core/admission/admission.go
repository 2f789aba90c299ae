// Package admission decides whether the job tracker accepts a client's request: a submission, a
// change of job settings, a kill, or a change of the scheduling. Refusals give a reason.
//
//	Submit, Change, Kill  decide on a request about jobs                     requests.go
//	KillResult            reports whether waiting kills can be answered
//	Caller                is the user that makes the request                 caller.go
//	AccessOf, CheckView   say who may see a job, and check it                access.go
//	ChangeFact            makes the fact of a change of job settings         settings.go
//	Goal                  turns job settings into a scheduler's goal
//	CheckScheduling       refuses unknown schedulers, metrics, delay rules   scheduling.go
//	LookUp                finds the scheduling in force
//
// All functions depend only on their arguments: the request, [facts.Facts], the caller with the groups
// of users, and the time. They change nothing.
//
// Invariants
//
//	D1  Accepted requests are bounded, for the log. Every policy can compute with accepted
//	    settings.
//	D2  If the caller is known ([Caller.Known]), only the job's owner, administrators of
//	    its pool and administrators of the cluster may see, kill or change a job, and users in
//	    the job's ACLs for it. A pool with a list of users takes only their jobs, and jobs that
//	    an administrator puts there.
//	D3  No two submissions share a staging directory: the job tracker removes it in the end.
//	D4  A repeated request is accepted again from the same user or an administrator: a
//	    submission with a known key, a kill of a job that stops.
//
// Package core calls it on the leader alone. It decides on drains itself, since it knows the
// trackers. Commands call CheckScheduling before they send a request. The HTTP interface has a
// status code for each error. Facts do not depend on this package: an entry of the log applies
// even if its request would be refused now.
package admission

import "errors"

var (
	// ErrUnknownJob answers requests about a job that never existed or is no longer kept.
	ErrUnknownJob = errors.New("unknown job")
	// ErrJobEnded answers a kill or a change of a job that has ended.
	ErrJobEnded = errors.New("the job has ended")
	// ErrAttemptEnded answers a request to end an attempt that does not run.
	ErrAttemptEnded = errors.New("the attempt does not run")
	// ErrAttemptCommitting answers a request to end an attempt that may commit its output.
	ErrAttemptCommitting = errors.New("the attempt is committing its output")
	// ErrNotTask answers a request to end an attempt that is not of a map or reduce.
	ErrNotTask = errors.New("it is not an attempt of a map or reduce: kill the job instead")
	// ErrJobCommitting answers a kill of a job that moves its output into place.
	ErrJobCommitting = errors.New("the job's output is being moved into place")
	// ErrBadSubmission answers an invalid submission.
	ErrBadSubmission = errors.New("bad submission")
	// ErrBadSettings answers job settings that are invalid, or name an unknown pool.
	ErrBadSettings = errors.New("bad job settings")
	// ErrBadScheduling answers an unknown scheduler, metric or delay rule.
	ErrBadScheduling = errors.New("bad scheduling")
	// ErrNotAllowed answers a request that the caller may not make.
	ErrNotAllowed = errors.New("not allowed")
)
