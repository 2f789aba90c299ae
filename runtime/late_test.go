package runtime

import (
	"errors"
	"iter"
	"math/rand/v2"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// TestLateSetups runs setup attempts that count as lost. They start, continue and die at
// any time during and after cleanups of their job. Cleanups overlap too. Only empty
// directories of setup attempts may remain.
func TestLateSetups(t *testing.T) {
	built, refused := 0, 0
	for seed := range uint64(5_000) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		f, healthy := newData(), seed%2 == 0
		running := []*process{
			startProcess(f, false, func(f dfs.FS) error { return setUp(f, 0) }),
			startProcess(f, false, func(f dfs.FS) error { return setUp(f, 1) }),
		}
		cleaned, cleanups := false, 0
		for at := 0; len(running) > 0 || !cleaned; {
			if len(running) == 0 || !cleaned && rnd.IntN(20) == 0 {
				if cleanups++; cleanups > 100 {
					t.Fatalf("seed %d: no cleanup succeeds, there is %s", seed, listing(f, "mem://t/data"))
				}
				running = append(running, startProcess(f, true, func(f dfs.FS) error { return newTree(f).cleanup() }))
			}
			if at >= len(running) || rnd.IntN(8) == 0 {
				at = rnd.IntN(len(running))
			}
			x, o := running[at], succeeds
			if !healthy && rnd.IntN(20) == 0 {
				o = o + 1 + outcome(rnd.IntN(4))
			}
			if x.step(o) {
				continue
			}
			running = append(running[:at], running[at+1:]...)
			switch {
			case x.isCleanup:
				cleaned = cleaned || x.err == nil
			case x.err == nil:
				built++
			case strings.Contains(x.err.Error(), "was stopped"):
				refused++
			}
		}
		leftover := listing(f, "mem://t/data")
		if leftover != "" && (healthy || strings.Contains(leftover, "=") || !strings.HasPrefix(leftover, "/data/.out.")) {
			t.Fatalf("seed %d: left %s", seed, leftover)
		}
	}
	if built < 500 || refused < 500 {
		t.Errorf("%d setups built the output, %d were refused", built, refused)
	}
}

// TestSetupsAtOnce runs two setup attempts of a job at once. One of them makes the output, and neither
// takes it for another job's, which would fail the job.
func TestSetupsAtOnce(t *testing.T) {
	for seed := range uint64(1_000) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		f := newData()
		running := []*process{
			startProcess(f, false, func(f dfs.FS) error { return setUp(f, 0) }),
			startProcess(f, false, func(f dfs.FS) error { return setUp(f, 1) }),
		}
		for len(running) > 0 {
			at := rnd.IntN(len(running))
			if running[at].step(succeeds) {
				continue
			}
			if err := running[at].err; isFatal(err) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			running = slices.Delete(running, at, at+1)
		}
		if state, err := newTree(f).checkOwner(); state != ours {
			t.Fatalf("seed %d: the output is not the job's: %v", seed, err)
		}
	}
}

// TestLateCleanups checks that overlapping cleanups remove the files of a failed commit,
// and no others.
func TestLateCleanups(t *testing.T) {
	for seed := range uint64(2_000) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		f := newData()
		commitHalf(t, f)
		var running []*process
		for range 2 {
			running = append(running, startProcess(f, true, func(f dfs.FS) error { return newTree(f).cleanup() }))
		}
		for at := 0; len(running) > 0; {
			if at >= len(running) || rnd.IntN(8) == 0 {
				at = rnd.IntN(len(running))
			}
			if !running[at].step(succeeds) {
				running = append(running[:at], running[at+1:]...)
			}
		}
		if err := newTree(f).cleanup(); err != nil {
			t.Fatal(err)
		}
		if got := listing(f, "mem://t/data"); got != "/data/out/ /data/out/part-r-00001=foreign" {
			t.Fatalf("seed %d: left %s", seed, got)
		}
	}
}

// TestStopped checks that any worker can clean up a job again. No worker may set the job
// up, even if it read the submission before the cleanup.
func TestStopped(t *testing.T) {
	b := newTrackerSim(t, linesPlan(), wordCount())
	b.mustRun(wire.Setup, 0, nil)
	b.mustRun(wire.Cleanup, 0, nil)
	for _, want := range []string{"the job was stopped or is over", "read submission"} {
		if r := b.run(wire.Setup, 0, nil); !strings.Contains(r.Error, want) || r.Fatal {
			t.Errorf("setup after cleanup: %+v", r)
		}
		b.checkOutput("")
		b.stop()
		b.start()
	}
	b.mustRun(wire.Cleanup, 0, nil)
}

func setUp(f dfs.FS, n int) error {
	tr := newTree(f)
	if state, err := tr.checkOwner(); state != unclaimed {
		return err
	}
	return tr.build(testAttempt(wire.Setup, 0, n))
}

// process runs code that stops before each of its calls to the file system.
type process struct {
	isCleanup bool
	next      func() (struct{}, bool)
	outcome   outcome
	err       error // after its end
}

// outcome says what happens to a call and to the process that makes it.
type outcome int

const (
	succeeds   outcome = iota
	fails              // the call has no effect
	failsAfter         // the call has an effect
	diesBefore         // before the call
	diesAfter          // after the call
)

var errDied = errors.New("died")

