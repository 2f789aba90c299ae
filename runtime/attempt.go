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

// attempt is the state of one attempt, owned by its goroutine.
type attempt struct {
	worker *worker
	cmd    *wire.Run
	fs     dfs.FS // for reading
	task   *Task

	sub      *wire.Submission
	settings settings
	job      *Job   // the code; nil until it is loaded
	staging  dfs.FS // for writing staged files
	tree     *tree

	counters   wire.Counters // in addition to the task's
	startUsage usage         // of the process before the attempt, if the process runs only this attempt
	result     wire.Result
	skip       *skipping // nil: the job skips no records
	inCode     bool      // see failedInCode

	// The progress goroutine reads the following fields too.
	bytesTotal  atomic.Int64 // bytes to read
	split       atomic.Pointer[Split]
	bytesMerged atomic.Int64              // bytes of merged records read
	hot         atomic.Pointer[wire.Hot]  // hot groups of a reduce; nil: none
	aliveUntil  atomic.Pointer[time.Time] // until then the attempt counts as active; nil: only while it shows activity
}

func newAttempt(ctx context.Context, w *worker, run *wire.Run) *attempt {
	a := &attempt{worker: w, cmd: run, fs: w.fs, counters: make(wire.Counters)}
	a.task = &Task{ID: run.Attempt, fs: w.fs, dir: run.Dir, work: filepath.Join(run.Dir, "work")}
	a.task.Ctx, a.task.cancel = context.WithCancelCause(ctx)
	a.task.pulse.ask()
	context.AfterFunc(a.task.Ctx, a.task.pulse.end)
	if !w.opts.InProcess {
		a.startUsage = measure()
	}
	return a
}

func (a *attempt) now() time.Time { return a.worker.opts.Clock() }

func (a *attempt) id() wire.AttemptID { return a.cmd.Attempt }

func (a *attempt) plan() *wire.JobPlan { return &a.sub.Plan.Jobs[a.cmd.Index] }

// run runs the attempt. An earlier attempt of any kind may have stopped at any point, so
// run completes the remaining steps.
func (a *attempt) run() error {
	if err := a.enterDir(); err != nil {
		return err
	}
	var err error
	if a.sub, err = a.worker.submission(a.cmd.Staging, a.cmd.Digest, a.id().Task.Kind); err != nil {
		return err
	}
	if a.cmd.Index < 0 || a.cmd.Index >= len(a.sub.Plan.Jobs) {
		return Fatal(fmt.Errorf("%w: the submission has no job %d", ErrCorrupt, a.cmd.Index))
	}
	embedded := a.sub.Program.Hash == "" // on a cluster, workers run a copy with this hash
	a.staging = aliveFS{dfs.Private(volatile(a.fs, embedded)), a}
	creation, err := creationOf(a.plan().Properties)
	if err != nil {
		return err
	}
	output := aliveFS{volatile(dfs.Creating(a.fs, creation), !syncsOutput(a.plan().Properties, embedded)), a}
	a.tree = &tree{fs: output, out: OutputOf(a.sub, a.cmd.Index), job: a.id().Task.Job, key: a.sub.Key, staging: a.sub.Staging,
		unmarked: strings.TrimSpace(a.plan().Properties[MarkSuccess]) == "false"}
	a.task.Plan, a.task.Partitions = a.plan(), a.plan().Reduces
	a.task.partsOf = a.partsOf
	a.task.stagedList = sideFilesName(a.sub.Staging, a.id().Task.Job)
	if a.id().Task.Kind != wire.Map || a.task.Partitions == 0 {
		a.worker.sortMemory.Free()
	}
	switch a.id().Task.Kind {
	case wire.Commit:
		err = a.commit()
	case wire.Cleanup:
		err = a.tree.cleanup()
	case wire.Fence:
		err = a.fence()
	default:
		err = a.runLoaded()
		if refused := a.task.counterError(); refused != nil {
			err = refused // the cause of all other errors
		}
	}
	if err != nil {
		return err
	}
	a.result.Hot = a.hot.Load()
	if a.id().Task.Kind != wire.Setup { // a setup attempt runs the job's code only on a sample
		a.result.Counters = a.total()
	}
	return nil
}

