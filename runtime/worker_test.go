package runtime

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

const testStaging = "mem://t/staging/s1"

// trackerSim simulates a tracker with one worker.
type trackerSim struct {
	*testing.T
	fs       *mem.FS
	workerFS dfs.FS        // the worker's file system; nil: fs
	progress time.Duration // between two progress messages; 0: a millisecond
	clock    func() time.Time
	onGrant  func() // called before each grant; may be nil
	sub      *wire.Submission
	jobs     []Job
	dir      string

	conn     *wire.Conn
	served   chan error
	attempts int
	grants   int
}

// wordCount is a word count on bytes.
func wordCount() Job {
	return Job{
		Maps: []MapFunc{func(t *Task, in *Split, out Collector) error {
			lines := t.Counter("words", "LINES")
			for line := range in.Lines() {
				lines.Add(1)
				for word := range strings.FieldsSeq(line) {
					p := 0
					if t.Partitions > 1 {
						p = int(word[0]) % t.Partitions
					}
					if err := out.Collect(p, []byte(word), []byte("1")); err != nil {
						return err
					}
				}
			}
			return in.Err()
		}},
		Combine: func(_ *Task, in Records, emit func(key, value []byte) error) error {
			return sum(in, emit)
		},
		Reduce: func(t *Task, in Records) error {
			out, err := t.Output("")
			if err != nil {
				return err
			}
			return sum(in, func(key, value []byte) error {
				return out.Write(fmt.Appendf(nil, "%s\t%s\n", key, value))
			})
		},
	}
}

func sum(in Records, emit func(key, value []byte) error) error {
	var key []byte
	n := 0
	flush := func() error {
		if n == 0 {
			return nil
		}
		return emit(key, strconv.AppendInt(nil, int64(n), 10))
	}
	for in.Next() {
		if n > 0 && !bytes.Equal(in.Key(), key) {
			if err := flush(); err != nil {
				return err
			}
			n = 0
		}
		if n == 0 {
			key = bytes.Clone(in.Key())
		}
		n += must(strconv.Atoi(string(in.Value())))
	}
	return errors.Join(in.Err(), flush())
}

func newTrackerSim(t *testing.T, plan wire.JobPlan, job Job) *trackerSim {
	b := &trackerSim{T: t, fs: mem.New(1 << 20), jobs: []Job{job}, dir: t.TempDir()}
	if plan.Output == "" {
		plan.Output = testOut
	}
	b.sub = &wire.Submission{Key: "k", Staging: testStaging, Plan: wire.Plan{Jobs: []wire.JobPlan{plan}}}
	putFile(b.fs, "mem://t/in/a", []byte("a rose is a rose\nis a rose\n"))
	putFile(b.fs, "mem://t/in/b", []byte("to be or not to be"))
	b.stage()
	b.start()
	return b
}

func (b *trackerSim) stage() {
	putFile(b.fs, dfs.Join(testStaging, wire.StagedSubmission), must(wire.Append(nil, b.sub)))
}

func (b *trackerSim) start() {
	tracker, worker := wire.Pipe()
	b.conn, b.served = tracker, make(chan error, 1)
	all := b.workerFS
	if all == nil {
		all = b.fs
	}
	load := func(sub *wire.Submission) (*Program, error) { return &Program{Plan: sub.Plan, Jobs: b.jobs}, nil }
	opts := Options{InProcess: true, Progress: cmp.Or(b.progress, time.Millisecond), Clock: b.clock}
	go func() { b.served <- Serve(context.Background(), worker, load, all, opts) }()
	m := must(b.conn.Receive())
	if hello, ok := m.(*wire.WorkerHello); !ok || hello.Protocol != wire.WorkerProtocol {
		b.Fatalf("first message: %#v", m)
	}
	b.Cleanup(b.stop)
}

func (b *trackerSim) stop() {
	b.conn.Close()
	select {
	case err := <-b.served:
		if err != nil {
			b.Errorf("worker: %v", err)
		}
		b.served <- nil
	case <-time.After(time.Minute):
		b.Error("the worker did not end with its stream")
	}
}

// run runs one attempt to its end and grants every commit.
func (b *trackerSim) run(kind wire.Kind, n int, more func(*wire.Run)) wire.Result {
	b.Helper()
	return b.runWatched(kind, n, more, func(*wire.WorkerProgress) {})
}

