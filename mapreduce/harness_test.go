package mapreduce

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/runtime/search"
	"github.com/quernmr/quern/wire"
)

// jobRunner runs compiled jobs in memory. It overwrites every byte slice that it passes
// to functions as early as allowed, so that wrongly kept strings and slices change.
type jobRunner struct {
	files      map[string]string // by URL below file:///w/
	inputs     []string          // -input
	properties map[string]string
	splitLines int // of a split; 0: all
	noCombine  bool
	spread     [][]byte // keys that a join spreads

	written  map[string]*bytes.Buffer // by "job/part-r-00000"
	counters map[string]int64         // by name, of all jobs
	hot      []*wire.Hot              // by reduce, of the last job
}

// run returns the outputs by "job/part-r-00000".
func (b *jobRunner) run(c bridge.Compiler) (map[string]string, error) {
	var jobs []*Job
	switch c := c.(type) {
	case *Job:
		jobs = []*Job{c}
	case *Flow:
		jobs = c.Jobs
	}
	inputs := b.inputs
	if inputs == nil {
		inputs = []string{"in"}
	}
	compiled, err := analyse(jobs, bridge.Settings{Inputs: inputs, Output: "out", Properties: b.properties, Dir: "/w", NoCombine: b.noCombine})
	if err != nil {
		return nil, err
	}
	b.written, b.counters = make(map[string]*bytes.Buffer), make(map[string]int64)
	for i := range compiled.plans {
		r := &jobRun{jobRunner: b, plan: &compiled.plans[i], plans: compiled.plans}
		r.code = compiled.code(i, func(t *mrruntime.Task) host { return &fakeHost{Task: t, run: r} })
		if err := r.run(); err != nil {
			return nil, err
		}
		for _, end := range r.ends {
			if err := end(); err != nil {
				return nil, err
			}
		}
	}
	out := make(map[string]string)
	for name, buf := range b.written {
		out[name] = buf.String()
	}
	return out, nil
}

type jobRun struct {
	*jobRunner
	plan  *wire.JobPlan
	plans []wire.JobPlan
	code  jobCode
	ends  []func() error // of the files of a FileFormat
}

func (r *jobRun) task(kind wire.Kind, n int, cuts [][]byte) *mrruntime.Task {
	t := &mrruntime.Task{Ctx: nil, ID: wire.AttemptID{Task: wire.TaskID{Job: wire.JobID{Start: 1, N: 1}, Kind: kind, N: n}, N: wire.EpochAttempts},
		Plan: r.plan, Partitions: r.plan.Reduces, Cuts: cuts}
	if r.spread != nil && kind == wire.Map {
		t.Division = &mrruntime.Division{Spread: r.spread}
	}
	return t
}

