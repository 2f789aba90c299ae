// Package driver runs the steps of a program that drives jobs. A step is one job: a definition with
// parameters. Package mapreduce has the typed side; a [Cluster] runs the jobs.
//
// # Sessions
//
// Results of steps that name no output belong to a session, a directory:
//
//	<sessions>/<name>/
//	    program            hash of the program that made the session
//	    running/           exists while a driver uses the session; see lease.go
//	    <key>-<n>          record of a step that has succeeded: JSON
//	    <key>-<n>.begun    the submission of a step that was begun: JSON
//	    results/<random>/  its result: part files as the job committed them
//	    <key>-<n>.dropped  the driver has dropped the result without reading it: its directory is being removed
//
// The key is a hash of the definition, the parameters and [Config.Keyed]; n counts the steps with this key, from 0. So the
// keys do not depend on the order of steps that run at once. A driver that starts again with the same session gets the
// recorded results of the steps that had ended. If the jobs of a step go on in the cluster, it waits for them. Any other
// step without a record runs again, into another directory.
//
// Jobs write only in results/, which may belong to another user than the driver: to the account of the owner of the jobs.
// They could replace anything there by a symbolic link, so the driver writes nothing below it, removes only whole
// directories directly in it, and reads it by [Driver.Files].
//
// # Invariants
//
//	D1  A record exists only if its job has succeeded. Records are written once and completely.
//	D2  Only the program that made a session uses it, and only one process at a time.
//	    A process that has lost it to another one, as after a long pause, fails and leaves it as it is.
//	D3  A session without a name is removed when the driver ends, a named one when the driver
//	    succeeds. What a crash leaves expires: see Lease.
//
// A Driver is safe for concurrent use.
package driver

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/wire"
)

// Cluster runs the jobs of steps.
type Cluster interface {
	// Sessions returns what the URL of the session has before its name. It is called before Run, once.
	Sessions(first *wire.Submission) (string, error)
	// Run runs a submission until its jobs have ended. When ctx ends, it kills the jobs.
	Run(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error)
	// Find is like Run for a submission of an earlier process with the same key. If the cluster does not know it, Find
	// returns no jobs, and has removed what they left of their outputs.
	Find(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error)
}

// Config says where a driver's steps run.
type Config struct {
	Cluster Cluster
	FS      dfs.FS
	Session string                 // name; empty: a temporary one
	Program func() (string, error) // returns the hash of this program; called for a named session
	Keyed   map[string]string      // values that jobs may depend on: of the program's flags, and its directory
	Output  string                 // URL of -output; empty: none
	// Vacant returns an error if Output exists. It is called before the first step.
	Vacant func() error
	Note   func(text string) // prints a line for the user
	// Submission builds the job of a step.
	Submission func(step *wire.Step) (*wire.Submission, error)
}

// Driver runs steps.
type Driver struct {
	Config

	mu      sync.Mutex
	session *session // nil before the first step
	steps   map[string]int
	err     error // the first that fails the driver
	written bool  // a step has written to Output or below
}

// New returns a Driver. Call [Driver.Close] at the end.
func New(cfg Config) *Driver { return &Driver{Config: cfg, steps: make(map[string]int)} }

// Result is the result of a step.
type Result struct {
	Dir      string // URL
	Format   string
	Counters wire.Counters
	Job      string // id
	Dropped  atomic.Bool
	Read     atomic.Bool // the driver has read it, and not only jobs
}

// Step runs a job, or returns the recorded result of an earlier process.
func (d *Driver) Step(ctx context.Context, definition string, params []byte) (*Result, error) {
	if err := d.Err(); err != nil {
		return nil, err
	}
	result, err := d.step(ctx, definition, params)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", definition, err)
	}
	return result, nil
}