func (b *trackerSim) runWatched(kind wire.Kind, n int, more func(*wire.Run), watch func(*wire.WorkerProgress)) wire.Result {
	b.Helper()
	b.attempts++
	run := &wire.Run{Attempt: testAttempt(kind, n, b.attempts), Staging: testStaging,
		Dir: filepath.Join(b.dir, strconv.Itoa(b.attempts))}
	if more != nil {
		more(run)
	}
	if err := errors.Join(os.MkdirAll(run.Dir, 0o777), b.conn.Send(run)); err != nil {
		b.Fatal(err)
	}
	for {
		m, err := b.conn.Receive()
		if err != nil {
			b.Fatal(err)
		}
		switch m := m.(type) {
		case *wire.WorkerProgress:
			watch(m)
		case *wire.CommitReady:
			b.grants++
			if b.onGrant != nil {
				b.onGrant()
			}
			if err := b.conn.Send(&wire.CommitGranted{}); err != nil {
				b.Fatal(err)
			}
		case *wire.WorkerDone:
			return m.Result
		}
	}
}

func (b *trackerSim) mustRun(kind wire.Kind, n int, more func(*wire.Run)) wire.Result {
	b.Helper()
	r := b.run(kind, n, more)
	if r.Error != "" {
		b.Fatalf("%s %d: %s", kind, n, r.Error)
	}
	return r
}

// runJob runs the whole job and returns the sum of its counters.
func (b *trackerSim) runJob() wire.Counters {
	b.Helper()
	all := make(wire.Counters)
	setup := b.mustRun(wire.Setup, 0, nil)
	plan := b.sub.Plan.Jobs[0]
	runs := make([][]wire.Segment, plan.Reduces)
	for n := range setup.Splits.Maps {
		r := b.mustRun(wire.Map, n, nil)
		all.Merge(r.Counters)
		if plan.Reduces == 0 {
			continue
		}
		file := filepath.Join(b.dir, strconv.Itoa(b.attempts), mapOutputName)
		index, err := shuffle.ReadIndex(file)
		if err != nil {
			b.Fatal(err)
		}
		for p := range runs {
			part := index.Partitions[p]
			runs[p] = append(runs[p], wire.Segment{Map: n, Attempt: r.Output.Attempt, File: file, Offset: part.Offset, Length: part.Length})
		}
	}
	for p := range runs {
		r := b.mustRun(wire.Reduce, p, func(run *wire.Run) { run.Runs = runs[p] })
		all.Merge(r.Counters)
	}
	b.mustRun(wire.Commit, 0, nil)
	return all
}

func (b *trackerSim) checkOutput(want string) {
	b.Helper()
	if got := listing(b.fs, "mem://t/data"); got != want {
		b.Fatalf("output:\ngot  %q\nwant %q", got, want)
	}
}

func linesPlan() wire.JobPlan {
	return wire.JobPlan{Name: "wordcount", Inputs: []wire.InputPlan{{Format: formatLines, Paths: []string{"mem://t/in"}}},
		Reduces: 2, Combine: true, Format: "text", Properties: map[string]string{SplitMaxSize: "12", SortMB: "1"}}
}

func TestWordCount(t *testing.T) {
	b := newTrackerSim(t, linesPlan(), wordCount())
	counters := b.runJob()
	b.checkOutput("/data/out/ /data/out/_SUCCESS= /data/out/part-r-00000=be\t2\nnot\t1\nrose\t3\nto\t2\n " +
		"/data/out/part-r-00001=a\t3\nis\t2\nor\t1\n")
	var got []string
	for group, names := range counters {
		for name, n := range names {
			got = append(got, fmt.Sprintf("%s.%s=%d", group[strings.LastIndexByte(group, '.')+1:], name, n))
		}
	}
	for _, want := range []string{"TaskCounter.MAP_INPUT_RECORDS=3", "TaskCounter.MAP_OUTPUT_RECORDS=14", "words.LINES=3",
		"FileInputFormatCounter.BYTES_READ=45", "TaskCounter.REDUCE_OUTPUT_RECORDS=7", "FileOutputFormatCounter.BYTES_WRITTEN=37"} {
		if !slices.Contains(got, want) {
			t.Errorf("counter %s is missing in %v", want, got)
		}
	}
	if b.grants != 2 {
		t.Errorf("%d grants for 2 reduces", b.grants)
	}
}

