package facts

import (
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestBadFlows checks that flows are refused if they cannot run or overwrite their own output.
func TestBadFlows(t *testing.T) {
	job := func(name, output string, from ...int) wire.JobPlan {
		j := wire.JobPlan{Name: name, Output: output}
		for _, f := range from {
			j.Inputs = append(j.Inputs, wire.InputPlan{From: f})
		}
		return j
	}
	for what, c := range map[string]struct {
		jobs []wire.JobPlan
		want string // in the error; empty: it is accepted
	}{
		"a diamond":                 {[]wire.JobPlan{job("a", ""), job("b", "", 1), job("c", "", 1), job("d", "o", 2, 3)}, ""},
		"no jobs":                   {nil, "no jobs"},
		"a cycle":                   {[]wire.JobPlan{job("a", "", 2), job("b", "", 1)}, `job "a" reads job number 2, which is not before it`},
		"a job that reads itself":   {[]wire.JobPlan{job("a", "", 1)}, `job "a" reads job number 1, which is not before it`},
		"an output of no job":       {[]wire.JobPlan{job("a", ""), job("b", "", 1, 7)}, `job "b" reads job number 7, which is not before it`},
		"two jobs of one output":    {[]wire.JobPlan{job("a", "mem://c/o"), job("b", "mem://c/o/")}, `jobs "a" and "b" have one output: mem://c/o`},
		"two of temporary outputs":  {[]wire.JobPlan{job("a", ""), job("b", ""), job("c", "o", 1, 2)}, ""},
		"a negative number to read": {[]wire.JobPlan{job("a", ""), job("b", "", -1)}, `job "b" reads job number -1`},
	} {
		err := CheckSubmission(&wire.Submission{Key: "k", Staging: "mem://s", Plan: wire.Plan{Jobs: c.jobs}})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", what, err, c.want)
		}
	}
}
