package wire

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTruncate(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc…"}, {"aé", 2, "a…"}, {"日本", 4, "日…"}, {"日本", 0, "…"},
	} {
		if got := Truncate(c.text, c.n); got != c.want || !utf8.ValidString(got) {
			t.Errorf("%q to %d bytes: %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// jobsOf makes a submission of n jobs and calls fill on each.
func jobsOf(n int, fill func(*JobPlan)) *Submission {
	sub := &Submission{Key: "k", Plan: Plan{Jobs: make([]JobPlan, n)}}
	for i := range sub.Plan.Jobs {
		fill(&sub.Plan.Jobs[i])
	}
	return sub
}

func texts(n int) map[string]string {
	m := make(map[string]string, n)
	for i := range n {
		m[fmt.Sprint(i)] = ""
	}
	return m
}

func TestSubmissionBounds(t *testing.T) {
	many := texts(MaxValues)
	for _, c := range []struct {
		name string
		sub  *Submission
		want string // empty: it is accepted
	}{
		{"one job", jobsOf(1, func(*JobPlan) {}), ""},
		{"all jobs", jobsOf(MaxJobs, func(j *JobPlan) { j.Reduces = MaxTasks / MaxJobs }), ""},
		{"a job more", jobsOf(MaxJobs+1, func(*JobPlan) {}), "1001 jobs, at most 1000"},
		{"reduces", jobsOf(2, func(j *JobPlan) { j.Reduces = MaxTasks/2 + 1 }), "1000002 reduces in all its jobs, at most 1000000"},
		{"reduces beyond numbers", jobsOf(3, func(j *JobPlan) { j.Reduces = 1 << 62 }), "reduces in all its jobs"},
		{"all inputs", jobsOf(1, func(j *JobPlan) { j.Inputs = []InputPlan{{Paths: make([]string, MaxInputs-1)}} }), ""},
		{"a path more", jobsOf(2, func(j *JobPlan) { j.Inputs = []InputPlan{{Paths: make([]string, MaxInputs/2)}} }), "100002 inputs, at most 100000"},
		{"inputs without paths", jobsOf(1, func(j *JobPlan) { j.Inputs = make([]InputPlan, MaxInputs+1) }), "100001 inputs"},
		{"properties", jobsOf(1, func(j *JobPlan) { j.Properties = many }), ""},
		{"properties and files", jobsOf(1, func(j *JobPlan) { j.Properties, j.Files = many, many }), "200000 properties"},
		{"outputs", jobsOf(1, func(j *JobPlan) { j.Outputs = make([]string, MaxValues+1) }), "100001 properties, side files, outputs"},
		{"flags", &Submission{Program: Program{Flags: many, Args: []string{"x"}}}, "100001 properties"},
		{"a name", jobsOf(1, func(j *JobPlan) { j.Name = strings.Repeat("x", MaxName) }), ""},
		{"a long name", jobsOf(1, func(j *JobPlan) { j.Name = strings.Repeat("x", MaxName+1) }), "the job's name \"xxxx"},
		{"a long key", &Submission{Key: strings.Repeat("x", MaxName+1)}, "has 1001 bytes, at most 1000"},
		{"a long flow", &Submission{Plan: Plan{Flow: strings.Repeat("\n", MaxName+1)}}, "the flow's name \"\\n"},
		{"a long owner", &Submission{Owner: strings.Repeat("x", MaxFrame)}, "the owner's name"},
	} {
		err := c.sub.CheckLimits()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestCounterLimits(t *testing.T) {
	names := func(group string, n int) Counters {
		c := make(Counters)
		for i := range n {
			c.Add(group, fmt.Sprint("c", i), 1)
		}
		return c
	}
	groups := func(n int) Counters {
		c := make(Counters)
		for i := range n {
			c.Add(fmt.Sprint("g", i), "c", 1)
		}
		return c
	}
	of := func(group, name string) Counters { return Counters{group: {name: 1}} }
	standard := CounterLimitsOf(nil)
	for _, c := range []struct {
		name          string
		limits        CounterLimits
		before, after Counters
		want          []string // in the error; nil: there is none
	}{
		{"all", standard, nil, names("g", 120), nil},
		{"one more", standard, names("g", 120), of("g", "last"), []string{`counter "last" of group "g"`, "at most 120", "mapreduce.job.counters.max", "2000"}},
		{"one more by name", standard, nil, names("g", 121), []string{`counter "c99" of group "g"`}},
		{"a known one", standard, names("g", 120), names("g", 5), nil},
		{"groups", standard, nil, groups(50), nil},
		{"a group more", standard, groups(50), of("x", "c"), []string{`counter group "x"`, "at most 50", "mapreduce.job.counters.groups.max"}},
		{"a long name", standard, nil, of("g", strings.Repeat("x", 65)), []string{"has 65 characters", "at most 64", "mapreduce.job.counters.counter.name.max"}},
		{"a long group", standard, nil, of(strings.Repeat("x", 129), "c"), []string{"has 129 characters", "at most 128", "mapreduce.job.counters.group.name.max"}},
		{"letters of several bytes", standard, nil, of(strings.Repeat("я", 128), strings.Repeat("𝄞", 32)), nil},
		{"a letter of two characters more", standard, nil, of("g", strings.Repeat("𝄞", 33)), []string{"has 66 characters"}},
		{"many bytes", CounterLimits{120, 50, 128, 256}, nil, of("g", strings.Repeat("€", 65)), []string{"has 195 bytes", "at most 192"}},
		{"a megabyte", standard, nil, of("g", strings.Repeat("x", 1<<20)), []string{"has 1048576 characters"}},
		{"built in", standard, names("g", 120), names("org.apache.hadoop.mapreduce.TaskCounter", MaxBuiltInCounters), nil},
		{"too many built in", standard, names(QuernCounters, 100), names(ReadCounters, MaxBuiltInCounters), []string{"200"}},
		{"a property", CounterLimitsOf(map[string]string{"mapreduce.job.counters.max": "2000"}), nil, names("g", 2000), nil},
		{"beyond the most", CounterLimitsOf(map[string]string{"mapreduce.job.counters.max": "2001"}), nil, names("g", 121), []string{"at most 120"}},
		{"none", CounterLimitsOf(map[string]string{"mapreduce.job.counters.max": "0"}), nil, of("g", "c"), []string{"at most 0"}},
	} {
		sum, want := make(Counters), make(Counters)
		sum.Merge(c.before)
		want.Merge(c.before)
		err := c.limits.Merge(sum, c.after)
		if c.want == nil {
			want.Merge(c.after)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		} else if !errors.Is(err, ErrCounterLimit) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, text := range c.want {
			if err != nil && !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want %q", c.name, err, text)
			}
		}
		if !reflect.DeepEqual(sum, want) {
			t.Errorf("%s: the sum became %d groups, want %d", c.name, len(sum), len(want))
		}
	}
}

// TestMostCounters checks that a report has room for counters at the highest limits and long texts.
func TestMostCounters(t *testing.T) {
	r := &Report{Result: &Result{Error: strings.Repeat("x", MaxText), Log: strings.Repeat("x", MaxText), Counters: make(Counters)}}
	for i := range CountersMax.Max {
		long := func(n int, p CounterProperty) string {
			return fmt.Sprintf("%s%06d", strings.Repeat("€", p.Default-2), n)
		}
		r.Result.Counters.Add(long(i%CounterGroupsMax.Max, CounterGroupMax), long(i, CounterNameMax), -1<<62)
	}
	most := CounterLimits{CountersMax.Max, CounterGroupsMax.Max, CounterNameMax.Max, CounterGroupMax.Max}
	if err := most.Merge(make(Counters), r.Result.Counters); err != nil {
		t.Fatal(err)
	}
	sent, err := Append(nil, r)
	if err != nil || len(sent) > MaxFrame/8 {
		t.Errorf("%d bytes: %v", len(sent), err)
	}
}
