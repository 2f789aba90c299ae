package mapreduce

import (
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
