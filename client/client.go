// Package client submits jobs to a cluster and follows them until they end. It checks inputs and
// outputs, stages the submission, submits it, and shows progress. At the end it prints counters or
// the failure. On Ctrl-C it kills the jobs. mapreduce.Main uses it with an embedded cluster,
// mrsubmit also with a remote cluster. [Plan] runs a job program to get its plan.
//
// The job's setup attempt repeats the checks, because files may change meanwhile.
//
// Invariants
//
//	C1  All output goes to Config.Out, which is standard error: standard output belongs to
//	    the program.
//	C2  The client stages only after all checks have passed. If the submission fails, it
//	    removes the staged files. After a submission, or when its result is not known, the
//	    cluster removes them.
//	C3  [Run] returns 0 only if every job has succeeded, and [ExitHungUp] if the jobs go on
//	    without it.
//	C4  The display is a function of the statuses and their times ([Display]); it does not
//	    read the clock.
package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
	"golang.org/x/term"
)

// Cluster has the methods of a cluster that a client needs.
type Cluster interface {
	// Submit returns the ids of the Plan's jobs, in the same order. It retries after a lost answer.
	// After an error the jobs will not run, except after ErrUndecided or the error of ctx: then
	// they may run, and it is safe to submit again with the same key. An error with a method
	// RetryAfter() (time.Duration, bool) may mean that the cluster accepts no submission for now.
	Submit(ctx context.Context, sub wire.Submission) ([]wire.JobID, error)
	// Find returns the ids of the jobs that were submitted with a key, or none if the cluster does not know the key.
	Find(ctx context.Context, key string) ([]wire.JobID, error)
	// Kill kills a job. It fails if the job can no longer be killed.
	Kill(ctx context.Context, job wire.JobID, reason string) error
	// Watch yields the statuses of the jobs, in the order of jobs, after each change. It returns
	// when all jobs have ended, or after an error.
	Watch(ctx context.Context, jobs []wire.JobID) iter.Seq2[[]wire.JobStatus, error]
}

// Config has the target of a submission, and its output.
type Config struct {
	Cluster Cluster
	FS      dfs.FS
	Staging string                 // URL below which the cluster keeps staging directories
	Out     io.Writer              // messages and progress
	Width   func() int             // columns of the terminal; nil: Out is not a terminal
	Now     func() time.Time       // nil: time.Now
	GiveUp  <-chan struct{}        // closed by the user's second interrupt; may be nil
	HangUp  <-chan struct{}        // closed when the terminal is closed; nil: ignore it, because the jobs need this process
	Changed func([]wire.JobStatus) // called with the statuses of the jobs after each change; may be nil
	Notes   <-chan string          // messages to show from the implementation of Cluster; may be nil

	Brief   bool            // print one line about a job that succeeds, without its counters, and the first line of an error
	Quiet   bool            // print only errors, and reports of jobs that do not succeed
	Silent  bool            // with Quiet: print no reports at all, because Changed does
	Detach  bool            // return when the jobs are submitted
	NoWait  bool            // fail if the cluster accepts no submission for now; otherwise wait until it does
	Failure func(error) int // exit code for an error other than the failure of a job; nil: 1
	Program string          // executable to upload; empty: the submission has its path
	Today   time.Time       // day for the upload, from the cluster's clock
}

// tick is how often the display is updated while no status changes.
const tick = time.Second

// ErrUndecided reports that the cluster may have accepted a submission.
var ErrUndecided = errors.New("it is not known whether the job was submitted")

// ExitHungUp is the exit code if the terminal was closed and the jobs continue. Shells use it for a
// process that SIGHUP has ended.
const ExitHungUp = 128 + int(syscall.SIGHUP)

var (
	errGaveUp  = errors.New("gave up waiting")
	errHungUp  = errors.New("got signal hangup")
	errSignal  = errors.New("got signal") // the cause of a context of Interrupts: with the signal's name
	errStopped = errors.New("stopped waiting")
)

// Run submits jobs, follows them until they end, and returns the exit code for the process. It sets
// the submission's Key and Staging, and cleans paths. If ctx is cancelled, it kills the jobs, and
// waits for their ends until GiveUp is closed.
func Run(ctx context.Context, cfg Config, sub *wire.Submission) int {
	code, _ := RunJobs(ctx, cfg, sub)
	return code
}

