package core

import "github.com/quernmr/quern/wire"

// Submission returns what was submitted for a job. ok is false if the core does not keep it any more: all jobs
// of the submission have ended. Any goroutine may read it.
func (c *Core) Submission(id wire.JobID) (s wire.JobSubmission, ok bool) {
	f := c.facts.Find(id)
	if f == nil || !f.Submission().Open() {
		return s, false
	}
	body := f.Submission().Body()
	return wire.JobSubmission{
		Job: id, Flow: c.flowOf(f), FlowName: body.Plan.Flow, Owner: f.Submission().Owner(), Access: c.access(f), At: f.Submission().At(),
		View: f.Submission().View(), Modify: f.Submission().Modify(), Plan: f.Plan(), Program: &body.Program,
	}, true
}
