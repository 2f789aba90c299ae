package web

import (
	"context"
	"errors"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

func (f *fake) Submission(_ context.Context, caller core.Caller, id wire.JobID) (wire.JobSubmission, error) {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	s, err := f.status(id)
	if err != nil {
		return wire.JobSubmission{}, err
	}
	return wire.JobSubmission{
		Job: id, Owner: s.Owner, At: fakeSubmitted, View: "bob", FlowName: "all",
		Plan: &wire.JobPlan{
			Inputs: []wire.InputPlan{{Format: "lines", Paths: []string{"mem://in"}}, {Format: "binary", From: 1}}, Format: "text", Output: "mem://out",
			Properties: map[string]string{"a": "1", "db.password": "hunter2", "key": "mine", wire.RedactedProperties: "key, b"},
		},
		Program: &wire.Program{Hash: "abc", Flags: map[string]string{"api-token": "hunter3", "n": "5"}},
	}, caller.CheckView(id, s.Owner, s.Access)
}

func (f *fake) ProgramBytes(x *wire.JobSubmission) (int64, error) {
	if x.Job.N > 1 {
		return 0, errors.New("it was removed")
	}
	return 4096, nil
}