func (r *jobRun) run() error {
	var cuts [][]byte
	if r.plan.TotalOrder {
		sample := &fakeCollector{parts: make([][]record, 1)}
		if err := r.maps(sample, nil); err != nil {
			return err
		}
		all := sample.sorted(0)
		for i := 1; i < r.plan.Reduces; i++ {
			cuts = append(cuts, all[len(all)*i/r.plan.Reduces].key)
		}
	}
	out := &fakeCollector{parts: make([][]record, max(r.plan.Reduces, 1))}
	if err := r.maps(out, cuts); err != nil {
		return err
	}
	for p := range r.plan.Reduces {
		t := r.task(wire.Reduce, p, cuts)
		in := &measuredInput{fakeRecords{all: out.sorted(p)}, mrruntime.NewGroups(0)}
		err := r.code.reduce(t, in)
		r.hot = append(r.hot, in.groups.Hot(nil))
		r.addCounters(t, "REDUCE_INPUT_GROUPS")
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *jobRun) addCounters(t *mrruntime.Task, names ...string) {
	for _, name := range append(names, "mine") {
		group := wire.TaskCounters
		if name == "mine" {
			group = "test"
		}
		r.counters[name] += t.Counter(group, name).Value()
	}
}

// maps runs all maps into out, with the combiner on each map's output.
func (r *jobRun) maps(out *fakeCollector, cuts [][]byte) error {
	n := 0
	for i, in := range r.plan.Inputs {
		for _, split := range r.splits(&in) {
			t := r.task(wire.Map, n, cuts)
			n++
			if r.plan.Reduces == 0 {
				if err := r.code.maps[i](t, split, nil); err != nil {
					return err
				}
				r.addCounters(t)
				continue
			}
			mapOutput := &fakeCollector{parts: make([][]record, r.plan.Reduces)}
			if err := r.code.maps[i](t, split, mapOutput); err != nil {
				return err
			}
			r.addCounters(t, "MAP_OUTPUT_RECORDS", "COMBINE_INPUT_RECORDS")
			for p := range mapOutput.parts {
				r.counters["MAP_OUTPUT_RECORDS"] += int64(len(mapOutput.parts[p]))
				if err := r.combine(t, mapOutput, p, out); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *jobRun) combine(t *mrruntime.Task, mapOutput *fakeCollector, p int, out *fakeCollector) error {
	to := p % len(out.parts) // a sample has one partition
	if r.code.combine == nil {
		out.parts[to] = append(out.parts[to], mapOutput.parts[p]...)
		return nil
	}
	var last []byte
	return r.code.combine(t, &fakeRecords{all: mapOutput.sorted(p)}, func(key, value []byte) error {
		if bytes.Compare(key, last) < 0 {
			return fmt.Errorf("combiner emits %x after %x", key, last)
		}
		last = bytes.Clone(key)
		return out.Collect(to, key, value)
	})
}

// splits divides the text of an input into splits of r.lines lines.
func (r *jobRun) splits(in *wire.InputPlan) []*fakeSplit {
	var splits []*fakeSplit
	if in.From > 0 {
		for _, name := range slices.Sorted(mapKeys(r.written)) {
			if strings.HasPrefix(name, r.plans[in.From-1].Name+"/part-") {
				splits = append(splits, &fakeSplit{path: name, text: r.written[name].String()})
			}
		}
		return splits
	}
	for _, path := range in.Paths {
		text, ok := r.files[strings.TrimPrefix(path, "file:///w/")]
		if !ok {
			panic("no file " + path)
		}
		if r.splitLines == 0 || in.Format == "files" {
			splits = append(splits, &fakeSplit{path: path, text: text})
			continue
		}
		if in.Format == "records" {
			for part := range slices.Chunk([]byte(text), r.splitLines*in.RecordSize) {
				splits = append(splits, &fakeSplit{path: path, text: string(part)})
			}
			continue
		}
		for part := range slices.Chunk(slices.Collect(strings.Lines(text)), r.splitLines) {
			splits = append(splits, &fakeSplit{path: path, text: strings.Join(part, "")})
		}
	}
	return splits
}

func mapKeys[V any](m map[string]V) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

type record struct{ key, value []byte }

type fakeCollector struct {
	parts    [][]record
	distinct bool
	err      error
}

func (c *fakeCollector) Distinct() { c.distinct = true }

func (c *fakeCollector) Collect(p int, key, value []byte) error {
	if c.err != nil {
		return c.err
	}
	c.parts[p] = append(c.parts[p], record{bytes.Clone(key), bytes.Clone(value)})
	return nil
}

func (c *fakeCollector) sorted(p int) []record {
	slices.SortStableFunc(c.parts[p], func(a, b record) int { return bytes.Compare(a.key, b.key) })
	return c.parts[p]
}

// fakeRecords returns every record in the same buffers.
type fakeRecords struct {
	all        []record
	key, value []byte
	failAfter  int // records until a reading error; 0: none
	n          int
	err        error
}

func (r *fakeRecords) Next() bool {
	overwrite(r.key)
	overwrite(r.value)
	if r.n == len(r.all) {
		return false
	}
	if r.failAfter > 0 && r.n == r.failAfter {
		r.err = errors.New("broken segment")
		return false
	}
	r.key = append(r.key[:0], r.all[r.n].key...)
	r.value = append(r.value[:0], r.all[r.n].value...)
	r.n++
	return true
}

func (r *fakeRecords) Key() []byte   { return r.key }
func (r *fakeRecords) Value() []byte { return r.value }
func (r *fakeRecords) Err() error    { return r.err }

// measuredInput is the input of a reduce, with its groups.
type measuredInput struct {
	fakeRecords
	groups *mrruntime.Groups
}

func (r *measuredInput) Next() bool {
	more := r.fakeRecords.Next()
	if more {
		r.groups.Next(len(r.key) + len(r.value))
	} else {
		r.groups.Next(0)
	}
	return more
}

func (r *measuredInput) Groups() *mrruntime.Groups { return r.groups }

func overwrite(b []byte) {
	for i := range b {
		b[i] = 0xDB
	}
}

type fakeSplit struct {
	path, text string
	failAfter  int // lines until a reading error; 0: none
	records    int
	err        error
}

func (s *fakeSplit) Lines() iter.Seq[string] {
	return func(yield func(string) bool) {
		n := 0
		for line := range strings.Lines(s.text) {
			if s.failAfter > 0 && n == s.failAfter {
				s.err = errors.New("broken disk")
				return
			}
			n++
			if !yield(strings.TrimSuffix(line, "\n")) {
				return
			}
		}
	}
}

func (s *fakeSplit) Records(size int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		buf := make([]byte, size)
		for part := range slices.Chunk([]byte(s.text), size) {
			copy(buf, part)
			if !yield(buf) {
				return
			}
			overwrite(buf)
		}
	}
}

func (s *fakeSplit) Files() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		content := []byte(s.text)
		yield(s.path, content)
		overwrite(content)
	}
}

func (s *fakeSplit) Binary() iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		rest := []byte(s.text)
		length := func() int {
			n, size := binary.Uvarint(rest)
			rest = rest[size:]
			return int(n)
		}
		for len(rest) > 0 {
			key, value := length(), length()
			k, v := bytes.Clone(rest[:key]), bytes.Clone(rest[key:key+value])
			rest = rest[key+value:]
			if !yield(k, v) {
				return
			}
			overwrite(k)
			overwrite(v)
		}
	}
}