// volatile returns dfs.Volatile(f) if yes is set, else f.
func volatile(f dfs.FS, yes bool) dfs.FS {
	if yes {
		return dfs.Volatile(f)
	}
	return f
}

// runLoaded runs the kinds of attempts that need the job's code.
func (a *attempt) runLoaded() error {
	if err := a.loadProgram(); err != nil {
		return err
	}
	var err error
	if a.settings, err = readSettings(a.plan().Properties); err != nil {
		return err
	}
	stop, err := a.startProfile()
	if err != nil {
		return err
	}
	return errors.Join(a.runKind(), stop())
}

// runKind runs the code of setup, a map or a reduce.
func (a *attempt) runKind() error {
	if !a.worker.opts.InProcess && a.id().Task.Kind != wire.Setup {
		if err := a.task.linkArchives(); err != nil {
			return err
		}
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

// enterDir makes the attempt's directory. In a process of its own, it enters the directory
// and redirects stdout and stderr to the attempt's logs.
func (a *attempt) enterDir() error {
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

// loadProgram rebuilds the job and compares it with the submitted plan.
func (a *attempt) loadProgram() error {
	program, err := a.worker.load(a.sub)
	if err != nil {
		return Fatal(fmt.Errorf("build job: %w", err))
	}
	if err := comparePlans(a.sub, &program.Plan); err != nil {
		return err
	}
	if len(program.Jobs) != len(a.sub.Plan.Jobs) {
		return Fatal(fmt.Errorf("build job: code for %d jobs of %d", len(program.Jobs), len(a.sub.Plan.Jobs)))
	}
	a.job = &program.Jobs[a.cmd.Index]
	a.task.copied = a.job.CopiesDirectories
	if maps := len(a.job.Maps); maps != len(a.plan().Inputs) {
		return Fatal(fmt.Errorf("build job: %d maps for %d inputs", maps, len(a.plan().Inputs)))
	}
	if (a.job.Reduce != nil) != (a.plan().Reduces > 0) {
		return Fatal(errors.New("build job: code for a reduce and none planned, or the reverse"))
	}
	return nil
}

func (a *attempt) total() wire.Counters {
	all := a.task.sums()
	all.Merge(a.counters)
	if !a.worker.opts.InProcess && a.id().Task.Kind.Slotted() {
		a.startUsage.count(all, measure())
	}
	return all
}

// maxStatus limits a status in an error, in bytes.
const maxStatus = 1 << 10

// failed makes the result of a failed attempt. If a reduce could not read a segment, the
// result names the segment, so that its map reruns. All texts are cut, because the result
// must fit into a message.
func (a *attempt) failed(err error) wire.Result {
	cause := wire.Truncate(err.Error(), wire.MaxText)
	r := wire.Result{Error: cause, Bytes: a.progress().Done, Hot: a.hot.Load(),
		Fatal: isFatal(err) || errors.Is(err, shuffle.ErrRecordTooLarge), BadInput: isBadInput(err)}
	s := a.split.Load()
	if a.inCode && !r.Fatal {
		if r.Died = a.skip.died(); r.Died != nil && s != nil {
			r.Died.Where = wire.Truncate(s.Where(), wire.MaxText)
		}
	}
	if status := a.task.lastStatus(); status != "" {
		r.Error += "\n(its status: " + wire.Truncate(status, maxStatus) + ")"
	}
	if s != nil {
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
	tasks := a.tasksBut(kind, n, a.cmd.GivenUp)
	if a.writesMapFiles() {
		splits, _, err := ReadSplits(a.fs, a.sub.Staging, a.id().Task.Job)
		if err != nil {
			return err
		}
		tasks = append(tasks, a.tasksBut(wire.Map, len(splits), a.cmd.GivenUpMaps)...)
	}
	return a.tree.commitJob(tasks, a.publishMore, a.alive)
}

// tasksBut returns the first n tasks of a kind, without those that were given up, one bit each.
func (a *attempt) tasksBut(kind wire.Kind, n int, givenUp []uint64) []wire.TaskID {
	tasks := make([]wire.TaskID, 0, n)
	for i := range n {
		if w := i / 64; w < len(givenUp) && givenUp[w]&(1<<(i%64)) != 0 {
			continue
		}
		tasks = append(tasks, wire.TaskID{Job: a.id().Task.Job, Kind: kind, N: i})
	}
	return tasks
}

func (a *attempt) fence() error {
	m, err := a.tree.fence(a.cmd.Subject)
	if err != nil {
		return err
	}
	if m != nil {
		a.result.Committed = true
		a.counters.Merge(m.Counters) // the subject's report may never arrive
	}
	return nil
}

// alive signals activity while this package works, not the job's code. It returns an error
// if the attempt must end.
func (a *attempt) alive() error {
	a.task.pulse.beat()
	return context.Cause(a.task.Ctx)
}

// progress may be called from another goroutine.
func (a *attempt) progress() wire.Progress {
	total := a.bytesTotal.Load()
	if s := a.split.Load(); s != nil {
		return wire.Progress{Done: min(s.rawBytes.Load(), total), Total: total}
	}
	return wire.Progress{Done: min(a.bytesMerged.Load(), total), Total: total}
}

// writeOutputs runs code that writes outputs, then commits them once the tracker grants it.
func (a *attempt) writeOutputs(records string, work func() error) error {
	return a.writeFiles(records, false, work, func(*manifest) error {
		if err := a.awaitGrant(); err != nil {
			return err
		}
		return a.tree.commitTask(a.id())
	})
}

// writeFiles runs code that writes files in the attempt's directory, completes them, and hands them on.
func (a *attempt) writeFiles(records string, ofMap bool, work func() error, handOn func(*manifest) error) error {
	dir := a.tree.attempt(a.id())
	out := &outputs{fs: a.tree.fs, dir: dir, task: a.id().Task, binary: a.plan().Format == formatBinary,
		mapred: a.plan().Format == FormatMapred && !ofMap, // without a letter, a reduce's file would have the same name
		ofMap:  ofMap,
		lazy:   a.settings.lazyOutput && a.plan().Format != formatBinary, // later jobs of a flow read each file
		codec:  a.settings.outputCodec, pulse: &a.task.pulse, files: make(map[string]*Output)}
	if !ofMap { // most maps with sorted output write no files
		if err := out.makeDir(); err != nil {
			return err
		}
	}
	a.task.outputs = out
	complete := false
	defer func() { // also if work panics or ends its goroutine
		aborted := out.abort()
		if !complete && out.made {
			// Free the space now; otherwise the job's cleanup or commit does.
			_ = errors.Join(aborted, a.tree.fs.RemoveAll(dir))
		}
	}()
	if err := work(); err != nil {
		return err
	}
	began := a.now()
	defer func() { a.result.Completed = a.now().Sub(began) }()
	if err := a.task.counterError(); err != nil {
		return err
	}
	if err := out.close(); err != nil {
		return err
	}
	out.count(a.counters, records)
	m := out.manifest(a.id(), a.total())
	if len(m.Files) > 0 || !ofMap {
		if err := a.tree.writeManifest(a.id(), m); err != nil {
			return fmt.Errorf("complete attempt's output: %w", err)
		}
		complete = true
	}
	return handOn(m)
}

// awaitGrant asks for the grant and waits. A long wait is not a hang.
func (a *attempt) awaitGrant() error {
	defer a.keepAlive(maxGrantWait)()
	if err := a.worker.conn.Send(&wire.CommitReady{}); err != nil {
		return err
	}
	select {
	case <-a.worker.granted:
		return context.Cause(a.task.Ctx)
	case <-a.task.Ctx.Done():
		return fmt.Errorf("wait for the grant to commit: %w", context.Cause(a.task.Ctx))
	}
}

// countBytes adds bytes to a counter of the URL's file system, such as HDFS_BYTES_READ.
func countBytes(c wire.Counters, url, counter string, n int64) {
	if scheme, _, ok := strings.Cut(url, "://"); ok && n > 0 {
		c.Add(wire.FileSystemCounters, strings.ToUpper(scheme)+"_"+counter, n)
	}
}
