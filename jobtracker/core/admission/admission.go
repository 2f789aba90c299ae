// Package admission decides which requests of clients the job tracker accepts: submissions,
// changes of job settings, kills, and how slots are shared. It says why it refuses one.
//
//	Submit, Change, Kill  decide on a request about jobs, by the replicated state  requests.go
//	Killed                reports whether waiting kills can be answered
//	Caller                 is the user that asks, with its rights                   caller.go
//	Changed               makes the fact of a change of job settings               settings.go
//	Goal                  turns job settings into a scheduler's goal
//	CheckScheduling       refuses names that are not on the menu                   scheduling.go
//	LookUp                finds the scheduling in force
//
// Everything here is a function of values: of a request, of [facts.Facts], of who asks and of
// the time. Nothing is changed, sent or remembered.
//
// Invariants
//
//	D1  What is accepted is bounded, for the log, and every policy can compute with its job
//	    settings.
//	D2  If it is known who asks ([Caller.Known]), only the owner of a job and administrators
//	    may kill or change it. A pool that has a list of users takes only their jobs, and
//	    those that an administrator puts there.
//	D3  A submission's staging directory, which is removed in the end, is its own.
//	D4  A request that was accepted is accepted again from the same user or an administrator: a
//	    submission with a known key, a kill of a job that stops. The exception is a submission
//	    to an older build that checkNew refuses today.
//
// Package core calls it for each request, on the leader alone; it decides on drains itself,
// since it knows the trackers. Commands call CheckScheduling
// before they ask, and the HTTP interface has a code for each error. Facts do not depend on
// this package: an entry of the log applies whatever would be refused today.
package admission

import "errors"

var (
	// ErrUnknownJob answers requests about a job that is not known, or no longer.
	ErrUnknownJob = errors.New("unknown job")
	// ErrJobEnded answers a kill or a change of a job that has ended.
	ErrJobEnded = errors.New("the job has ended")
	// ErrJobCommitting answers a kill of a job that is moving its outputs into place.
	ErrJobCommitting = errors.New("the job's output is being moved into place")
	// ErrBadSubmission answers a submission that makes no sense.
	ErrBadSubmission = errors.New("bad submission")
	// ErrBadSettings answers job settings that make no sense, or name a pool that is not there.
	ErrBadSettings = errors.New("bad job settings")
	// ErrBadScheduling answers a scheduler, metric or delay rule that is not on the menu.
	ErrBadScheduling = errors.New("bad scheduling")
	// ErrNotAllowed answers a request that only other users may make.
	ErrNotAllowed = errors.New("not allowed")
)
