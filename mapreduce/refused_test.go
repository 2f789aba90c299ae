package mapreduce

import (
	"cmp"
	"iter"
	"net/netip"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
)

// TestReadsInput: Compiled reports whether a job reads -input, so that Main can refuse it.
func TestReadsInput(t *testing.T) {
	own, given := Sort(wordPairs("/own")).Job("own"), Sort(wordPairs()).Job("given")
	for name, c := range map[string]struct {
		job  bridge.Compiler
		want bool
	}{
		"own":         {own, false},
		"flow":        {&Flow{Jobs: []*Job{own, Sort(wordPairs("/other")).Job("other")}}, false},
		"given":       {given, true},
		"one of them": {&Flow{Jobs: []*Job{own, given}}, true},
	} {
		compiled, err := c.job.Compile(bridge.Settings{Inputs: []string{"a", "b"}, Output: "/out"})
		if err != nil || compiled.ReadsInput != c.want {
			t.Errorf("%s: %+v, %v", name, compiled, err)
		}
	}
}

// TestEmptyPath: if a flag for a path is not given, the error says so.
func TestEmptyPath(t *testing.T) {
	checkError(t, Sort(wordPairs("")).Job("words"), &jobRunner{}, "job words: an input of lines has an empty path: is a flag missing?")
}

// TestErrorsAreReportedOnce: each error is reported once; the error for a name includes the rule.
func TestErrorsAreReportedOnce(t *testing.T) {
	addrs := Map(Lines(), func(_ *Task, _ string, emit func(netip.Addr, netip.Addr)) error { return nil })
	for _, c := range []struct {
		job  *Job
		once string
	}{
		{Sort(addrs).Job("j"), "Addr.addr"},
		{MapOnly(addrs).Job("j"), "Addr.addr"},
		{Sort(wordPairs()).Job("a/b"), "a name has no slash"},
		{Sort(wordPairs()).Job("_a"), "its first character is neither _ nor a dot"},
	} {
		_, err := c.job.Compile(bridge.Settings{Inputs: []string{"in"}, Output: "/out"})
		if err == nil || strings.Count(err.Error(), c.once) != 1 {
			t.Errorf("job %s: %v, want %q once", c.job.Name, err, c.once)
		}
	}
}

// TestErrorsBeginWithTheFunction: an error of misuse begins with the job, followed by the function that was called.
func TestErrorsBeginWithTheFunction(t *testing.T) {
	pairs, combined := wordPairs, func() *Pairs[string, int64] { return wordPairs().Combine(Sum) }
	of := func(in Input[string]) *Job {
		return Sort(Map(in, func(*Task, string, func(string, int64)) error { return nil })).Job("j")
	}
	each := func(*Task, string, *int64, *int64, func(string, int64)) error { return nil }
	byPair := Map(Lines(), func(*Task, string, func(Pair[string, int64], int64)) error { return nil }).
		Codecs(&Codec[Pair[string, int64]]{Name: "x"}, nil)
	for want, job := range map[string]*Job{
		"Top of 0 values":                            Top(pairs(), 0, cmp.Compare[int64]).Job("j"),
		"Top has no function":                        Top(pairs(), 1, nil).Job("j"),
		"Top was called without":                     Top[string](nil, 1, cmp.Compare[int64]).Job("j"),
		"Top combines by itself":                     Top(combined(), 1, cmp.Compare[int64]).Job("j"),
		"Reservoir of 0 records":                     Reservoir(Lines(), 0, 1).Job("j"),
		"Fold combines by itself":                    Fold(combined(), Sum).Job("j"),
		"MapOnly has no reduces":                     MapOnly(combined()).Job("j"),
		"JoinEach: there is no kind 9":               JoinEach(pairs(), pairs(), 9, each).Job("j"),
		"JoinEach needs Partition":                   JoinEach(pairs(), pairs().Partition(func(string, int) int { return 0 }), InnerJoin, each).Job("j"),
		"BroadcastJoin: the small side has no paths": MapOnly(BroadcastJoin(pairs(), pairs(), InnerJoin, each)).Job("j"),
		"ReduceSorted needs the parts":               ReduceSorted(byPair, func(*Task, string, iter.Seq2[int64, int64], func(string, int64)) error { return nil }).Job("j"),
		"Reduce has no function":                     Reduce[string, int64, string, int64](pairs(), nil).Job("j"),
		"Sample of a fraction of 2":                  of(Sample(Lines(), 2, 1)),
		"Sample of an input of the format generated: its records have no offset": of(Sample(Generate(1, func(int) iter.Seq[string] { return nil }), 0.5, 1)),
		"Sample of an input of the format binary": Sort(Map(Sample(Stored[string, int64](), 0.5, 1),
			func(*Task, Pair[string, int64], func(string, int64)) error { return nil })).Job("j"),
		"Reservoir of an input of the format files": Reservoir(Files(), 1, 1).Job("j"),
		"Generate was called with 0 maps":           of(Generate(0, func(int) iter.Seq[string] { return nil })),
	} {
		if _, err := job.Compile(bridge.Settings{Inputs: []string{"in"}, Output: "/out"}); err == nil || !strings.HasPrefix(err.Error(), "job j: "+want) {
			t.Errorf("got %v, want job j: %s", err, want)
		}
	}
}
