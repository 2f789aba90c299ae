package web

import (
	"net/http"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// rule says which users a route serves. A route that shows or changes jobs has a rule about them.
type rule string

const (
	everyUser   rule = "every user"                                                // shows nothing about single jobs but their number
	everyDaemon rule = "task trackers"                                             // see jobtracker/core/handshake
	submitters  rule = "users that the pool admits"                                // decided by the core
	listed      rule = "every user; only some fields of jobs that one may not see" // see listedJob
	skipped     rule = "every user; without jobs that one may not see"
	viewers     rule = "users who may see the job"
	watchers    rule = "with `job`: users who may see the jobs; else as the list"
	modifiers   rule = "users who may change the job" // decided by the core
	admins      rule = "administrators"
	ownVoter    rule = "administrators, and a job tracker for itself"
)

// checkView fails if the user of a request may not see the details of a job.
func (h *handler) checkView(r *http.Request, s *wire.JobStatus) error {
	return h.caller(r).CheckView(s.ID, s.Owner, s.Access)
}

// listedJob converts a job's status for a list. Other users than those who may see the job learn who
// uses the slots, and no more: names of jobs often have the text of a query.
func listedJob(caller core.Caller, s *wire.JobStatus) Job {
	job := JobOf(s)
	if caller.MayView(s.Owner, s.Access) {
		return job
	}
	return Job{
		ID: job.ID, Flow: job.Flow, Owner: job.Owner, State: job.State, Submitted: job.Submitted, ElapsedMillis: job.ElapsedMillis,
		Settings: Settings{Pool: job.Settings.Pool}, Hidden: true,
	}
}