func (d *Driver) step(ctx context.Context, definition string, params []byte) (*Result, error) {
	name, err := d.name(definition, params)
	if err != nil {
		return nil, err
	}
	step := &wire.Step{Definition: definition, Params: params, Result: "file:///", Output: d.Output} // only to build the first one
	s, err := d.open(ctx, step)
	if err != nil {
		return nil, err
	}
	result, err := s.recorded(name)
	if err != nil {
		return nil, err
	}
	if result == nil {
		result, err = d.compute(ctx, s, name, step)
	}
	if err == nil && within(result.Dir, d.Output) {
		d.mu.Lock()
		d.written = true
		d.mu.Unlock()
	}
	return result, err
}

// compute runs a step that has no record, and records it.
func (d *Driver) compute(ctx context.Context, s *session, name string, step *wire.Step) (*Result, error) {
	result, err := d.find(ctx, s, name, step)
	if result == nil && err == nil {
		result, err = d.run(ctx, s, name, step)
	}
	if err != nil {
		return nil, err
	}
	return result, s.record(name, step.Definition, step.Params, result)
}

// Begin checks the output, for a session without a name. In one with a name a step of an earlier process may have written
// it: the first step checks that.
func (d *Driver) Begin() error {
	if d.Output == "" || d.Session != "" {
		return nil
	}
	return d.Vacant()
}

// vacant checks the output when a session with a name is open.
func (d *Driver) vacant(s *session) error {
	if d.Output == "" || s.name == "" {
		return nil
	}
	exists := d.Vacant()
	if exists == nil {
		return nil
	}
	steps, err := s.steps()
	if err != nil {
		return err
	}
	if len(steps) == 0 {
		s.unused = true
		return exists
	}
	if ours, err := s.writes(steps, d.Output); ours || err != nil {
		return err
	}
	return fmt.Errorf("%w; the same command with another -output goes on with session %s", exists, s.name)
}

// Wrote reports whether a step has written to the output or below.
func (d *Driver) Wrote() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.written
}

// find returns the result of a step that an earlier process began, if its jobs succeed.
func (d *Driver) find(ctx context.Context, s *session, name string, step *wire.Step) (*Result, error) {
	b, err := s.begun(name)
	if b == nil {
		return nil, err
	}
	step.Result = b.Result
	sub, err := d.Submission(step)
	if err != nil {
		return nil, err
	}
	sub.Key = b.Key
	jobs, err := d.Cluster.Find(ctx, sub)
	if err != nil || len(jobs) == 0 {
		return nil, err
	}
	result, failed := resultOf(sub, jobs)
	if failed != nil && ctx.Err() != nil {
		return nil, failure(ctx, failed)
	}
	return result, nil
}

func (d *Driver) run(ctx context.Context, s *session, name string, step *wire.Step) (*Result, error) {
	step.Result = dfs.Join(s.dir, wire.SessionResults, rand.Text())
	sub, err := d.Submission(step)
	if err != nil {
		return nil, err
	}
	sub.Key = rand.Text()
	if err := s.begin(name, &begun{sub.Key, step.Result, lastOf(sub).Output}); err != nil {
		return nil, err
	}
	jobs, err := d.Cluster.Run(ctx, sub)
	if err != nil {
		return nil, err
	}
	result, failed := resultOf(sub, jobs)
	if failed != nil {
		return nil, failure(ctx, failed)
	}
	return result, nil
}

// resultOf returns the result of jobs that have ended, or the first one that did not succeed.
func resultOf(sub *wire.Submission, jobs []wire.EndedJob) (_ *Result, failed *wire.EndedJob) {
	last := lastOf(sub)
	result := &Result{Dir: last.Output, Format: last.Format, Counters: make(wire.Counters)}
	for i := range jobs {
		job := &jobs[i]
		if job.State != wire.Succeeded {
			return nil, job
		}
		result.Job = job.ID.String()
		result.Counters.Merge(job.Counters)
	}
	return result, nil
}

