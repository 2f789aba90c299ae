package mapreduce

import (
	"bytes"
	"iter"
	"maps"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

type tour struct {
	Name  string
	Stops []stop
	At    map[string]int64
	By    *struct{ Guide [2]bool }
}

type stop struct {
	Place string
	Range fielded
}

// fielded lists the field far under a condition.
type fielded struct {
	near, far int64
	more      bool
	at        inner
}

type inner struct{ x int8 }

func (r *inner) Fields(f *Fields) { f.Int8(&r.x) }

func (r *fielded) Fields(f *Fields) {
	f.Bool(&r.more)
	f.Skip(&r.far)
	if r.more {
		f.Int64(&r.far)
	}
	f.Value(&r.at)
	f.Desc().Int64(&r.near)
}

// TestUndecodedPart: the error of a value that does not decode names the type and the part.
func TestUndecodedPart(t *testing.T) {
	nested := func(v tour) []byte { return must[tour](nil).append(nil, v) }
	whole := tour{Name: "n", Stops: []stop{{"a", fielded{}}, {"b", fielded{more: true}}}, At: map[string]int64{"k": 1}, By: &struct{ Guide [2]bool }{}}
	ends := map[string]int{} // number of encodings that are cut off in a part
	const name = "decode mapreduce.tour{string,slice(string,fields{bool,fields{int8},desc int64}),map(string;int64),ptr(array(2,bool))} from "
	for size := range nested(whole) {
		_, err := read(must[tour](nil), &decoder{}, nested(whole)[:size])
		if err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Fatalf("%d bytes: %v", size, err)
		}
		_, at, _ := strings.Cut(err.Error(), ": at ")
		at, _, _ = strings.Cut(at, ": ")
		ends[at]++
	}
	want := map[string]int{"Name": 2, "Stops": 1, "Stops[0].Place": 2, "Stops[0].Range.more": 1, "Stops[0].Range.at.x": 1, "Stops[0].Range.near": 8, "Stops[0]": 1,
		"Stops[1].Place": 2, "Stops[1].Range.more": 1, "Stops[1].Range.far": 8, "Stops[1].Range.at.x": 1, "Stops[1].Range.near": 8, "Stops[1]": 1,
		"At[key]": 2, "At[]": 8, "At": 2, "By": 1, "By.Guide[0]": 1, "By.Guide[1]": 1}
	if !maps.Equal(ends, want) {
		t.Errorf("encodings end in %v, want %v", ends, want)
	}
	_, err := read(must[Pair[string, Pair[bool, string]]](nil), &decoder{}, []byte("a\x00\x07b"))
	if want := "decode Pair[string,Pair[bool,string]] from 4 bytes: at B.A: invalid byte"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestUndecoded: errors of a reduce's and a combiner's stored records name the key, or its bytes.
func TestUndecoded(t *testing.T) {
	drain := func(vals iter.Seq[int64]) {
		for range vals {
		}
	}
	each := func(_ *Task, _ string, vals iter.Seq[int64], _ func(string, int64)) error { drain(vals); return nil }
	byNumber := Map(Lines(), func(*Task, string, func(int64, int64)) error { return nil })
	byPair := Map(Lines(), func(*Task, string, func(Pair[string, bool], int64)) error { return nil })
	all := ReduceAll(wordPairs(), func(_ *Task, groups iter.Seq2[string, iter.Seq[int64]], _ func(string, int64)) error {
		for _, vals := range groups {
			drain(vals)
		}
		panic("of the author, after the error")
	})
	sorted := ReduceSorted(byPair, func(_ *Task, _ string, vals iter.Seq2[bool, int64], _ func(string, int64)) error {
		for range vals {
		}
		return nil
	})
	join := Join(wordPairs(), wordPairs(), func(_ *Task, _ string, as, bs iter.Seq[int64], _ func(string, int64)) error {
		drain(as)
		drain(bs)
		return nil
	})
	joinEach := JoinEach(wordPairs(), wordPairs(), InnerJoin, func(*Task, string, *int64, *int64, func(string, int64)) error { return nil })
	group := wordPairs().CombineGroup(func(_ *Task, _ string, vals iter.Seq[int64], _ func(int64)) error { drain(vals); return nil })
	folded := Fold(wordPairs(), Sum)
	one, bad := int64Codec.append(nil, 1), []byte{1, 2}
	const text = "decode int64 from 2 bytes: encoding ends too early"
	for name, c := range map[string]struct {
		job     bridge.Compiler
		in      []record
		combine bool
		want    string
	}{
		"reduce":         {Reduce(wordPairs(), each).Job("j"), []record{{[]byte("a"), one}, {[]byte("b"), bad}}, false, `key "b": ` + text},
		"reduce, key":    {Reduce(byNumber, func(*Task, int64, iter.Seq[int64], func(string, int64)) error { return nil }).Job("j"), []record{{bad, one}}, false, `the key with bytes "\x01\x02": ` + text},
		"reduce all":     {all.Job("j"), []record{{[]byte("a"), one}, {[]byte("b"), bad}}, false, `key "b": ` + text},
		"reduce sorted":  {sorted.Job("j"), []record{{[]byte("a\x00\x01"), bad}}, false, `key "a": ` + text},
		"second part":    {sorted.Job("j"), []record{{[]byte("a\x00\x07"), one}}, false, `key "a": second part of the key: decode bool from 1 bytes: invalid byte`},
		"first part":     {sorted.Job("j"), []record{{[]byte("ab"), one}}, false, `the key with bytes "ab": decode string from 2 bytes: encoding ends too early`},
		"fold":           {folded.Job("j"), []record{{[]byte("a"), one}, {[]byte("b"), one}, {[]byte("b"), bad}}, false, `key "b": ` + text},
		"fold, single":   {folded.Job("j"), []record{{[]byte("a"), bad}}, false, `key "a": ` + text},
		"sort":           {Sort(wordPairs()).Job("j"), []record{{[]byte("a"), bad}}, false, `key "a": ` + text},
		"join, left":     {join.Job("j"), []record{{[]byte("a\x00\x00"), bad}}, false, `key "a": ` + text},
		"join, right":    {join.Job("j"), []record{{[]byte("a\x00\x02"), bad}}, false, `key "a": ` + text},
		"join, side":     {join.Job("j"), []record{{[]byte("a\x00\x07"), bad}}, false, `key "a": the key's last byte, the side of the join: invalid byte`},
		"join each":      {joinEach.Job("j"), []record{{[]byte("a\x00\x00"), one}, {[]byte("a\x00\x02"), bad}}, false, `key "a": ` + text},
		"combine, fold":  {folded.Job("j"), []record{{[]byte("a"), one}, {[]byte("a"), bad}}, true, `combine the values of key "a": ` + text},
		"combine, group": {Sort(group).Job("j"), []record{{[]byte("a"), bad}}, true, `combine the values of key "a": ` + text},
		"combine, side": {Join(wordPairs().Combine(Sum), wordPairs(), func(*Task, string, iter.Seq[int64], iter.Seq[int64], func(string, int64)) error { return nil }).Job("j"),
			[]record{{[]byte("a\x00\x07"), bad}}, true, `combine the values of the key with bytes "a\x00\a": the last byte, the side of the join: invalid byte`},
	} {
		run := &jobRun{jobRunner: &jobRunner{written: map[string]*bytes.Buffer{}}, plan: &wire.JobPlan{Name: "j"}}
		spec := &jobSpec{format: Text{}, host: func(t *mrruntime.Task) host { return &fakeHost{Task: t, run: run} }}
		task := &mrruntime.Task{ID: wire.AttemptID{Task: wire.TaskID{Kind: wire.Reduce}}, Plan: run.plan}
		stage := c.job.(*Job).stage
		var err error
		if c.combine {
			err = stage.combiner(spec)(task)(task, &fakeRecords{all: c.in}, func(key, value []byte) error { return nil })
		} else {
			err = stage.reduce(spec)(task, &fakeRecords{all: c.in})
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}
