package jobtracker

import (
	"context"
	"fmt"
	"slices"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// Submission returns what was submitted for a job. If all jobs of the submission have ended, it reads the
// history. It fails as History does, and with admission.ErrUnknownJob. End ctx as for History.
func (s *Server) Submission(ctx context.Context, caller core.Caller, job wire.JobID) (wire.JobSubmission, error) {
	var x wire.JobSubmission
	var open, known bool
	err := s.query(ctx, func() {
		x, open = s.core.Submission(job)
		_, _, known = s.core.Access(job)
	})
	switch {
	case err != nil: // do not return x: Run may still write it
		return wire.JobSubmission{}, err
	case open:
		return x, caller.CheckView(job, x.Owner, x.Access)
	}
	r, err := s.History(ctx, caller, job)
	if err != nil && !known {
		err = fmt.Errorf("%v: %w: %w", job, admission.ErrUnknownJob, err)
	}
	if err != nil {
		return wire.JobSubmission{}, err
	}
	return wire.JobSubmission{
		Job: job, Flow: r.Job.Flow, Owner: r.Owner, Access: r.Job.Access, At: r.Submitted,
		View: r.View, Modify: r.Modify, Plan: &r.Plan, Program: r.Program,
	}, nil
}

// ProgramBytes returns the size of a submission's program, if it is where clients upload programs. It follows no link
// out of the staging directory.
func (s *Server) ProgramBytes(x *wire.JobSubmission) (bytes int64, err error) {
	name := x.Program.Path
	day := dfs.Dir(name)
	uploads := []string{dfs.Join(s.cfg.Staging, wire.StagingPrograms), dfs.Join(wire.UserStaging(s.cfg.Staging, x.Owner), wire.StagingPrograms)}
	if x.Program.Hash == "" || dfs.Base(name) != x.Program.Hash || !slices.Contains(uploads, dfs.Dir(day)) {
		return 0, fmt.Errorf("size of the program of %v: %s is not an uploaded program", x.Job, name)
	}
	f, err := local.Confined(s.filesOf(x.Owner, name), s.cfg.Staging).Open(name)
	if err != nil {
		return 0, fmt.Errorf("size of the program of %v: %w", x.Job, err)
	}
	return f.Info().Size, f.Close()
}
