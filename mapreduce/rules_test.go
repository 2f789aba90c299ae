package mapreduce

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// TestJoinInPieces: a join's function may read a side in part, in pieces, or not at all.
func TestJoinInPieces(t *testing.T) {
	side := func(path string) *Pairs[string, string] {
		return Map(KeyValues(path), func(_ *Task, kv Pair[string, string], emit func(string, string)) error {
			emit(kv.A, kv.B)
			return nil
		})
	}
	for name, c := range map[string]struct {
		read func(as, bs iter.Seq[string]) string
		want string
	}{
		"neither":    {func(as, bs iter.Seq[string]) string { return "" }, "x\t\ny\t\nz\t\n"},
		"right only": {func(_, bs iter.Seq[string]) string { return strings.Join(collectSeq(bs, 9), ",") }, "x\t3,4\ny\t\nz\t5\n"},
		"one left":   {func(as, bs iter.Seq[string]) string { return fmt.Sprint(collectSeq(as, 1), collectSeq(bs, 1)) }, "x\t[1] [3]\ny\t[2] []\nz\t[] [5]\n"},
		"in pieces": {func(as, bs iter.Seq[string]) string {
			return fmt.Sprint(collectSeq(as, 1), collectSeq(as, 9), collectSeq(bs, 1), collectSeq(bs, 9))
		}, "x\t[1] [1b] [3] [4]\ny\t[2] [] [] []\nz\t[] [] [5] []\n"},
	} {
		t.Run(name, func(t *testing.T) {
			b := &jobRunner{files: map[string]string{"a": "x\t1\ny\t2\nx\t1b\n", "b": "x\t3\nx\t4\nz\t5\n"}}
			out, err := b.run(Join(side("a"), side("b"), func(_ *Task, k string, as, bs iter.Seq[string], emit func(string, string)) error {
				emit(k, c.read(as, bs))
				return nil
			}).Job("j"))
			// A second range over a side after its end is an error.
			if name == "in pieces" {
				if err == nil || !strings.Contains(err.Error(), "again after their end") {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := mainText(out, "j"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestJoinInOrder: if one side of a join has a total order, both sides get the same partitions, and
// the part files together are sorted.
func TestJoinInOrder(t *testing.T) {
	var lines, want strings.Builder
	for i := range 200 {
		fmt.Fprintf(&lines, "%03d\tx\n", i*37%200)
		fmt.Fprintf(&want, "%03d\t[x] [x]\n", i)
	}
	for _, left := range []bool{true, false} {
		side := func(path string, ordered bool) *Pairs[string, string] {
			pairs := Map(KeyValues(path), func(_ *Task, kv Pair[string, string], emit func(string, string)) error {
				emit(kv.A, kv.B)
				return nil
			})
			if ordered {
				pairs.TotalOrder()
			}
			return pairs
		}
		b := &jobRunner{
			files: map[string]string{"a": lines.String(), "b": lines.String()}, splitLines: 50,
			properties: map[string]string{"mapreduce.job.reduces": "3"},
		}
		out, err := b.run(Join(side("a", left), side("b", !left), func(_ *Task, k string, as, bs iter.Seq[string], emit func(string, string)) error {
			emit(k, fmt.Sprint(collectSeq(as, 9), collectSeq(bs, 9)))
			return nil
		}).Job("j"))
		if err != nil {
			t.Fatal(err)
		}
		if got := mainText(out, "j"); got != want.String() {
			t.Errorf("left side in order: %v: got %.100q, want %.100q", left, got, want.String())
		}
	}
}

// collectSeq takes up to n elements.
func collectSeq(s iter.Seq[string], n int) (all []string) {
	for v := range s {
		if all = append(all, v); len(all) == n {
			break
		}
	}
	return all
}

// TestLateEmit: emit and Write after the return of the function fail the attempt; after
// the end of the attempt they panic.
func TestLateEmit(t *testing.T) {
	b := &jobRunner{files: map[string]string{"in": "a\nb\n"}}
	var saved func(string, int64)
	var keptTask *Task
	between := NewInput("two", twoRecords(func() { saved("late", 1) }))
	checkError(t, MapOnly(Map(between, func(_ *Task, _ string, emit func(string, int64)) error {
		saved = emit
		return nil
	})).Job("j"), b, "emit was called after")
	between = NewInput("two", twoRecords(func() { Write(keptTask, "o", 1, 2) }))
	job := MapOnly(Map(between, func(t *Task, _ string, emit func(string, int64)) error {
		keptTask = t
		return nil
	})).Job("j")
	job.Outputs = []string{"o"}
	checkError(t, job, b, "Write was called after")

	for name, job := range map[string]*Job{
		"map": Fold(Map(Lines(), func(_ *Task, _ string, emit func(string, int64)) error { saved = emit; return nil }), Sum).Job("j"),
		"reduce": Reduce(wordPairs(), func(_ *Task, _ string, _ iter.Seq[int64], emit func(string, int64)) error {
			saved = emit
			return nil
		}).Job("j"),
	} {
		if _, err := b.run(job); err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "emit was called after") {
					t.Errorf("%s: panic %v", name, r)
				}
			}()
			saved("much too late", 1)
		}()
	}
}

// twoRecords returns the read function of a format with two records; it calls between
// before the second.
func twoRecords(between func()) func(Split, io.ReaderAt) iter.Seq2[string, error] {
	return func(Split, io.ReaderAt) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			if yield("one", nil) {
				between()
				yield("two", nil)
			}
		}
	}
}

// TestFirstErrorWins: read errors come before errors of the author's function.
func TestFirstErrorWins(t *testing.T) {
	broken := errors.New("disk is full")
	pairs := Map(Lines(), func(_ *Task, line string, emit func(string, int64)) error {
		emit(line, 1)
		return errors.New("of the author")
	})
	task := &mrruntime.Task{Partitions: 1}
	spec := &jobSpec{format: Text{}, host: func(t *mrruntime.Task) host { return &fakeHost{Task: t} }}
	run := func(in *fakeSplit, out *fakeCollector) error {
		return pairs.wholeKeys().maps(spec)[0](task, in, out)
	}
	parts := make([][]record, 1)
	if err := run(&fakeSplit{text: "a\n"}, &fakeCollector{parts: parts}); err == nil || err.Error() != "of the author" {
		t.Errorf("author's error: %v", err)
	}
	if err := run(&fakeSplit{text: "a\n"}, &fakeCollector{parts: parts, err: broken}); !errors.Is(err, broken) {
		t.Errorf("collector's error: %v", err)
	}

	sum := MapSplit(Lines(), func(_ *Task, lines iter.Seq[string], emit func(string, int64)) error {
		n := 0
		for range lines {
			n++
		}
		return fmt.Errorf("want 3 lines, got %d", n)
	})
	in := &fakeSplit{text: "a\nb\nc\n", failAfter: 1}
	if err := sum.wholeKeys().maps(spec)[0](task, in, &fakeCollector{parts: parts}); err == nil || err.Error() != "broken disk" {
		t.Errorf("reader's error: %v", err)
	}
}

// TestBrokenPartition: a read error ends every kind of reduce.
func TestBrokenPartition(t *testing.T) {
	key, one := func(s string) []byte { return []byte(s) }, int64Codec.append(nil, 1)
	in := []record{{key("a"), one}, {key("a"), one}, {key("b"), one}}
	for name, r := range map[string]*Result[string, int64]{
		"fold": Fold(wordPairs(), Sum),
		"sort": Sort(wordPairs()),
		"reduce": Reduce(wordPairs(), func(_ *Task, w string, ones iter.Seq[int64], emit func(string, int64)) error {
			for range ones {
			}
			return nil
		}),
		"all": ReduceAll(wordPairs(), func(_ *Task, groups iter.Seq2[string, iter.Seq[int64]], emit func(string, int64)) error {
			for range groups {
			}
			return errors.New("groups are missing")
		}),
	} {
		run := &jobRun{jobRunner: &jobRunner{written: map[string]*bytes.Buffer{}}, plan: &wire.JobPlan{Name: "j"}}
		spec := &jobSpec{format: Text{}, host: func(t *mrruntime.Task) host { return &fakeHost{Task: t, run: run} }}
		reduce := r.stage.reduce(spec)
		for after := 1; after <= 2; after++ {
			err := reduce(&mrruntime.Task{ID: wire.AttemptID{Task: wire.TaskID{Kind: wire.Reduce}}, Plan: run.plan}, &fakeRecords{all: in, failAfter: after})
			if err == nil || err.Error() != "broken segment" {
				t.Errorf("%s after %d records: %v", name, after, err)
			}
		}
		bad := []record{{key("a"), []byte{1, 2}}, {key("a"), one}}
		err := reduce(&mrruntime.Task{ID: wire.AttemptID{Task: wire.TaskID{Kind: wire.Reduce}}, Plan: run.plan}, &fakeRecords{all: bad})
		if name != "all" && (err == nil || !strings.Contains(err.Error(), "decode int64 from 2 bytes")) {
			t.Errorf("%s with a bad value: %v", name, err)
		}
	}
}

// TestBrokenPairs: a read error ends joins and sorted reduces, which have keys of two
// parts.
func TestBrokenPairs(t *testing.T) {
	drain := func(vals iter.Seq[int64]) {
		for range vals {
		}
	}
	join := Join(wordPairs(), wordPairs(), func(_ *Task, _ string, as, bs iter.Seq[int64], _ func(string, int64)) error {
		drain(as)
		drain(bs)
		return errors.New("values are missing")
	})
	byPair := Map(Lines(), func(*Task, string, func(Pair[string, int64], int64)) error { return nil })
	sorted := ReduceSorted(byPair, func(_ *Task, _ string, vals iter.Seq2[int64, int64], _ func(string, int64)) error {
		for range vals {
		}
		return errors.New("values are missing")
	})
	one := int64Codec.append(nil, 1)
	second := string(one) // the second part of a pair
	for name, c := range map[string]struct {
		stage stage
		in    []record
	}{
		"join, left":  {join.stage, []record{{[]byte("a\x00\x00"), one}, {[]byte("a\x00\x00"), one}, {[]byte("a\x00\x01"), one}}},
		"join, right": {join.stage, []record{{[]byte("a\x00\x01"), one}, {[]byte("a\x00\x01"), one}}},
		"sorted":      {sorted.stage, []record{{[]byte("a\x00" + second), one}, {[]byte("a\x00" + second), one}}},
	} {
		run := &jobRun{jobRunner: &jobRunner{written: map[string]*bytes.Buffer{}}, plan: &wire.JobPlan{Name: "j"}}
		spec := &jobSpec{format: Text{}, host: func(t *mrruntime.Task) host { return &fakeHost{Task: t, run: run} }}
		err := c.stage.reduce(spec)(&mrruntime.Task{ID: wire.AttemptID{Task: wire.TaskID{Kind: wire.Reduce}}, Plan: run.plan}, &fakeRecords{all: c.in, failAfter: 1})
		if err == nil || err.Error() != "broken segment" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPlanErrors: wrong jobs are refused before anything runs.
func TestPlanErrors(t *testing.T) {
	ok := &jobRunner{files: map[string]string{"in": "a\n"}}
	edit := func(f func(*Job)) *Job {
		j := Fold(wordPairs(), Sum).Job("j")
		f(j)
		return j
	}
	counts := Fold(wordPairs(), Sum)
	fromCounts := func() *Pairs[string, int64] {
		return Map(From(counts), func(_ *Task, p Pair[string, int64], emit func(string, int64)) error { return nil })
	}
	textCounts := counts.Job("counts")
	textCounts.Format = Text{}
	addrs := Map(Lines(), func(_ *Task, _ string, emit func(netip.Addr, int64)) error { return nil })
	emitsAddrs := Reduce(wordPairs(), func(_ *Task, _ string, _ iter.Seq[int64], emit func(string, netip.Addr)) error { return nil })
	byPair := Map(Lines(), func(_ *Task, _ string, emit func(Pair[string, int64], int64)) error { return nil })
	sorted := func(p *Pairs[Pair[string, int64], int64]) *Job {
		return ReduceSorted(p, func(*Task, string, iter.Seq2[int64, int64], func(string, int64)) error { return nil }).Job("j")
	}
	joined := func(a, b *Pairs[string, int64]) *Job {
		return Join(a, b, func(*Task, string, iter.Seq[int64], iter.Seq[int64], func(string, int64)) error { return nil }).Job("j")
	}
	one := func(string, int) int { return 0 }
	for name, c := range map[string]struct {
		job   bridge.Compiler
		words []string
	}{
		"no name":            {Fold(wordPairs(), Sum).Job(""), []string{"no name"}},
		"bad name":           {Fold(wordPairs(), Sum).Job("a/b"), []string{`"a/b"`}},
		"long name":          {Fold(wordPairs(), Sum).Job(strings.Repeat("n", 201)), []string{"nnn…", "201 bytes"}},
		"long output":        {edit(func(j *Job) { j.Outputs = []string{strings.Repeat("o", 201)} }), []string{"Job.Outputs", "ooo…", "201 bytes"}},
		"no result":          {&Job{Name: "j"}, []string{"not made by the Job method"}},
		"negative reduces":   {edit(func(j *Job) { j.Reduces = -1 }), []string{"job j", "-1"}},
		"two reduces":        {edit(func(j *Job) { j.Reduces = 2; j.Properties = map[string]string{"mapreduce.job.reduces": "3"} }), []string{"2", "mapreduce.job.reduces=3"}},
		"bad property":       {edit(func(j *Job) { j.Properties = map[string]string{"mapreduce.task.timeout": "soon"} }), []string{"Job.Properties", "mapreduce.task.timeout", "soon"}},
		"unknown quern":      {edit(func(j *Job) { j.Properties = map[string]string{"quern.task.timeout": "1"} }), []string{"quern.task.timeout", "mapreduce.task.timeout"}},
		"output named part":  {edit(func(j *Job) { j.Outputs = []string{"part"} }), []string{"part"}},
		"output twice":       {edit(func(j *Job) { j.Outputs = []string{"a", "a"} }), []string{`"a" twice`}},
		"side file":          {edit(func(j *Job) { j.Files = map[string]string{"a/b": "x"} }), []string{`"a/b"`}},
		"format name":        {edit(func(j *Job) { j.Format = misnamed{} }), []string{"text", "built in"}},
		"flow without jobs":  {&Flow{Name: "f"}, []string{"stage", "f"}},
		"map-only reduces":   {func() *Job { j := MapOnly(wordPairs()).Job("j"); j.Reduces = 2; return j }(), []string{"MapOnly", "2"}},
		"map-only combine":   {MapOnly(wordPairs().Combine(Sum)).Job("j"), []string{"MapOnly", "Combine"}},
		"combine twice":      {Fold(wordPairs().Combine(Sum), Sum).Job("j"), []string{"combiner already"}},
		"partition and cuts": {Sort(wordPairs().Partition(one).TotalOrder()).Job("j"), []string{"TotalOrder", "partition already"}},
		"merge of parts":     {Sort(Merge(wordPairs().Combine(Sum), wordPairs())).Job("j"), []string{"Merge"}},
		"merge of nothing":   {Sort(Merge[string, int64]()).Job("j"), []string{"Merge"}},
		"key without codec":  {Fold(addrs, Sum).Job("j"), []string{"netip.Addr", "Fields"}},
		"result type":        {emitsAddrs.Job("j"), []string{"netip.Addr"}},
		"record size":        {Sort(Map(Records(0), func(*Task, []byte, func(string, int64)) error { return nil })).Job("j"), []string{"records of 0 bytes"}},
		"input name":         {Sort(Map(NewInput("lines", twoRecords(nil)), func(*Task, string, func(string, int64)) error { return nil })).Job("j"), []string{`"lines"`}},
		"nil map":            {Sort(Map[string, string, int64](Lines(), nil)).Job("j"), []string{"no function"}},
		"nil reduce":         {Fold(wordPairs(), nil).Job("j"), []string{"Fold has no function"}},
		"nil pairs":          {Sort[string, int64](nil).Job("j"), []string{"Sort was called without pairs"}},
		"from outside":       {Sort(fromCounts()).Job("j"), []string{"job j reads", "not in its flow"}},
		"from text":          {&Flow{Jobs: []*Job{textCounts, Sort(fromCounts()).Job("j")}}, []string{"counts", "text", "Binary"}},
		"two of one result":  {&Flow{Jobs: []*Job{counts.Job("a"), counts.Job("b")}}, []string{"the same result"}},
		"same names":         {&Flow{Jobs: []*Job{counts.Job("a"), Sort(wordPairs()).Job("a")}}, []string{"two jobs are named a"}},
		"same outputs":       {&Flow{Jobs: []*Job{edit(func(j *Job) { j.Name = "i"; j.Output = "/x" }), edit(func(j *Job) { j.Output = "file:///x/" })}}, []string{"jobs i and j have the same output: file:///x"}},
		"outputs inside":     {&Flow{Jobs: []*Job{edit(func(j *Job) { j.Name = "i"; j.Output = "/x/y" }), edit(func(j *Job) { j.Output = "/x" })}}, []string{"jobs i and j", "inside the other", "file:///x/y"}},
		"read by path":       {&Flow{Jobs: []*Job{edit(func(j *Job) { j.Name = "i"; j.Output = "/x" }), Sort(wordPairs("/x/part-r-00000")).Job("j")}}, []string{"job j reads file:///x/part-r-00000", "job i", "From"}},
		"from nothing":       {Sort(Map(From(new(Result[string, int64])), func(*Task, Pair[string, int64], func(string, int64)) error { return nil })).Job("j"), []string{"no job writes"}},
		"sample of 1.5":      {Sort(Map(Sample(Lines(), 1.5, 1), func(*Task, string, func(string, int64)) error { return nil })).Job("j"), []string{"Sample of a fraction of 1.5: want 0 to 1"}},
		"reservoir of 0":     {Reservoir(Lines(), 0, 1).Job("j"), []string{"Reservoir of 0 records"}},
		"top of 0":           {Top(wordPairs(), 0, cmp.Compare[int64]).Job("j"), []string{"Top of 0 values"}},
		"sample without":     {Sort(Map(Sample(Lines(), 0.5, 1), func(*Task, string, func(string, int64)) error { return nil })).Job("j"), []string{"has no offset in its file"}},
		"cycle":              {cycle(), []string{"wait for each other", "a reads b reads a"}},
		"join partition":     {joined(wordPairs().Partition(one), wordPairs()), []string{"Partition on both sides"}},
		"join codec":         {joined(wordPairs(), wordPairs().Codecs(&Codec[string]{}, nil)), []string{"one Codec"}},
		"sorted codec":       {sorted(byPair.Codecs(&Codec[Pair[string, int64]]{Name: "x", Append: func(d []byte, _ Pair[string, int64]) []byte { return d }, Decode: func([]byte) (p Pair[string, int64], err error) { return }}, nil)), []string{"ReduceSorted"}},
	} {
		if name == "flow without jobs" {
			if _, err := c.job.Compile(bridge.Settings{}); err == nil || !strings.Contains(err.Error(), "no jobs") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		t.Run(name, func(t *testing.T) { checkError(t, c.job, ok, c.words...) })
	}
}

// cycle returns two jobs that read each other's result. It makes the cycle by assigning
// to the first job's pairs after it has made the second job.
func cycle() *Flow {
	from := func(r *Result[string, int64]) *Pairs[string, int64] {
		return Map(From(r), func(*Task, Pair[string, int64], func(string, int64)) error { return nil })
	}
	pairs := wordPairs()
	a := Sort(pairs)
	b := Sort(from(a))
	*pairs = *from(b)
	return &Flow{Name: "f", Jobs: []*Job{a.Job("a"), b.Job("b")}}
}

type misnamed struct{ csv }

func (misnamed) Name() string { return "text" }

// TestKeep: with quern.flow.keep, a result that only a later job reads has an output
// directory.
func TestKeep(t *testing.T) {
	for keep, want := range map[string]string{"false": "", "true": "hdfs://nn/out/grep-search"} {
		s := bridge.Settings{Inputs: []string{"in"}, Output: "hdfs://nn/out", Dir: "/w", Properties: map[string]string{"quern.flow.keep": keep}}
		c, err := grepFlow("x").Compile(s)
		if err != nil {
			t.Fatal(err)
		}
		search := c.Program.Plan.Jobs[0]
		if search.Name != "grep-search" || search.Output != want || search.Format != "binary" {
			t.Errorf("quern.flow.keep=%s: %+v", keep, search)
		}
	}
}

// TestSettings: the plan has the settings from all sources. Unknown properties cause
// warnings or usage errors.
func TestSettings(t *testing.T) {
	job := Fold(wordPairs(), Sum).Job("j")
	job.Reduces = 3
	job.Properties = map[string]string{"mapreduce.task.io.sort.mb": "7", "mapreduce.job.split.metainfo.maxsize": "q", "my.own": "x", "mapred.map.tasks": "9"}
	job.Files = map[string]string{"stop": "words"}
	s := bridge.Settings{Inputs: []string{"a", "hdfs://nn/b/*.gz"}, Output: "o", Dir: "/w", Properties: map[string]string{"mapreduce.task.io.sort.mb": "9"}}
	c, err := job.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Program.Plan.Jobs[0]
	for name, want := range map[string]string{"mapreduce.task.io.sort.mb": "9", "my.own": "x", "mapreduce.job.reduces": "3", "mapreduce.map.maxattempts": "4"} {
		if got := p.Properties[name]; got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
	if p.Reduces != 3 || p.Output != "file:///w/o" || p.Files["stop"] != "file:///w/words" || !p.Combine ||
		strings.Join(p.Inputs[0].Paths, " ") != "file:///w/a hdfs://nn/b/*.gz" || p.OutKey != "string" || p.OutValue != "int64" {
		t.Errorf("plan %+v", p)
	}
	if w := strings.Join(c.Warnings, "\n"); len(c.Warnings) != 2 || !strings.Contains(w, "mapreduce.job.split.metainfo.maxsize") || !strings.Contains(w, "mapreduce.job.maps") {
		t.Errorf("warnings %q", c.Warnings)
	}
	s.Properties["mapreduce.job.reduces"] = "5"
	if c, err = job.Compile(s); err != nil || c.Program.Plan.Jobs[0].Reduces != 5 {
		t.Errorf("-D does not win: %v", err)
	}
	for _, bad := range []bridge.Settings{
		{Output: "o"}, {Inputs: []string{"a"}},
		{Inputs: []string{"a"}, Output: "o", Properties: map[string]string{"mapreduce.job.reduces": "many"}},
		{Inputs: []string{"a"}, Output: "o", Properties: map[string]string{"quern.bogus": "1"}},
		{Inputs: []string{"a"}, Output: "o", Properties: map[string]string{"mapreduce.job.priority": "URGENT"}},
		{Inputs: []string{"a"}, Output: "o", Properties: map[string]string{property.KeyValueSeparator: ""}},
		{Inputs: []string{"a"}, Output: "o", Properties: map[string]string{"quern.task.inprocess": "yes"}},
		{Inputs: []string{"a"}, Output: "o", Properties: map[string]string{"quern.task.inprocess": ""}},
		{Inputs: []string{"a"}, Output: "o", Properties: map[string]string{"quern.output.sync": "yes"}},
		{Inputs: []string{"a"}, Output: "o", Properties: map[string]string{"mapreduce.job.reduce.slowstart.completedmaps": "1.5"}},
		{Inputs: []string{"a"}, Output: "o", Properties: map[string]string{"mapreduce.job.reduce.slowstart.completedmaps": "NaN"}},
	} {
		_, err := Fold(wordPairs(), Sum).Job("j").Compile(bad)
		if _, usage := errors.AsType[bridge.UsageError](err); !usage {
			t.Errorf("%+v: %v, want an error of usage", bad, err)
		}
	}
	for _, sync := range []string{"", "true", "false"} {
		good := bridge.Settings{Inputs: []string{"a"}, Output: "o", Properties: map[string]string{"quern.output.sync": sync}}
		if _, err := Fold(wordPairs(), Sum).Job("j").Compile(good); err != nil {
			t.Errorf("quern.output.sync=%q: %v", sync, err)
		}
	}
}