// RunJobs is Run for callers that also need the ids of the jobs. There are none if they were not submitted.
func RunJobs(ctx context.Context, cfg Config, sub *wire.Submission) (code int, jobs []wire.JobID) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &session{Config: cfg, sub: sub, killOnInterrupt: true}
	err := s.run(ctx)
	if err == nil && s.Detach {
		return 0, s.ids
	}
	return s.exitCode(err), s.ids
}

// Do is [Run] for a program that goes on afterwards. It returns the ended jobs, in the order of the plan.
// An error means that the jobs were not submitted, or that they may still run. With Detach only their ids are known.
func Do(ctx context.Context, cfg Config, sub *wire.Submission) ([]wire.EndedJob, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &session{Config: cfg, sub: sub, killOnInterrupt: true}
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	if s.Detach {
		submitted := make([]wire.EndedJob, len(s.ids))
		for i, id := range s.ids {
			submitted[i].ID = id
		}
		return submitted, nil
	}
	return s.endedJobs(), nil
}

func (s *session) endedJobs() []wire.EndedJob {
	ended := make([]wire.EndedJob, len(s.jobs))
	for i := range s.jobs {
		job := &s.jobs[i]
		ended[i] = wire.EndedJob{ID: job.ID, State: job.State, Counters: job.Counters, Error: job.Error}
	}
	return ended
}

// Follow shows submitted jobs until all have ended, and returns an exit code as Run does. It stops
// when ctx ends; the jobs continue.
func Follow(ctx context.Context, cfg Config, jobs []wire.JobID) int {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &session{Config: cfg, sub: new(wire.Submission), ids: jobs}
	s.show(nil)
	return s.exitCode(s.follow(ctx))
}

// show makes the display. outputs has the URLs to print when jobs succeed.
func (s *session) show(outputs map[wire.JobID]string) {
	s.display = NewDisplay(s.Out, s.Width, outputs, s.Now())
	s.display.brief, s.display.quiet, s.display.silent = s.Brief, s.Quiet, s.Silent
}

func (s *session) exitCode(err error) int {
	if errors.Is(err, errHungUp) {
		fmt.Fprintln(s.Out, err)
		return ExitHungUp
	}
	if err != nil {
		fmt.Fprintf(s.Out, "error: %v\n", err)
		if s.Failure != nil {
			return s.Failure(err)
		}
		return 1
	}
	i := slices.IndexFunc(s.jobs, func(j wire.JobStatus) bool { return j.State != wire.Succeeded && j.StoppedBy.IsZero() })
	if i < 0 {
		i = slices.IndexFunc(s.jobs, func(j wire.JobStatus) bool { return j.State != wire.Succeeded })
	}
	if i < 0 {
		return 0
	}
	s.flowFailed(&s.jobs[i])
	return 1
}

// flowFailed prints which job stopped a flow, since reports of other jobs may follow.
func (s *session) flowFailed(failed *wire.JobStatus) {
	flow := "flow " + OneLine(s.sub.Plan.Flow)
	if s.sub.Plan.Flow == "" { // another process submitted it
		flow = failed.Flow.String()
	}
	switch {
	case len(s.jobs) < 2 || s.sub.Plan.Flow == "" && failed.Flow.IsZero():
	case !failed.StoppedBy.IsZero(): // we do not follow the job that stopped the flow
		fmt.Fprintf(s.Out, "%s %v: with %v\n", flow, failed.State, failed.StoppedBy)
	default:
		fmt.Fprintf(s.Out, "%s %v: %v %s %v\n", flow, failed.State, failed.ID, OneLine(failed.Name), failed.State)
	}
}

type session struct {
	Config
	sub             *wire.Submission
	killOnInterrupt bool // an interrupt kills the jobs
	ids             []wire.JobID
	jobs            []wire.JobStatus // latest statuses from Watch
	display         *Display
}