func startProcess(f dfs.FS, cleans bool, code func(dfs.FS) error) *process {
	x := &process{isCleanup: cleans}
	x.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			switch died := recover(); died {
			case nil:
			case errDied:
				x.err = errDied
			default:
				panic(died)
			}
		}()
		x.err = code(&steppedFS{FS: f, step: func(call func() error) error {
			yield(struct{}{})
			return x.outcome.apply(call)
		}})
	})
	x.next()
	return x
}

// step gives the pending call this outcome. It reports whether another call follows.
func (x *process) step(o outcome) bool {
	x.outcome = o
	_, more := x.next()
	return more
}

func (x outcome) apply(call func() error) error {
	if x == fails || x == diesBefore {
		call = func() error { return nil }
	}
	err := call()
	switch x {
	case succeeds:
		return err
	case fails, failsAfter:
		return errors.New("input/output error")
	}
	panic(errDied)
}

// steppedFS is a file system that delays each call until its turn. It removes trees file by
// file, like a local file system.
type steppedFS struct {
	dfs.FS
	step func(call func() error) error
}

func (f *steppedFS) Open(name string) (file dfs.File, err error) {
	err = f.step(func() (err error) { file, err = f.FS.Open(name); return err })
	return file, err
}

func (f *steppedFS) Create(name string) (out dfs.Writer, err error) {
	err = f.step(func() (err error) { out, err = f.FS.Create(name); return err })
	return out, err
}

func (f *steppedFS) Stat(name string) (info dfs.Info, err error) {
	err = f.step(func() (err error) { info, err = f.FS.Stat(name); return err })
	return info, err
}

func (f *steppedFS) List(name string) (infos []dfs.Info, err error) {
	err = f.step(func() (err error) { infos, err = f.FS.List(name); return err })
	return infos, err
}

func (f *steppedFS) Mkdir(name string) error {
	return f.step(func() error { return f.FS.Mkdir(name) })
}

func (f *steppedFS) RenameDir(from, to string) error {
	return f.step(func() error { return f.FS.RenameDir(from, to) })
}

func (f *steppedFS) RenameFile(from, to string) error {
	return f.step(func() error { return f.FS.RenameFile(from, to) })
}

func (f *steppedFS) Remove(name string) error {
	return f.step(func() error { return f.FS.Remove(name) })
}

func (f *steppedFS) RemoveAll(name string) error {
	err := f.Remove(name)
	if err == nil || missing(err) {
		return nil
	}
	inside, err := f.List(name)
	for _, info := range inside {
		if err := f.RemoveAll(info.Name); err != nil {
			return err
		}
	}
	if err == nil {
		err = f.Remove(name)
	}
	if missing(err) {
		return nil
	}
	return err
}

// TestReturnAfterEnd: code that returns without an error after its attempt was ended has failed,
// because it may have read only a part of its input. Nothing of its output stays.
func TestReturnAfterEnd(t *testing.T) {
	plan := linesPlan()
	plan.Reduces, plan.Combine = 0, false
	began := make(chan struct{})
	job := Job{Maps: []MapFunc{func(t *Task, _ *Split, _ Collector) error {
		out, err := t.Output("")
		if err != nil {
			return err
		}
		if err := out.Write([]byte("a part")); err != nil {
			return err
		}
		close(began)
		<-t.Ctx.Done()
		return nil
	}}}
	b := newTrackerSim(t, plan, job)
	b.mustRun(wire.Setup, 0, nil)
	run := &wire.Run{Attempt: testAttempt(wire.Map, 0, 9), Staging: testStaging, Dir: t.TempDir()}
	if err := b.conn.Send(run); err != nil {
		t.Fatal(err)
	}
	<-began
	b.stop()
	if left := listing(b.fs, "mem://t/data"); strings.Contains(left, "attempt") || strings.Contains(left, "a part") {
		t.Errorf("it left %q", left)
	}
}

// TestRecordsEnd checks that the code of an attempt that must end gets no more records, although more
// are in memory. The reduce counts the records of all its groups.
func TestRecordsEnd(t *testing.T) {
	end := func(t *Task) {
		t.cancel(errors.New("unwanted"))
		for !t.pulse.ended.Load() {
			goruntime.Gosched()
		}
	}
	ends, read := true, 0
	job := wordCount()
	words := job.Maps[0]
	job.Maps[0] = func(t *Task, in *Split, out Collector) error {
		if !ends {
			return words(t, in, out)
		}
		for range in.Lines() {
			if read++; read == 1 {
				end(t)
			}
		}
		return nil
	}
	job.Reduce = func(t *Task, in Records) error {
		for in.Next() {
			if read++; read == 1 {
				end(t)
			}
		}
		return nil
	}
	plan := linesPlan()
	plan.Reduces, plan.Combine, plan.Properties = 1, false, nil
	b := newTrackerSim(t, plan, job)
	b.mustRun(wire.Setup, 0, nil)
	check := func(r wire.Result) {
		t.Helper()
		if read != 1 || !strings.Contains(r.Error, "canceled") && !strings.Contains(r.Error, "unwanted") {
			t.Errorf("it read %d records, and its error is %q", read, r.Error)
		}
	}
	check(b.run(wire.Map, 0, nil))
	ends, read = false, 0
	r := b.mustRun(wire.Map, 0, nil)
	file := filepath.Join(b.dir, strconv.Itoa(b.attempts), mapOutputName)
	part := must(shuffle.ReadIndex(file)).Partitions[0]
	check(b.run(wire.Reduce, 0, func(run *wire.Run) {
		run.Runs = []wire.Segment{{Attempt: r.Output.Attempt, File: file, Offset: part.Offset, Length: part.Length}}
	}))
}
