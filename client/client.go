// Package client hands a submission to a cluster and stays with it to the end:
// it checks inputs and outputs early, stages, submits, shows progress, prints
// counters or the failure, and kills the jobs on Ctrl-C. mapreduce.Main uses it
// with an embedded cluster and mrsubmit with either kind. [Plan] asks a job
// program what it wants to run.
//
// It schedules nothing and starts no cluster; what it checks, the job's setup
// attempt checks again, because files come and go.
//
// Invariants
//
//	C1  Everything is written to Config.Out, standard error in practice: standard
//	    output belongs to the program.
//	C2  Nothing is staged before all checks have passed, and what was staged is
//	    removed when the submission does not come about. After that, and when it is
//	    not known whether it has, the cluster removes it.
//	C3  [Run] returns 0 only when every job has succeeded, and [ExitHungUp] when the
//	    jobs go on without it.
//	C4  What is shown depends on the statuses and the times at which they came
//	    ([Display] is a function of both), never on the clock directly.
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

// Cluster is what a client needs of one.
type Cluster interface {
	// Submit gives each job of the submission's Plan an id, in the Plan's order.
	// It retries by itself where an answer was lost. After an error the jobs will
	// not run, unless it matches ErrUndecided or is ctx's own; submitting again
	// under the same key is then safe.
	Submit(ctx context.Context, sub wire.Submission) ([]wire.JobID, error)
	// Kill asks for a job's end. It is an error when the job can no longer be killed.
	Kill(ctx context.Context, job wire.JobID, reason string) error
	// Watch yields the statuses of all the named jobs, in their order, whenever
	// one has changed, and returns when all have ended. An error is its last.
	Watch(ctx context.Context, jobs []wire.JobID) iter.Seq2[[]wire.JobStatus, error]
}

// Config says where a submission goes and what is seen of it.
type Config struct {
	Cluster Cluster
	FS      dfs.FS
	Staging string           // URL below which the cluster keeps staging directories
	Out     io.Writer        // messages and progress
	Width   func() int       // columns of the terminal that Out is; nil: it is none
	Now     func() time.Time // nil: time.Now
	GiveUp  <-chan struct{}  // closed by the user's second interrupt; nil: there is none
	HangUp  <-chan struct{}  // closed when the terminal has gone: the jobs go on without this process; nil: they need it
	Notes   <-chan string    // what the cluster's client has to say meanwhile; nil: nothing

	Program string    // path of the executable to upload; empty: the submission names it
	Today   time.Time // the cluster's clock, for the upload
}

// tick is how often the display is told of the time while nothing changes.
const tick = time.Second

// ErrUndecided reports that a submission may have been taken.
var ErrUndecided = errors.New("it is not known whether the job was submitted")

// ExitHungUp is the exit code of a client whose terminal has gone while its jobs go on:
// what a shell has for a process that SIGHUP ended.
const ExitHungUp = 128 + int(syscall.SIGHUP)

var (
	errGaveUp  = errors.New("gave up waiting")
	errHungUp  = errors.New("got signal hangup")
	errStopped = errors.New("stopped waiting")
)

// Run takes a submission through its life and returns the process's exit code.
// It fills in Key and Staging and puts paths into their cleaned form. When ctx is
// cancelled the jobs are killed; Run still waits for their end, until GiveUp.
func Run(ctx context.Context, cfg Config, sub *wire.Submission) int {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &session{Config: cfg, sub: sub, kills: true}
	return s.exitCode(s.run(ctx))
}

// Follow shows jobs that were submitted before until all have ended, and returns
// the process's exit code as Run does. When ctx ends it stops; the jobs go on.
func Follow(ctx context.Context, cfg Config, jobs []wire.JobID) int {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &session{Config: cfg, sub: new(wire.Submission), ids: jobs}
	s.display = NewDisplay(s.Out, s.Width, nil, s.Now())
	return s.exitCode(s.follow(ctx))
}

func (s *session) exitCode(err error) int {
	if errors.Is(err, errHungUp) {
		fmt.Fprintln(s.Out, err)
		return ExitHungUp
	}
	if err != nil {
		fmt.Fprintf(s.Out, "error: %v\n", err)
		return 1
	}
	i := slices.IndexFunc(s.jobs, func(j wire.JobStatus) bool { return j.State != wire.Succeeded && j.With.IsZero() })
	if i < 0 {
		i = slices.IndexFunc(s.jobs, func(j wire.JobStatus) bool { return j.State != wire.Succeeded })
	}
	if i < 0 {
		return 0
	}
	s.flowFailed(&s.jobs[i])
	return 1
}

// flowFailed says in the end which job of a flow has not succeeded by itself: others
// may have been reported since.
func (s *session) flowFailed(first *wire.JobStatus) {
	flow := "flow " + OneLine(s.sub.Plan.Flow)
	if s.sub.Plan.Flow == "" { // it was submitted by others
		flow = first.Flow.String()
	}
	switch {
	case len(s.jobs) < 2 || s.sub.Plan.Flow == "" && first.Flow.IsZero():
	case !first.With.IsZero(): // it had ended before these were looked at
		fmt.Fprintf(s.Out, "%s %v: with %v\n", flow, first.State, first.With)
	default:
		fmt.Fprintf(s.Out, "%s %v: %v %s %v\n", flow, first.State, first.ID, OneLine(first.Name), first.State)
	}
}

type session struct {
	Config
	sub     *wire.Submission
	kills   bool // the jobs are killed when the user interrupts
	ids     []wire.JobID
	jobs    []wire.JobStatus // the last that Watch has told
	display *Display
}

