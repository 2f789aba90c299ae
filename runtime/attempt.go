package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// attempt is one attempt on its goroutine.
type attempt struct {
	worker *worker
	cmd    *wire.Run
	fs     dfs.FS // to read
	task   *Task

	sub      *wire.Submission
	settings settings
	job      *Job   // the code; nil until loaded
	staging  dfs.FS // to write staged files
	tree     *tree

	counters wire.Counters // beside the task's
	began    usage         // of the process, when it is this attempt's alone
	result   wire.Result

	// What progress and report read from another goroutine.
	length     atomic.Int64 // bytes to read
	split      atomic.Pointer[Split]
	merged     atomic.Int64              // bytes of merged records read
	quietUntil atomic.Pointer[time.Time] // silence is no hang until then; nil: it may be one
}

func newAttempt(ctx context.Context, w *worker, run *wire.Run) *attempt {
	a := &attempt{worker: w, cmd: run, fs: w.fs, counters: make(wire.Counters)}
	a.task = &Task{ID: run.Attempt, fs: w.fs, work: filepath.Join(run.Dir, "work")}
	a.task.Ctx, a.task.end = context.WithCancelCause(ctx)
	a.task.pulse.ask()
	if !w.opts.InProcess {
		a.began = measure()
	}
	return a
}

func (a *attempt) id() wire.AttemptID { return a.cmd.Attempt }

func (a *attempt) plan() *wire.JobPlan { return &a.sub.Plan.Jobs[a.cmd.Index] }

// do runs the attempt. Whatever it is, its code may have been cut off anywhere by
// an earlier attempt's end, and does what is left to do.
func (a *attempt) do() error {
	if err := a.settle(); err != nil {
		return err
	}
	var err error
	if a.sub, err = a.worker.submission(a.cmd.Staging, a.id().Task.Kind); err != nil {
		return err
	}
	if a.cmd.Index < 0 || a.cmd.Index >= len(a.sub.Plan.Jobs) {
		return Fatal(fmt.Errorf("%w: the submission has no job %d", ErrCorrupt, a.cmd.Index))
	}
	embedded := a.sub.Program.Hash == "" // on a cluster, workers run a copy that the hash names
	a.staging = patientFS{dfs.Private(volatile(a.fs, embedded)), a}
	output := patientFS{volatile(a.fs, !syncsOutput(a.plan().Properties, embedded)), a}
	a.tree = &tree{fs: output, out: OutputOf(a.sub, a.cmd.Index), job: a.id().Task.Job, key: a.sub.Key, staging: a.sub.Staging}
	a.task.Plan, a.task.Partitions = a.plan(), a.plan().Reduces
	a.task.staged = sideFilesName(a.sub.Staging, a.id().Task.Job)
	switch a.id().Task.Kind {
	case wire.Commit:
		err = a.commit()
	case wire.Cleanup:
		err = a.tree.cleanup()
	case wire.Fence:
		err = a.fence()
	default:
		err = a.doLoaded()
		if refused := a.task.refusal(); refused != nil {
			err = refused // which has led to whatever else went wrong
		}
	}
	if err != nil {
		return err
	}
	if a.id().Task.Kind != wire.Setup { // whose code has only seen a sample
		a.result.Counters = a.total()
	}
	return nil
}

// volatile is f, or the volatile form of it.
func volatile(f dfs.FS, yes bool) dfs.FS {
	if yes {
		return dfs.Volatile(f)
	}
	return f
}

// doLoaded runs the kinds that need the job's code.
func (a *attempt) doLoaded() error {
	if err := a.loadProgram(); err != nil {
		return err
	}
	var err error
	if a.settings, err = readSettings(a.plan().Properties); err != nil {
		return err
	}
	switch a.id().Task.Kind {
	case wire.Setup:
		return a.setup()
	case wire.Map:
		return a.runMap()
	case wire.Reduce:
		return a.runReduce()
	}
	return Fatal(fmt.Errorf("cannot run a task of kind %s", a.id().Task.Kind))
}

// settle makes the attempt's directory and, in a process of its own, moves there
// and lets stdout and stderr go to the attempt's logs.
func (a *attempt) settle() error {
	if a.cmd.Dir == "" {
		return nil
	}
	if err := os.MkdirAll(a.task.work, 0o777); err != nil {
		return fmt.Errorf("make working directory: %w", err)
	}
	if a.worker.opts.InProcess {
		return nil
	}
	if err := os.Chdir(a.task.work); err != nil {
		return fmt.Errorf("enter working directory: %w", err)
	}
	if a.cmd.Logs == "" {
		return nil
	}
	return redirect(a.cmd.Logs)
}

// loadProgram builds the job again and compares it with what was submitted.
func (a *attempt) loadProgram() error {
	program, err := a.worker.load(a.sub)
	if err != nil {
		return Fatal(fmt.Errorf("build job: %w", err))
	}
	if err := comparePlans(&a.sub.Plan, &program.Plan); err != nil {
		return err
	}
	if len(program.Jobs) != len(a.sub.Plan.Jobs) {
		return Fatal(fmt.Errorf("build job: code for %d jobs of %d", len(program.Jobs), len(a.sub.Plan.Jobs)))
	}
	a.job = &program.Jobs[a.cmd.Index]
	if maps := len(a.job.Maps); maps != len(a.plan().Inputs) {
		return Fatal(fmt.Errorf("build job: %d maps for %d inputs", maps, len(a.plan().Inputs)))
	}
	if (a.job.Reduce != nil) != (a.plan().Reduces > 0) {
		return Fatal(errors.New("build job: code for a reduce and none planned, or the reverse"))
	}
	return nil
}

