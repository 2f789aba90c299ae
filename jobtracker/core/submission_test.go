package core

import (
	"errors"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestBadFlows: flows that could not be run, or would write over themselves, are refused.
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
		says string // empty: it is accepted
	}{
		"a diamond":                 {[]wire.JobPlan{job("a", ""), job("b", "", 1), job("c", "", 1), job("d", "o", 2, 3)}, ""},
		"no jobs":                   {nil, "no jobs"},
		"a cycle":                   {[]wire.JobPlan{job("a", "", 2), job("b", "", 1)}, `job "a" reads job number 2, which is not before it`},
		"a job that reads itself":   {[]wire.JobPlan{job("a", "", 1)}, `job "a" reads job number 1, which is not before it`},
		"an output nobody writes":   {[]wire.JobPlan{job("a", ""), job("b", "", 1, 7)}, `job "b" reads job number 7, which is not before it`},
		"two jobs of one output":    {[]wire.JobPlan{job("a", "mem://c/o"), job("b", "mem://c/o/")}, `jobs "a" and "b" have one output: mem://c/o`},
		"two of temporary outputs":  {[]wire.JobPlan{job("a", ""), job("b", ""), job("c", "o", 1, 2)}, ""},
		"a negative number to read": {[]wire.JobPlan{job("a", ""), job("b", "", -1)}, `job "b" reads job number -1`},
	} {
		err := checkSubmission(&wire.Submission{Key: "k", Staging: "mem://s", Plan: wire.Plan{Jobs: c.jobs}})
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case c.says != "" && (!errors.Is(err, ErrBadSubmission) || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: error %v, want one that says %q", what, err, c.says)
		}
	}
}

// TestPlaces: a submission's directory, which is removed when its jobs have ended, lies
// in the cluster's staging directory and is nobody else's.
func TestPlaces(t *testing.T) {
	const staging = "file:///shared/staging"
	for place, want := range map[string]bool{
		staging + "/k":              true,
		staging + "/;$(x)":          true,
		staging:                     false,
		staging + "/":               false,
		staging + "/..":             false,
		staging + "/../k":           false,
		staging + "/a/b":            false,
		staging + "/history":        false,
		staging + "/clusters":       false,
		staging + "/programs":       false,
		"file:///shared/staging2/k": false,
		"file:///etc":               false,
		"/shared/staging/k":         false,
		"mem://shared/staging/k":    false,
	} {
		c := New(Config{ID: "jt", Staging: staging})
		var entries []Propose
		feed := func(ev Event) (replies []Reply) {
			for _, cmd := range c.Step(0, ev) {
				switch cmd := cmd.(type) {
				case Propose:
					entries = append(entries, cmd)
				case Reply:
					replies = append(replies, cmd)
				}
			}
			return replies
		}
		feed(Elected{Term: 1, Wall: 1})
		for i := 0; i < len(entries); i++ {
			feed(Entry{Index: uint64(i + 1), Term: 1, Data: entries[i].Data})
		}
		before := len(entries)
		replies := feed(Submit{Token: 1, Submission: &wire.Submission{Key: "k", Staging: place, Plan: wire.Plan{Jobs: []wire.JobPlan{{}}}}})
		switch {
		case want && (len(entries) != before+1 || len(replies) > 0):
			t.Errorf("%s: %+v", place, replies)
		case !want && (len(entries) != before || len(replies) != 1 || !errors.Is(replies[0].Err, ErrBadSubmission)):
			t.Errorf("%s: %+v", place, replies)
		}
		if !want {
			continue
		}
		feed(Entry{Index: uint64(before + 1), Term: 1, Data: entries[before].Data})
		replies = feed(Submit{Token: 2, Submission: &wire.Submission{Key: "another", Staging: place, Plan: wire.Plan{Jobs: []wire.JobPlan{{}}}}})
		if len(replies) != 1 || !errors.Is(replies[0].Err, ErrBadSubmission) {
			t.Errorf("%s, which is another's: %+v", place, replies)
		}
	}
}