func (s *session) run(ctx context.Context) error {
	if err := s.sub.Bound(); err != nil {
		return err
	}
	if err := Prepare(ctx, s.FS, &s.sub.Plan); err != nil {
		return err
	}
	if s.Program != "" {
		if err := Upload(s.FS, s.Staging, s.Today, s.Program, &s.sub.Program); err != nil {
			return err
		}
	}
	if err := Stage(s.FS, s.Staging, s.sub); err != nil {
		return err
	}
	if err := s.submit(ctx); err != nil {
		return err
	}
	outputs := make(map[wire.JobID]string, len(s.ids))
	for i, id := range s.ids[:min(len(s.ids), len(s.sub.Plan.Jobs))] {
		outputs[id] = s.sub.Plan.Jobs[i].Output
	}
	s.display = NewDisplay(s.Out, s.Width, outputs, s.Now())
	if len(s.ids) > 1 {
		s.display.Note(fmt.Sprintf("%v %s submitted, of %d jobs", wire.FlowID(s.ids[0]), OneLine(s.sub.Plan.Flow), len(s.ids)))
	}
	return s.follow(ctx)
}

// settleWait is how long an interrupted client asks whether it had submitted.
const settleWait = 5 * time.Second

// submit hands the staged submission in. When the user interrupts it meanwhile,
// it asks again: a submission that was taken has to be killed, not forgotten.
func (s *session) submit(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		s.ids, err = s.Cluster.Submit(ctx, *s.sub)
		if err != nil && ctx.Err() != nil && (errors.Is(err, ErrUndecided) || errors.Is(err, ctx.Err())) {
			s.ids, err = s.settle(ctx)
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

// settle asks once more, under the same key, for a short time.
func (s *session) settle(interrupted context.Context) ([]wire.JobID, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(interrupted), settleWait)
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
	// Killed jobs end in their own time: ctx's end is not the end of watching.
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
				return fmt.Errorf("%w; when last seen, %s", u.err, s.alive())
			}
			s.jobs = u.jobs
			s.display.Update(s.Now(), s.jobs)
		case <-redraw.C:
			s.display.Update(s.Now(), s.jobs)
		case line := <-s.Notes:
			s.display.Note(line)
		case <-interrupted:
			if !s.kills {
				s.display.Close()
				return fmt.Errorf("%w (%w): %s", errStopped, context.Cause(ctx), s.alive())
			}
			interrupted, hungUp = nil, nil // from now on the jobs are to end
			s.display.Note("interrupted: killing what runs; interrupt again to give up at once")
			go s.kill(watching, s.jobs, refused)
		case err := <-refused:
			s.display.Note(fmt.Sprintf("not killed: %v", err))
		case <-s.GiveUp:
			s.display.Close()
			return fmt.Errorf("%w: %s", errGaveUp, s.alive())
		case <-hungUp:
			s.display.Close()
			return fmt.Errorf("%w: the jobs go on; to see them again: mrsubmit wait %s", errHungUp, s.names())
		}
	}
}

// watch carries Watch's statuses over a channel, which is closed after the last.
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

// kill asks for the end of every job that is not known to have ended.
func (s *session) kill(ctx context.Context, known []wire.JobStatus, refused chan<- error) {
	for _, id := range s.ids {
		if slices.ContainsFunc(known, func(j wire.JobStatus) bool { return j.ID == id && j.State.Ended() }) {
			continue
		}
		if err := s.Cluster.Kill(ctx, id, "interrupted by its user"); err != nil && ctx.Err() == nil {
			refused <- err
		}
	}
}

func (s *session) ended() error {
	s.display.Close()
	for _, job := range s.jobs {
		if !job.State.Ended() {
			return fmt.Errorf("the cluster stopped telling about %v, which is %v", job.ID, job.State)
		}
	}
	if len(s.jobs) == 0 {
		return errors.New("the cluster told nothing about the jobs")
	}
	return nil
}

// alive says what giving up leaves behind.
func (s *session) alive() string {
	left := ""
	for _, job := range s.jobs {
		if !job.State.Ended() {
			left += fmt.Sprintf(" %v is %v", job.ID, job.State)
		}
	}
	if left == "" {
		return "nothing is known of the jobs"
	}
	return left[1:]
}

// names are the jobs as commands take them: those of one submission by their flow.
func (s *session) names() string {
	if len(s.ids) > 1 && s.sub.Key != "" {
		return wire.FlowID(s.ids[0]).String()
	}
	names := make([]string, 0, len(s.ids))
	for _, id := range s.ids {
		names = append(names, id.String())
	}
	return strings.Join(names, " ")
}

// Terminal gives the function that asks f for its width, nil when f is no
// terminal that can redraw lines.
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

// Signals are those of a user's signals that do not end the context.
type Signals struct {
	GiveUp <-chan struct{} // closed by the second SIGINT or SIGTERM
	HangUp <-chan struct{} // closed by SIGHUP
}

// Interrupts turns SIGINT and SIGTERM into an end of the context: the first one
// cancels it, the second one closes GiveUp, and the third one does what it does by
// default: end the process. SIGHUP closes HangUp and does nothing else. A signal
// that the parent process had ignored stays ignored. Call stop when done.
func Interrupts(parent context.Context) (ctx context.Context, asked Signals, stop func()) {
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
	// A reader of our messages that has gone, as in "… |& head", must not end the
	// job half-way: with somebody listening for the signal the write just fails.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	second, hungUp, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		interrupts, hung := 0, false
		for {
			select {
			case sig := <-signals:
				cancel(fmt.Errorf("got signal %v", sig))
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
		signal.Stop(broken)
		close(done)
		cancel(context.Canceled)
	}
}