func TestEmptyInput(t *testing.T) {
	b := newTrackerSim(t, linesPlan(), wordCount())
	putFile(b.fs, "mem://t/in/a", nil)
	putFile(b.fs, "mem://t/in/b", nil)
	b.runJob()
	b.checkOutput("/data/out/ /data/out/_SUCCESS= /data/out/part-r-00000= /data/out/part-r-00001=")
}

func TestMapOnlyWithNamedOutput(t *testing.T) {
	plan := linesPlan()
	plan.Reduces, plan.Combine, plan.Outputs = 0, false, []string{"short"}
	plan.Files = map[string]string{"names": "mem://t/side", "many": "mem://t/more{/*,.tbl}"}
	job := Job{Maps: []MapFunc{func(t *Task, in *Split, out Collector) error {
		path, err := t.File("names")
		if err != nil {
			return err
		}
		side := must(os.ReadFile(path))
		many, err := t.File("many")
		if err != nil {
			return err
		}
		side = append(side, must(os.ReadFile(many))...)
		parts, err := t.Parts("many")
		if err != nil || len(parts) != 2 {
			return fmt.Errorf("parts %v, error %v", parts, err)
		}
		for i, want := range []string{"mem://t/more/a ?", "mem://t/more/b ."} {
			if got := parts[i].URL + " " + string(must(os.ReadFile(parts[i].Path))); got != want {
				return fmt.Errorf("part %q, want %q", got, want)
			}
		}
		for line := range in.Lines() {
			name := ""
			if len(line) < 12 {
				name = "short"
			}
			out, err := t.Output(name)
			if err != nil {
				return err
			}
			if err := out.Write([]byte(line + string(side))); err != nil {
				return err
			}
		}
		if _, err := t.Parts("other"); err == nil || !strings.Contains(err.Error(), `"other": not declared`) {
			return fmt.Errorf("undeclared side file: %v", err)
		}
		_, err = t.Output("other")
		if err == nil || !strings.Contains(err.Error(), "other") {
			return fmt.Errorf("undeclared output: %v", err)
		}
		return nil
	}}}
	b := newTrackerSim(t, plan, job)
	putFile(b.fs, "mem://t/side", []byte("!"))
	putFile(b.fs, "mem://t/more/a", []byte("?"))
	putFile(b.fs, "mem://t/more/b", []byte("."))
	counters := b.runJob()
	b.checkOutput("/data/out/ /data/out/_SUCCESS= /data/out/part-m-00000=a rose is a rose!?. /data/out/part-m-00001= /data/out/part-m-00002= " +
		"/data/out/part-m-00003=to be or not to be!?. /data/out/part-m-00004= /data/out/short-m-00001=is a rose!?.")
	if n := counters.Get(wire.TaskCounters, "MAP_INPUT_RECORDS"); n != 3 {
		t.Errorf("%d input records", n)
	}
}

// TestTotalOrder checks that the partitions of a total order are ranges found by sampling.
func TestTotalOrder(t *testing.T) {
	plan := linesPlan()
	plan.TotalOrder, plan.Combine, plan.Reduces = true, false, 3
	job := wordCount()
	job.Combine = nil
	job.Maps[0] = func(t *Task, in *Split, out Collector) error {
		for line := range in.Lines() {
			for word := range strings.FieldsSeq(line) {
				p := 0
				for p < len(t.Cuts) && bytes.Compare(t.Cuts[p], []byte(word)) <= 0 {
					p++
				}
				if err := out.Collect(p, []byte(word), []byte("1")); err != nil {
					return err
				}
			}
		}
		return nil
	}
	b := newTrackerSim(t, plan, job)
	b.runJob()
	b.checkOutput("/data/out/ /data/out/_SUCCESS= /data/out/part-r-00000=a\t3\n /data/out/part-r-00001=be\t2\nis\t2\nnot\t1\nor\t1\n " +
		"/data/out/part-r-00002=rose\t3\nto\t2\n")
}

// TestStreamEnds checks that an attempt's context is cancelled when the stream ends.
func TestStreamEnds(t *testing.T) {
	began := make(chan struct{})
	job := Job{Reduce: wordCount().Reduce, Maps: []MapFunc{func(t *Task, in *Split, out Collector) error {
		close(began)
		<-t.Ctx.Done()
		return t.Ctx.Err()
	}}}
	plan := linesPlan()
	plan.Combine = false
	b := newTrackerSim(t, plan, job)
	b.mustRun(wire.Setup, 0, nil)
	if err := b.conn.Send(&wire.Run{Attempt: testAttempt(wire.Map, 0, 9), Staging: testStaging, Dir: b.dir}); err != nil {
		t.Fatal(err)
	}
	<-began
	b.stop() // fails unless the worker ends
}