func (s *session) run(ctx context.Context) error {
	if err := s.sub.CheckLimits(); err != nil {
		return err
	}
	if err := Prepare(ctx, s.FS, &s.sub.Plan); err != nil {
		return err
	}
	if s.Program != "" && s.sub.Program.Hash == "" { // otherwise it was uploaded for an earlier submission
		if err := Upload(s.FS, s.Staging, s.Today, s.Program, &s.sub.Program); err != nil {
			return err
		}
	}
	if err := Stage(s.FS, s.Staging, s.sub); err != nil {
		return err
	}
	if err := s.submit(ctx); err != nil || s.Detach {
		return err
	}
	s.showSubmitted()
	return s.follow(ctx)
}

func (s *session) showSubmitted() {
	outputs := make(map[wire.JobID]string, len(s.ids))
	for i, id := range s.ids[:min(len(s.ids), len(s.sub.Plan.Jobs))] {
		if step := s.sub.Program.Step; step == nil || step.Result != s.sub.Plan.Jobs[i].Output { // not in a driver's session
			outputs[id] = s.sub.Plan.Jobs[i].Output
		}
	}
	s.show(outputs)
	if len(s.ids) > 1 && !s.Quiet {
		s.display.Note(fmt.Sprintf("%v %s submitted, of %d jobs", wire.FlowID(s.ids[0]), OneLine(s.sub.Plan.Flow), len(s.ids)))
	}
}

// submitAgainWait limits how long an interrupted client waits for the ids of its jobs.
const submitAgainWait = 5 * time.Second

// submit sends the staged submission. If an interrupt came before the answer, it submits again to
// learn the ids: accepted jobs must be killed.
func (s *session) submit(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		err = s.submitOrWait(ctx)
		if err != nil && ctx.Err() != nil && (errors.Is(err, ErrUndecided) || errors.Is(err, ctx.Err())) {
			s.ids, err = s.submitAgain(ctx)
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUndecided):
		return fmt.Errorf("%w; if it was, it runs under the key %s", err, s.sub.Key)
	case ctx.Err() != nil:
		err = fmt.Errorf("interrupted before the job was submitted: %w", context.Cause(ctx))
	}
	return errors.Join(err, s.FS.RemoveAll(s.sub.Staging))
}