func (s *fakeSplit) Chunks() []mrruntime.Chunk {
	return []mrruntime.Chunk{{Path: s.path, Length: int64(len(s.text)), Size: int64(len(s.text))}}
}

type fakeFile struct{ *strings.Reader }

func (fakeFile) Close() error { return nil }

func (s *fakeSplit) Open(mrruntime.Chunk) (mrruntime.ReadAtCloser, error) {
	return fakeFile{strings.NewReader(s.text)}, nil
}

func (s *fakeSplit) CountRecord() (more, skip bool) {
	s.records++
	return true, false
}

func (s *fakeSplit) EndRecords() {}

func (s *fakeSplit) Stream(mrruntime.Chunk) (io.ReadCloser, error) {
	return fakeFile{strings.NewReader(s.text)}, nil
}

func (s *fakeSplit) Only(search.Predicate)  {}
func (s *fakeSplit) Where() string          { return "" }
func (s *fakeSplit) Place() (string, int64) { return "", -1 }
func (s *fakeSplit) Line() (int64, error)   { return 0, nil }
func (s *fakeSplit) At(int64, int64)        {}
func (s *fakeSplit) Err() error             { return s.err }

// fakeHost is an attempt with its outputs in memory.
type fakeHost struct {
	*mrruntime.Task
	run *jobRun
}

func (h *fakeHost) open(name string) (recordWriter, error) {
	file := fmt.Sprintf("%s/%s-%c-%05d", h.run.plan.Name, cmp.Or(name, "part"), h.ID.Task.Kind.String()[0], h.ID.Task.N)
	buf := h.run.written[file]
	if buf == nil {
		buf = new(bytes.Buffer)
		h.run.written[file] = buf
	}
	return fakeOutput{buf}, nil
}

func (h *fakeHost) container(name, suffix string, begin func(io.Writer) (func() error, error)) (recordCounter, error) {
	out, err := h.open(name)
	if err != nil {
		return nil, err
	}
	file := out.(fakeOutput)
	end, err := begin(file.Buffer)
	h.run.ends = append(h.run.ends, end)
	return file, err
}

func (h *fakeHost) sideInput(names []string, in *wire.InputPlan, _ mrruntime.Format) (splitReader, error) {
	split := &fakeSplit{}
	for _, name := range names {
		if from := h.run.plan.SideResult(name); from > 0 {
			for _, part := range h.run.splits(&wire.InputPlan{From: from}) {
				split.text, split.path = split.text+part.text, part.path
			}
			continue
		}
		split.text += h.run.files[strings.TrimPrefix(h.run.plan.Files[name], "file:///w/")]
		split.path = h.run.plan.Files[name]
	}
	return split, nil
}

type fakeOutput struct{ *bytes.Buffer }

func (fakeOutput) Counted(err error) error { return err }

func (o fakeOutput) Write(record []byte) error {
	o.Buffer.Write(record)
	return nil
}

// mainText returns the job's main output: its part files, in order.
func mainText(out map[string]string, job string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(mapKeys(out)) {
		if strings.HasPrefix(name, job+"/part-") {
			b.WriteString(out[name])
		}
	}
	return b.String()
}

// checkOutput checks that a job has the wanted output on splits of every size, with and
// without its combiner.
func checkOutput(t *testing.T, make func() bridge.Compiler, files map[string]string, job, want string) {
	t.Helper()
	for _, lines := range []int{0, 1, 2} {
		for _, noCombine := range []bool{false, true} {
			b := &jobRunner{files: files, splitLines: lines, noCombine: noCombine}
			out, err := b.run(make())
			if err != nil {
				t.Fatalf("splits of %d lines: %v", lines, err)
			}
			if got := mainText(out, job); got != want {
				t.Errorf("splits of %d lines, combiner off %v:\n%s\nwant\n%s", lines, noCombine, got, want)
			}
		}
	}
}

// checkError runs a job and checks that its error has these words.
func checkError(t *testing.T, c bridge.Compiler, b *jobRunner, words ...string) {
	t.Helper()
	_, err := b.run(c)
	if err == nil {
		t.Errorf("no error, want %q", words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q, want %q in it", err, w)
		}
	}
}
