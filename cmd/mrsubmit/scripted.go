package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"sync"
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
	}
	return nil
}

// endScripted prints the error of a run, with -json also in a last line if it has none yet, and returns the exit code.
func (t *tool) endScripted(name string, set *flag.FlagSet, f *runFlags, err error) int {
	code := t.exitCode(name, set, err)
	if !f.scripted.json || t.ended || code == exitDone || code == exitUsage {
		return code
	}
	if printed := t.printLine(runLine{Final: true, Exit: code, Error: err.Error()}); printed != nil {
		return t.exitCode(name, set, printed)
	}
	return code
}

// runLine is a line of mrsubmit run -json.
type runLine struct {
	Final bool      `json:"final"`
	Exit  int       `json:"exit"`            // exit code of mrsubmit; only of the last line
	Flow  string    `json:"flow,omitempty"`  // id; empty: a single job
	Error string    `json:"error,omitempty"` // why nothing was submitted, jobs are no longer followed, or the program that drives them failed
	Jobs  []web.Job `json:"jobs"`            // as in the HTTP API; none if nothing was submitted
}

// lineEvery limits the lines about jobs that stay in their states.
const lineEvery = time.Second

// jobLines prints the lines about the jobs of one submission.
type jobLines struct {
	last    runLine
	printed time.Time
	print   func(runLine) error
}

// changed is [client.Config.Changed].
func (l *jobLines) changed(jobs []wire.JobStatus) {
	changed := len(jobs) != len(l.last.Jobs) || time.Since(l.printed) >= lineEvery
	for i := range jobs {
		changed = changed || jobs[i].State.String() != l.last.Jobs[i].State
	}
	l.last.Jobs = make([]web.Job, len(jobs))
	for i := range jobs {
		l.last.Jobs[i] = web.JobOf(&jobs[i])
	}
	if changed {
		l.printed = time.Now()
		_ = l.print(l.last) // the last line reports the error
	}
}

// runScripted runs a job and prints what scripts read.
func (t *tool) runScripted(ctx context.Context, s *scripted, cfg client.Config, sub *wire.Submission) error {
	cfg.Quiet, cfg.Detach = s.quiet || s.json || s.detach, s.detach
	if cfg.Quiet {
		cfg.Width = nil
	}
	lines := jobLines{print: t.printLine}
	last := &lines.last
	if s.json {
		failure := cfg.Failure
		cfg.Failure = func(err error) int {
			last.Error = err.Error()
			if failure != nil {
				return failure(err)
			}
			return exitFailed
		}
		cfg.Changed = lines.changed
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
		if err := t.printLine(*last); err != nil {
			return err
		}
	}
	return exitError(code)
}

// stepLines prints the lines about the steps of a program that drives jobs. Several may run at once.
type stepLines struct {
	*tool
	failure string // of the program

	mu   sync.Mutex
	last runLine
}

// failed is [client.Driven.Failed].
func (l *stepLines) failed(text string) { l.failure = text }

// ofStep returns [client.Config.Changed] of a step.
func (l *stepLines) ofStep() func([]wire.JobStatus) {
	lines := jobLines{print: func(line runLine) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.last = line
		return l.printLine(line)
	}}
	return lines.changed
}

// end prints the last line, with the jobs of the step that changed last, and returns what run returns.
func (l *stepLines) end(code int, err error) error {
	l.last.Final, l.last.Exit, l.last.Error = true, code, l.failure
	switch {
	case err != nil:
		l.last.Exit, l.last.Error = exitFailed, err.Error()
	case code != exitDone && l.failure == "":
		l.last.Error = fmt.Sprintf("the program ended with exit code %d", code)
	}
	return cmp.Or(l.printLine(l.last), programError(code, err))
}

func submittedText(ids []wire.JobID) string {
	if len(ids) > 1 {
		return wire.FlowID(ids[0]).String()
	}
	return ids[0].String()
}

// printLine prints a line of JSON.
func (t *tool) printLine(line runLine) error {
	if line.Final {
		t.ended = true
	}
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