// lastOf returns the job that has the result.
func lastOf(sub *wire.Submission) *wire.JobPlan { return &sub.Plan.Jobs[len(sub.Plan.Jobs)-1] }

// failure returns the error of a job that did not succeed.
func failure(ctx context.Context, job *wire.EndedJob) error {
	text := strings.TrimRight(job.Error, "\n")
	if job.State == wire.Killed && ctx.Err() != nil {
		return fmt.Errorf("%v killed: %w", job.ID, context.Cause(ctx))
	}
	if strings.HasPrefix(text, job.ID.String()+" ") { // it says so itself
		return errors.New(text)
	}
	return fmt.Errorf("%v %v: %s", job.ID, job.State, text)
}

// name returns the name of a step's record.
func (d *Driver) name(definition string, params []byte) (string, error) {
	text, err := json.Marshal(struct {
		Definition string
		Params     json.RawMessage
		Keyed      map[string]string
	}{definition, params, d.Keyed})
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(text)
	key := hex.EncodeToString(hash[:keyLength/2])
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.steps[key]
	d.steps[key]++
	return fmt.Sprintf("%s-%d", key, n), nil
}

// open opens the session at the first step.
func (d *Driver) open(ctx context.Context, step *wire.Step) (*session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session != nil {
		return d.session, nil
	}
	first, err := d.Submission(step)
	if err != nil {
		return nil, err
	}
	sessions, err := d.Cluster.Sessions(first)
	if err != nil {
		return nil, err
	}
	s := &session{fs: dfs.Private(d.FS), name: d.Session, note: d.Note, lost: d.Fail}
	s.dir = sessions + cmp.Or(s.name, rand.Text())
	if s.name != "" {
		err = d.enter(ctx, s)
	} else if err = s.make(); err == nil {
		s.renew(ctx)
	}
	if err != nil {
		return nil, err
	}
	d.session = s
	if d.err == nil {
		d.err = d.vacant(s)
	}
	return s, d.err
}

func (d *Driver) enter(ctx context.Context, s *session) error {
	hash, err := d.Program()
	if err != nil {
		return err
	}
	if err := s.make(); err != nil {
		return err
	}
	return s.enter(ctx, hash)
}

// Files returns the file system for reading a result. A link leads it out of no session, and it lists no links.
func (d *Driver) Files(dir string) dfs.FS {
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	if s == nil || !s.owns(dir) {
		return d.FS
	}
	return local.Confined(d.FS, s.dir)
}

// Drop removes the result of a step. A session with a name keeps what the driver has read: a driver that starts again
// reads it again.
func (d *Driver) Drop(r *Result) error {
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	if s == nil || !s.owns(r.Dir) {
		return fmt.Errorf("drop %s: it does not belong to the session", r.Dir)
	}
	r.Dropped.Store(true)
	if s.name != "" && r.Read.Load() {
		return nil
	}
	return s.drop(r.Dir)
}

// Fail makes later steps and the driver fail with an error, unless there is an earlier one.
func (d *Driver) Fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
}

// Err returns the error of Fail.
func (d *Driver) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Close ends the session. It keeps a named session that is used if the driver has failed, and leaves one to another driver
// that has taken it over: then it returns an error, unless the driver has one already.
func (d *Driver) Close(failed bool) error {
	d.mu.Lock()
	s := d.session
	d.mu.Unlock()
	if s == nil {
		return nil
	}
	s.leave()
	var err error
	kept := s.name != "" && failed && !s.unused
	if kept {
		err = s.release()
	} else if err = s.remove(); err != nil && !errors.Is(err, errTaken) {
		err = fmt.Errorf("remove session: %w", err)
	}
	if errors.Is(err, errTaken) {
		if d.Err() != nil {
			return nil
		}
		return err
	}
	if kept {
		d.Note(fmt.Sprintf("session %s is kept for %v after its last step: run the same command again to go on; it is in %s", s.name, Lease, s.dir))
	}
	return err
}
