package mapreduce

import (
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
)

// TestInputIgnored: -input that no job reads is refused, as is one that no job of a flow does.
func TestInputIgnored(t *testing.T) {
	own, given := Sort(wordPairs("/own")).Job("own"), Sort(wordPairs()).Job("given")
	for name, c := range map[string]struct {
		job   bridge.Compiler
		wants string // none: it is taken
	}{
		"own":         {own, "-input a,b would be ignored: job own names what it reads; leave -input out"},
		"flow":        {&Flow{Jobs: []*Job{own, Sort(wordPairs("/other")).Job("other")}}, "-input a,b would be ignored: each job of the flow"},
		"given":       {given, ""},
		"one of them": {&Flow{Jobs: []*Job{own, given}}, ""},
	} {
		p := &program{build: func() (bridge.Compiler, error) { return c.job, nil }, flags: &jobFlags{input: "a,b", output: "/out"}}
		_, err := p.compile("/")
		_, usage := err.(usageError)
		switch {
		case c.wants == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.wants != "" && (!usage || !strings.Contains(err.Error(), c.wants)):
			t.Errorf("%s: %v, want a usage error with %q", name, err, c.wants)
		}
	}
}

// TestRefusedOnce: what is wrong is said once, and for a name the rule.
func TestRefusedOnce(t *testing.T) {
	times := Map(Lines(), func(_ *Task, _ string, emit func(time.Time, time.Time)) error { return nil })
	for _, c := range []struct {
		job  *Job
		once string
	}{
		{Sort(times).Job("j"), "type time.Time"},
		{MapOnly(times).Job("j"), "type time.Time"},
		{Sort(wordPairs()).Job("a/b"), "a name has no slash"},
		{Sort(wordPairs()).Job("_a"), "its first character is neither _ nor a dot"},
	} {
		_, err := c.job.Compile(bridge.Settings{Inputs: []string{"in"}, Output: "/out"})
		if err == nil || strings.Count(err.Error(), c.once) != 1 {
			t.Errorf("job %s: %v, want %q once", c.job.Name, err, c.once)
		}
	}
}
