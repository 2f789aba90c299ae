package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// TestFailures checks the errors of failed attempts. Only errors that every attempt would
// have are fatal.
func TestFailures(t *testing.T) {
	boom := func(f MapFunc) Job { return Job{Maps: []MapFunc{f}, Reduce: wordCount().Reduce} }
	cases := map[string]struct {
		job    Job
		change func(*trackerSim)
		kind   wire.Kind
		fatal  bool
		want   []string
	}{
		"panic": {job: boom(func(*Task, *Split, Collector) error { var empty []int; return fmt.Errorf("%d", empty[len(os.Args)]) }),
			kind: wire.Map, want: []string{"panic", "index out of range", "failure_test.go"}},
		"panic at a record": {job: boom(func(_ *Task, in *Split, _ Collector) error {
			for range in.Lines() {
				panic("odd")
			}
			return nil
		}),
			kind: wire.Map, want: []string{"mem://t/in/a, offset 0, line 1: panic: odd\n\n", "failure_test.go"}},
		"goexit": {job: boom(func(*Task, *Split, Collector) error { goruntime.Goexit(); return nil }),
			kind: wire.Map, want: []string{"Goexit"}},
		"output of a map": {job: boom(func(t *Task, _ *Split, _ Collector) error { _, err := t.Output("x"); return err }),
			kind: wire.Map, fatal: true, want: []string{"list the output in Job.Outputs"}},
		"error": {job: boom(func(*Task, *Split, Collector) error { return errors.New("no rose") }),
			kind: wire.Map, want: []string{"no rose"}},
		"partition": {job: boom(func(_ *Task, _ *Split, out Collector) error { return out.Collect(7, nil, nil) }),
			kind: wire.Map, want: []string{"partition 7"}},
		"read error unsaid": {change: func(b *trackerSim) { must(0, b.fs.SetFaults("read /in/*")) },
			job: boom(func(_ *Task, in *Split, _ Collector) error {
				for range in.Lines() {
				}
				return errors.New("no lines")
			}),
			kind: wire.Map, want: []string{"mem://t/in/", "injected"}},
		"input gone": {job: wordCount(), change: func(b *trackerSim) { must(0, b.fs.RemoveAll("mem://t/in")) },
			kind: wire.Map, fatal: true, want: []string{"mem://t/in/a"}},
		"no input": {job: wordCount(), change: func(b *trackerSim) { must(0, b.fs.RemoveAll("mem://t/in")) },
			kind: wire.Setup, fatal: true, want: []string{"mem://t/in"}},
		"unreadable": {job: wordCount(), change: func(b *trackerSim) { must(0, b.fs.SetFaults("open /in/a error=eacces")) },
			kind: wire.Setup, fatal: true, want: []string{"mem://t/in/a", "permission"}},
		"output exists": {job: wordCount(), change: func(b *trackerSim) { putFile(b.fs, testOut+"/x", nil) },
			kind: wire.Setup, fatal: true, want: []string{testOut, "exists"}},
		"full disk": {job: wordCount(), change: func(b *trackerSim) { must(0, b.fs.SetFaults("write /staging/** error=enospc")) },
			kind: wire.Setup, want: []string{testStaging, "no space"}},
		"not deterministic": {job: wordCount(), kind: wire.Map, fatal: true,
			change: func(b *trackerSim) {
				b.sub.Plan.Jobs[0].Properties["x"] = "1"
				b.stop()
				b.stage()
				submitted := b.sub.Plan
				b.sub = &wire.Submission{Plan: submitted}
				tracker, worker := wire.Pipe()
				load := func(*wire.Submission) (*Program, error) {
					p := linesPlan()
					p.Output = testOut
					return &Program{Plan: wire.Plan{Jobs: []wire.JobPlan{p}}, Jobs: b.jobs}, nil
				}
				b.conn, b.served = tracker, make(chan error, 1)
				go func() { b.served <- Serve(context.Background(), worker, load, b.fs, Options{InProcess: true}) }()
				must(tracker.Receive())
			},
			want: []string{`job is not deterministic: field Jobs[0].Properties["x"]: submitted "1", here absent`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plan := linesPlan()
			plan.Combine = c.job.Combine != nil
			b := newTrackerSim(t, plan, c.job)
			if c.kind != wire.Setup {
				b.mustRun(wire.Setup, 0, nil)
			}
			if c.change != nil {
				c.change(b)
			}
			r := b.run(c.kind, 0, nil)
			_ = b.fs.SetFaults("")
			for _, want := range c.want {
				if !strings.Contains(r.Error, want) {
					t.Errorf("error %q lacks %q", r.Error, want)
				}
			}
			if r.Error == "" || r.Fatal != c.fatal {
				t.Errorf("fatal is %v: %s", r.Fatal, r.Error)
			}
			b.mustRun(wire.Cleanup, 0, nil)
			if c.change == nil {
				b.checkOutput("")
			}
		})
	}
}

