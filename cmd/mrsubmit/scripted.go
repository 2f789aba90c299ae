package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// scripted has the flags of mrsubmit run for scripts.
type scripted struct {
	detach, json, quiet bool
}

func (s *scripted) declare(set *flag.FlagSet) {
	set.BoolVar(&s.detach, "detach", false, "print the id of the job, or of the flow, when it is submitted, and end; it needs a job tracker")
	set.BoolVar(&s.json, "json", false, "print progress as lines of JSON, and at last an object with \"final\": true")
	set.BoolVar(&s.quiet, "quiet", false, "print only errors")
}

// check refuses flags that cannot be obeyed.
func (s *scripted) check(sub *wire.Submission, onCluster bool) error {
	drives := len(sub.Program.Drives) > 0
	switch {
	case s.detach && drives:
		return usagef("-detach: the program drives jobs: it decides here what runs next, so it must not end; let the shell run mrsubmit in the background instead")
	case s.detach && !onCluster:
		return usagef("-detach: without a job tracker the job runs in this process")
	case s.json && drives:
		return usagef("-json: the program drives jobs, and its own output is on standard output")
	}
	return nil
}

// runLine is a line of mrsubmit run -json.
type runLine struct {
	Final bool      `json:"final"`
	Exit  int       `json:"exit"`            // exit code of mrsubmit; only of the last line
	Flow  string    `json:"flow,omitempty"`  // id; empty: a single job
	Error string    `json:"error,omitempty"` // why nothing was submitted, or jobs are no longer followed; jobs have their own
	Jobs  []web.Job `json:"jobs"`            // as in the HTTP API; none if nothing was submitted
}

// lineEvery limits the lines about jobs that stay in their states.
const lineEvery = time.Second

// runScripted runs a job and prints what scripts read.
func (t *tool) runScripted(ctx context.Context, s *scripted, cfg client.Config, sub *wire.Submission) error {
	cfg.Quiet, cfg.Detach = s.quiet || s.json || s.detach, s.detach
	if cfg.Quiet {
		cfg.Width = nil
	}
	var last runLine
	var printed time.Time
	if s.json {
		failure := cfg.Failure
		cfg.Failure = func(err error) int {
			last.Error = err.Error()
			if failure != nil {
				return failure(err)
			}
			return exitFailed
		}
		cfg.Changed = func(jobs []wire.JobStatus) {
			changed := len(jobs) != len(last.Jobs) || time.Since(printed) >= lineEvery
			for i := range jobs {
				changed = changed || jobs[i].State.String() != last.Jobs[i].State
			}
			last.Jobs = make([]web.Job, len(jobs))
			for i := range jobs {
				last.Jobs[i] = web.JobOf(&jobs[i])
			}
			if changed {
				printed = time.Now()
				_ = t.printLine(last) // the last line reports the error
			}
		}
	}
	code, ids := client.RunJobs(ctx, cfg, sub)
	if s.detach && code == exitDone && !s.json {
		if _, err := fmt.Fprintln(t.stdout, submittedText(ids)); err != nil {
			return err
		}
	}
	if s.json {
		last.Final, last.Exit = true, code
		if len(ids) > 1 {
			last.Flow = wire.FlowID(ids[0]).String()
		}
		for i := range ids {
			if s.detach {
				last.Jobs = append(last.Jobs, web.Job{ID: ids[i].String(), Name: sub.Plan.Jobs[i].Name})
			}
		}
		if err := t.printLine(last); err != nil {
			return err
		}
	}
	return exitError(code)
}

func submittedText(ids []wire.JobID) string {
	if len(ids) > 1 {
		return wire.FlowID(ids[0]).String()
	}
	return ids[0].String()
}

// printLine prints a line of JSON.
func (t *tool) printLine(line runLine) error {
	if line.Jobs == nil {
		line.Jobs = []web.Job{}
	}
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("print: %w", err)
	}
	_, err = fmt.Fprintf(t.stdout, "%s\n", text)
	return err
}