// total is the attempt's counters.
func (a *attempt) total() wire.Counters {
	all := a.task.sums()
	all.Merge(a.counters)
	if !a.worker.opts.InProcess && a.id().Task.Kind.Slotted() {
		a.began.count(all, measure())
	}
	return all
}

// maxStatus bounds a status that is told, in bytes.
const maxStatus = 1 << 10

// failed makes the result of an attempt that did not succeed. A reduce that could
// not read a segment is not to blame: the map that wrote it must run again. Texts may be
// of any length, and the result must fit into a message.
func (a *attempt) failed(err error) wire.Result {
	cause := wire.Bounded(err.Error(), wire.MaxText)
	r := wire.Result{Error: cause, Bytes: a.progress().Done,
		Fatal: isFatal(err) || errors.Is(err, shuffle.ErrRecordTooLarge)}
	if status := a.task.said(); status != "" {
		r.Error += "\n(its status: " + wire.Bounded(status, maxStatus) + ")"
	}
	if s := a.split.Load(); s != nil {
		r.Reads = s.meter.sum()
	}
	lost := wire.OutputLost{Job: a.id().Task.Job, Reason: cause}
	if damaged, ok := errors.AsType[*shuffle.CorruptError](err); ok {
		lost.Map, lost.Attempt, lost.Corrupt = damaged.Segment.Map, damaged.Segment.Attempt, true
		r.Lost = []wire.OutputLost{lost}
	} else if unread, ok := errors.AsType[*shuffle.UnreadableError](err); ok && a.task.Ctx.Err() == nil {
		lost.Map, lost.Attempt = unread.Segment.Map, unread.Segment.Attempt
		r.Lost = []wire.OutputLost{lost}
	}
	return r
}

func (a *attempt) commit() error {
	kind, n := wire.Reduce, a.plan().Reduces
	if n == 0 {
		splits, _, err := ReadSplits(a.fs, a.sub.Staging, a.id().Task.Job)
		if err != nil {
			return err
		}
		kind, n = wire.Map, len(splits)
	}
	tasks := make([]wire.TaskID, n)
	for i := range tasks {
		tasks[i] = wire.TaskID{Job: a.id().Task.Job, Kind: kind, N: i}
	}
	return a.tree.commitJob(tasks, a.alive)
}

func (a *attempt) fence() error {
	m, err := a.tree.fence(a.cmd.Subject)
	if err != nil {
		return err
	}
	if m != nil {
		a.result.Committed = true
		a.counters.Merge(m.Counters) // the subject's report may never come
	}
	return nil
}

// alive is a sign of life of this package's own work, and an error when the
// attempt is to end.
func (a *attempt) alive() error {
	a.task.pulse.beat()
	return context.Cause(a.task.Ctx)
}

// progress is called from another goroutine.
func (a *attempt) progress() wire.Progress {
	total := a.length.Load()
	if s := a.split.Load(); s != nil {
		return wire.Progress{Done: min(s.raw.Load(), total), Total: total}
	}
	return wire.Progress{Done: min(a.merged.Load(), total), Total: total}
}

// writing runs code that writes outputs, and commits them when the tracker lets it.
func (a *attempt) writing(records string, work func() error) error {
	dir := a.tree.attempt(a.id())
	if err := a.tree.fs.Mkdir(dir); err != nil {
		return fmt.Errorf("make attempt's output: %w", err)
	}
	out := &outputs{fs: a.tree.fs, dir: dir, task: a.id().Task, bin: a.plan().Format == formatBinary,
		pulse: &a.task.pulse, files: make(map[string]*Output)}
	a.task.outputs = out
	complete := false
	defer func() { // also when work panics or ends its goroutine
		aborted := out.abort()
		if !complete {
			// Room is made early; the job's end would remove it too.
			_ = errors.Join(aborted, a.tree.fs.RemoveAll(dir))
		}
	}()
	if err := work(); err != nil {
		return err
	}
	if err := a.task.refusal(); err != nil {
		return err
	}
	if err := out.close(); err != nil {
		return err
	}
	out.count(a.counters, records)
	m := &manifest{Attempt: a.id().String(), Counters: a.total()}
	for _, f := range out.sorted() {
		m.Files = append(m.Files, manifestFile{Name: f.name, Size: f.file.size})
	}
	if err := a.tree.writeManifest(a.id(), m); err != nil {
		return fmt.Errorf("complete attempt's output: %w", err)
	}
	complete = true
	if err := a.awaitGrant(); err != nil {
		return err
	}
	return a.tree.commitTask(a.id())
}

// awaitGrant asks for the commit and waits; that may be long and is no hang.
func (a *attempt) awaitGrant() error {
	defer a.quiet(grantPatience)()
	if err := a.worker.conn.Send(&wire.CommitReady{}); err != nil {
		return err
	}
	select {
	case <-a.worker.granted:
		return nil
	case <-a.task.Ctx.Done():
		return fmt.Errorf("wait for the grant to commit: %w", context.Cause(a.task.Ctx))
	}
}

// countBytes counts bytes under the counter of a URL's file system.
func countBytes(c wire.Counters, url, what string, n int64) {
	if scheme, _, ok := strings.Cut(url, "://"); ok && n > 0 {
		c.Add(wire.FileSystemCounters, strings.ToUpper(scheme)+"_"+what, n)
	}
}