// submitAgain submits with the same key, and waits up to submitAgainWait for the ids.
func (s *session) submitAgain(interrupted context.Context) ([]wire.JobID, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(interrupted), submitAgainWait)
	defer cancel()
	if s.GiveUp != nil {
		go func() {
			select {
			case <-s.GiveUp:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	ids, err := s.Cluster.Submit(ctx, *s.sub)
	if err != nil {
		return nil, fmt.Errorf("interrupted (%w): %w: %w", context.Cause(interrupted), ErrUndecided, err)
	}
	return ids, nil
}

type update struct {
	jobs []wire.JobStatus
	err  error
}

// follow shows the jobs until all have ended.
func (s *session) follow(ctx context.Context) error {
	// Killed jobs take time to end, so the watch continues after ctx has ended.
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	updates := s.watch(watching)
	redraw := time.NewTicker(tick)
	defer redraw.Stop()
	interrupted, hungUp, refused := ctx.Done(), s.HangUp, make(chan error, len(s.ids))
	for {
		select {
		case u, ok := <-updates:
			switch {
			case !ok:
				return s.ended()
			case u.err != nil:
				s.display.Close()
				return fmt.Errorf("%w; when last seen, %s", u.err, s.runningText())
			}
			s.jobs = u.jobs
			if s.Changed != nil {
				s.Changed(s.jobs)
			}
			s.display.Update(s.Now(), s.jobs)
		case <-redraw.C:
			s.display.Update(s.Now(), s.jobs)
		case line := <-s.Notes:
			s.display.Note(line)
		case <-interrupted:
			if !s.killOnInterrupt {
				s.display.Close()
				return fmt.Errorf("%w (%w): %s", errStopped, context.Cause(ctx), s.runningText())
			}
			interrupted, hungUp = nil, nil // wait for the killed jobs
			note, reason := killTexts(context.Cause(ctx))
			s.display.Note(note)
			go s.kill(watching, s.jobs, reason, refused)
		case err := <-refused:
			s.display.Note(fmt.Sprintf("not killed: %v", err))
		case <-s.GiveUp:
			s.display.Close()
			return fmt.Errorf("%w: %s", errGaveUp, s.runningText())
		case <-hungUp:
			s.display.Close()
			return fmt.Errorf("%w: the jobs go on; to see them again: mrsubmit wait %s", errHungUp, s.jobArguments())
		}
	}
}

// watch sends the statuses of Watch to a channel, and closes it after the last.
func (s *session) watch(ctx context.Context) <-chan update {
	updates := make(chan update)
	go func() {
		defer close(updates)
		for jobs, err := range s.Cluster.Watch(ctx, s.ids) {
			select {
			case updates <- update{jobs, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return updates
}

// killTexts returns the note to the user, and the reason for the jobs, of a client that kills them. A program that
// drives jobs may have ended the context itself.
func killTexts(cause error) (note, reason string) {
	if errors.Is(cause, errSignal) {
		return "interrupted: killing the jobs; interrupt again to stop waiting", "interrupted by its user"
	}
	return fmt.Sprintf("killing the jobs: %v", cause), fmt.Sprintf("killed by its client: %v", cause)
}

// kill kills every job that is not known to have ended.
func (s *session) kill(ctx context.Context, known []wire.JobStatus, reason string, refused chan<- error) {
	for _, id := range s.ids {
		if slices.ContainsFunc(known, func(j wire.JobStatus) bool { return j.ID == id && j.State.Ended() }) {
			continue
		}
		if err := s.Cluster.Kill(ctx, id, reason); err != nil && ctx.Err() == nil {
			refused <- err
		}
	}
}

func (s *session) ended() error {
	s.display.Close()
	for _, job := range s.jobs {
		if !job.State.Ended() {
			return fmt.Errorf("the cluster stopped reporting %v, which is %v", job.ID, job.State)
		}
	}
	if len(s.jobs) == 0 {
		return errors.New("the cluster reported no jobs")
	}
	return nil
}

// runningText describes the jobs that have not ended.
func (s *session) runningText() string {
	states := ""
	for _, job := range s.jobs {
		if !job.State.Ended() {
			states += fmt.Sprintf(" %v is %v", job.ID, job.State)
		}
	}
	if states == "" {
		return "the state of the jobs is not known"
	}
	return states[1:]
}

// jobArguments lists the jobs as arguments for mrsubmit. Several jobs of one submission are a flow.
func (s *session) jobArguments() string {
	if len(s.ids) > 1 && s.sub.Key != "" {
		return wire.FlowID(s.ids[0]).String()
	}
	names := make([]string, 0, len(s.ids))
	for _, id := range s.ids {
		names = append(names, id.String())
	}
	return strings.Join(names, " ")
}

// Terminal returns a function that reads the width of f, or nil if f cannot redraw lines.
func Terminal(f *os.File) func() int {
	if !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil || width < 1 {
			return 80
		}
		return width
	}
}

// Signals has the signals of [Interrupts] that do not end the context.
type Signals struct {
	GiveUp <-chan struct{} // closed by the second SIGINT or SIGTERM
	HangUp <-chan struct{} // closed by SIGHUP
}

// Interrupts handles SIGINT and SIGTERM: the first one cancels the context, the second one
// closes GiveUp, and the third one ends the process. SIGHUP only closes HangUp. A signal that
// the parent process has ignored stays ignored. Call stop when done.
func Interrupts(parent context.Context) (ctx context.Context, other Signals, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals, hangups := make(chan os.Signal, 2), make(chan os.Signal, 1)
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(sig) {
			signal.Notify(signals, sig)
		}
	}
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(hangups, syscall.SIGHUP)
	}
	// If the reader of our messages ends, as in "… |& head", the job must continue. While SIGPIPE
	// is caught, the write only fails.
	brokenPipes := make(chan os.Signal, 1)
	signal.Notify(brokenPipes, syscall.SIGPIPE)
	second, hungUp, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		interrupts, hung := 0, false
		for {
			select {
			case sig := <-signals:
				cancel(fmt.Errorf("%w %v", errSignal, sig))
				if interrupts++; interrupts == 2 {
					close(second)
					signal.Stop(signals)
				}
			case <-hangups:
				if !hung {
					close(hungUp)
				}
				hung = true
			case <-done:
				return
			}
		}
	}()
	return ctx, Signals{GiveUp: second, HangUp: hungUp}, func() {
		signal.Stop(signals)
		signal.Stop(hangups)
		signal.Stop(brokenPipes)
		close(done)
		cancel(context.Canceled)
	}
}