// TestActivity checks that Activity grows while records are read, and only then.
func TestActivity(t *testing.T) {
	step := make(chan struct{})
	job := Job{Reduce: wordCount().Reduce, Maps: []MapFunc{func(t *Task, in *Split, out Collector) error {
		c := t.Counter("a", "b")
		for range step {
			c.Add(1)
		}
		return nil
	}}}
	plan := linesPlan()
	plan.Combine = false
	b := newTrackerSim(t, plan, job)
	b.mustRun(wire.Setup, 0, nil)
	if err := b.conn.Send(&wire.Run{Attempt: testAttempt(wire.Map, 0, 9), Staging: testStaging, Dir: b.dir}); err != nil {
		t.Fatal(err)
	}
	progress := func() uint64 {
		m, ok := must(b.conn.Receive()).(*wire.WorkerProgress)
		if !ok {
			t.Fatal("no progress")
		}
		return m.Activity
	}
	idle := progress()
	for range 5 {
		idle = progress()
	}
	if next := progress(); next != idle {
		t.Errorf("activity grew from %d to %d without work", idle, next)
	}
	for range 3 {
		step <- struct{}{}
		for before := idle; idle == before; {
			idle = progress()
		}
	}
	close(step)
	for {
		if done, ok := must(b.conn.Receive()).(*wire.WorkerDone); ok {
			if done.Result.Error != "" {
				t.Error(done.Result.Error)
			}
			return
		}
	}
}

// TestCutsOfLongKeys checks that cuts are short for keys of any length, because every task
// reads all of them.
func TestCutsOfLongKeys(t *testing.T) {
	all := &sampler{sample: placeSample([]int64{1 << 30}, sampledPlaces, true)}
	for i := range 20 {
		key := bytes.Repeat([]byte{byte('a' + i)}, 1<<20)
		if err := all.Collect(0, key, nil); err != nil {
			t.Fatal(err)
		}
	}
	cuts := chooseCuts(all.sample, 1000)
	size := 0
	for _, c := range cuts {
		size += len(c)
	}
	if size > maxCutsFile/8 {
		t.Errorf("%d cuts take %d bytes", len(cuts), size)
	}
	if first, last := cuts[0][0], cuts[len(cuts)-1][0]; first != 'a' || last != 'a'+19 {
		t.Errorf("cuts from %c to %c", first, last)
	}
}

// TestSampledPlaces checks that the sample of one long split comes from all its parts, in
// every format.
func TestSampledPlaces(t *testing.T) {
	const lines, width = 1 << 20, 8
	f := mem.New(1 << 30)
	var content []byte
	var records []pair
	for i := range lines {
		content = fmt.Appendf(content, "%07d\n", i)
		records = append(records, pair{content[len(content)-width : len(content)-1 : len(content)-1], nil})
	}
	putFile(f, "mem://t/text", content)
	writeBinary(t, f, "mem://t/binary", records)
	for format, read := range map[string]func(s *Split, yield func([]byte)){
		formatLines: func(s *Split, yield func([]byte)) {
			for line := range s.Lines() {
				yield([]byte(line))
			}
		},
		formatRecords: func(s *Split, yield func([]byte)) {
			for r := range s.Records(width) {
				yield(r)
			}
		},
		formatBinary: func(s *Split, yield func([]byte)) {
			for key := range s.Binary() {
				yield(key)
			}
		},
	} {
		name := "mem://t/text"
		if format == formatBinary {
			name = "mem://t/binary"
		}
		in := wire.InputPlan{Paths: []string{name}, Format: format, RecordSize: width}
		splits := reader(t, f, in, splitSettings(1<<30), blockSize)
		if len(splits) != 1 {
			t.Fatalf("%d splits", len(splits))
		}
		s := placeSample([]int64{splits[0].length()}, sampledPlaces, true)
		splits[0].limit(formatOf(splits[0].in), s.splits[0].places, s.length)
		eighths, n := map[int]bool{}, 0
		read(splits[0], func(record []byte) {
			eighths[must(strconv.Atoi(string(record[:width-1])))*8/lines] = true
			n++
		})
		if splits[0].Err() != nil || len(eighths) != 8 || n > 2*sampledBytes/width {
			t.Errorf("%s: %d records from %d eighths, %v", format, n, len(eighths), splits[0].Err())
		}
	}
}