// TestReduceFailures checks that a failed reduce leaves no output, and that a damaged
// segment is reported as lost. After a fence, the next attempt must commit.
func TestReduceFailures(t *testing.T) {
	plan := linesPlan()
	plan.Reduces, plan.Properties = 1, nil
	b := newTrackerSim(t, plan, wordCount())
	b.mustRun(wire.Setup, 0, nil)
	b.mustRun(wire.Map, 0, nil)
	file := filepath.Join(b.dir, strconv.Itoa(b.attempts), mapOutputName)
	whole := must(shuffle.ReadIndex(file)).Partitions[0]
	segment := wire.Segment{Map: 0, Attempt: 1000 + b.attempts, File: file, Offset: whole.Offset, Length: whole.Length}
	runs := func(run *wire.Run) { run.Runs = []wire.Segment{segment} }

	data := must(os.ReadFile(file))
	data[whole.Offset+whole.Length/2] ^= 1
	must(0, os.WriteFile(file, data, 0o666))
	reduce := b.jobs[0].Reduce
	b.jobs[0].Reduce = func(_ *Task, in Records) error { // ignores the input's error
		for in.Next() {
		}
		panic("too few records")
	}
	r := b.run(wire.Reduce, 0, runs)
	b.jobs[0].Reduce = reduce
	if len(r.Lost) != 1 || !r.Lost[0].Corrupt || r.Lost[0].Map != 0 || r.Lost[0].Attempt != segment.Attempt || r.Fatal {
		t.Errorf("damaged segment: %+v", r)
	}
	data[whole.Offset+whole.Length/2] ^= 1
	must(0, os.WriteFile(file, data, 0o666))

	must(0, b.fs.SetFaults("write /data/** error=enospc times=1 torn=2"))
	if r := b.run(wire.Reduce, 0, runs); !strings.Contains(r.Error, "no space") {
		t.Errorf("full disk: %+v", r)
	}
	if left := listing(b.fs, "mem://t/data"); strings.Contains(left, "/attempt_") { // at once: the disk is full
		t.Errorf("the failed attempt left files: %s", left)
	}
	must(0, b.fs.SetFaults("renamedir /data/** times=1"))
	if r := b.run(wire.Reduce, 0, runs); r.Error == "" {
		t.Error("a failed commit was reported as committed")
	}
	subject := testAttempt(wire.Reduce, 0, b.attempts)
	if r := b.mustRun(wire.Fence, 0, func(run *wire.Run) { run.Subject = subject }); r.Committed {
		t.Error("the fence found a commit")
	}
	must(0, b.fs.SetFaults("renamedir /data/** times=1 done"))
	b.mustRun(wire.Reduce, 0, runs) // committed although its rename reported an error
	subject = testAttempt(wire.Reduce, 0, b.attempts)
	if r := b.mustRun(wire.Fence, 0, func(run *wire.Run) { run.Subject = subject }); !r.Committed || r.Counters.Get(wire.TaskCounters, "REDUCE_OUTPUT_RECORDS") != 7 {
		t.Errorf("the fence found no commit: %+v", r)
	}
	b.mustRun(wire.Commit, 0, nil)
	b.checkOutput("/data/out/ /data/out/_SUCCESS= /data/out/part-r-00000=a\t3\nbe\t2\nis\t2\nnot\t1\nor\t1\nrose\t3\nto\t2\n")
}

// TestFirstOutputErrorStays: an output writes nothing after a failed write, so that a part is not missing
// in the middle of its file.
func TestFirstOutputErrorStays(t *testing.T) {
	for _, binary := range []bool{false, true} {
		w := &failingWriter{}
		file := &countedFile{Writer: w}
		o := &Output{file: file, to: file, binary: binary, pulse: new(pulse)}
		record := BinaryRecord(nil, []byte("key"), make([]byte, 1<<20))
		failed := -1
		for i := range 10 {
			if err := o.Write(record); errors.Is(err, errFailingWriter) != (err != nil) || failed >= 0 && err == nil {
				t.Errorf("binary=%v: write %d: %v", binary, i, err)
			} else if err != nil && failed < 0 {
				failed = i
			}
		}
		if err := o.finish(); !errors.Is(err, errFailingWriter) {
			t.Errorf("binary=%v: finish: %v", binary, err)
		}
		if failed < 0 || w.calls != 1 {
			t.Errorf("binary=%v: write %d has failed first; the file was written %d times, want once", binary, failed, w.calls)
		}
	}
}

var errFailingWriter = errors.New("no space left")

// failingWriter fails the first write.
type failingWriter struct {
	dfs.Writer
	calls int
}

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.calls++; w.calls == 1 {
		return 0, errFailingWriter
	}
	return len(p), nil
}
