package program

import (
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// job compiles to a plan with jobs of these names, which have the settings' values.
type job struct {
	names      []string
	readsInput bool
	warnings   []string
}

func (j job) Compile(s bridge.Settings) (*bridge.Compiled, error) {
	var plan wire.Plan
	for _, name := range j.names {
		plan.Jobs = append(plan.Jobs, wire.JobPlan{Name: name, Inputs: []wire.InputPlan{{Paths: s.Inputs}}, Output: s.Output, Properties: s.Properties})
	}
	return &bridge.Compiled{Program: &mrruntime.Program{Plan: plan}, ReadsInput: j.readsInput, Warnings: j.warnings}, nil
}

// listFlag appends every value.
type listFlag []string

func (l *listFlag) String() string     { return strings.Join(*l, "+") }
func (l *listFlag) Set(s string) error { *l = append(*l, s); return nil }

// TestWorkerRestoresFlags: a worker gets the values of all the client's flags, including
// defaults, even if it restores them several times.
func TestWorkerRestoresFlags(t *testing.T) {
	declare := func(now string) (*program, *string, *listFlag) {
		set := flag.NewFlagSet("job", flag.ExitOnError)
		set.SetOutput(io.Discard)
		since, list := set.String("since", now, ""), new(listFlag)
		set.Var(list, "also", "")
		flags, err := newJobFlags(set, runs)
		if err != nil {
			t.Fatal(err)
		}
		return &program{flags: flags, build: func(*wire.Step) (bridge.Compiler, error) {
			return job{names: []string{"j-" + *since + "-" + list.String()}, readsInput: true}, nil
		}}, since, list
	}
	client, _, _ := declare("monday")
	args := []string{"-also", "a", "-also", "b", "-D", "mapreduce.job.reduces=2", "-input", "in", "-output=out"}
	if err := client.flags.parse(args); err != nil {
		t.Fatal(err)
	}
	sub, err := client.submission(args)
	if err != nil {
		t.Fatal(err)
	}
	if j := sub.Plan.Jobs[0]; j.Name != "j-monday-a+b" || j.Properties["mapreduce.job.reduces"] != "2" || j.Output != "out" {
		t.Errorf("plan %+v", j)
	}
	worker, since, list := declare("tuesday")
	for range 3 {
		loaded, err := worker.load(sub)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(loaded.Plan, sub.Plan) {
			t.Fatalf("plan %+v\nsubmitted %+v", loaded.Plan, sub.Plan)
		}
		if *since != "monday" || !slices.Equal(*list, []string{"a", "b"}) {
			t.Errorf("since %s, also %s", *since, list)
		}
	}
	sub.Program.Flags["gone"] = "x"
	if _, err := worker.load(sub); err == nil || !strings.Contains(err.Error(), "-gone") {
		t.Errorf("error %v", err)
	}

	taken := flag.NewFlagSet("job", flag.ContinueOnError)
	taken.String("input", "", "")
	if _, err := newJobFlags(taken, runs); err == nil || !strings.Contains(err.Error(), "-input") {
		t.Errorf("error %v", err)
	}
	unknown, _, _ := declare("x")
	if err := unknown.flags.parse([]string{"-help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("error %v", err)
	}
	var messages strings.Builder
	unknown.flags.set.SetOutput(&messages)
	if err := unknown.flags.parse([]string{"-Dmapred.reduce.tasks=2"}); err == nil || !strings.Contains(messages.String(), "write -D mapred.reduce.tasks=VALUE") {
		t.Errorf("error %v: %s", err, &messages)
	}
}

// TestDriverChangesFlag: a step is refused if the driver has changed a flag since its start.
func TestDriverChangesFlag(t *testing.T) {
	set := flag.NewFlagSet("job", flag.ContinueOnError)
	rounds, list := set.Int("rounds", 3, ""), new(listFlag)
	set.Var(list, "also", "")
	flags, err := newJobFlags(set, drives)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{flags: flags, build: func(*wire.Step) (bridge.Compiler, error) { return job{names: []string{"j"}}, nil }}
	if err := flags.parse([]string{"-also", "a", "-D", "mapreduce.job.reduces=2"}); err != nil {
		t.Fatal(err)
	}
	described, err := p.describe(nil, []string{"j"})
	if err != nil {
		t.Fatal(err)
	}
	step := func(want string) {
		t.Helper()
		_, err := p.step(*described, &wire.Step{Definition: "j"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	step("")
	*rounds = 4
	step(`flag -rounds has changed from "3" to "4" since the driver started, but workers use "3": pass`)
	*rounds = 3
	step("")
	*list = append(*list, "b")
	step(`flag -also has changed from "a" to "a+b"`)
}

// TestKeyed: a session knows a step again in the same directory, with the same flags but those that change no result.
func TestKeyed(t *testing.T) {
	of := func(dir string, args ...string) map[string]string {
		set := flag.NewFlagSet("job", flag.ContinueOnError)
		set.Int("rounds", 3, "")
		flags, err := newJobFlags(set, drives)
		if err != nil {
			t.Fatal(err)
		}
		if err := flags.parse(args); err != nil {
			t.Fatal(err)
		}
		return keyed(&wire.Program{Flags: flags.record(), Dir: dir})
	}
	first := of("/a", "-input", "in", "-D", "x=1")
	for _, args := range []string{
		"-output out", "-quiet", "-rounds 3", "-D quern.embedded.output=true", "-D quern.embedded.keep=true",
		"-D quern.task.inprocess=true", "-D j:quern.embedded.slots=1",
	} {
		if got := of("/a", append([]string{"-input", "in", "-D", "x=1"}, strings.Fields(args)...)...); !maps.Equal(got, first) {
			t.Errorf("%s changes the key: %v, want %v", args, got, first)
		}
	}
	for _, args := range []string{"-input other", "-rounds 4", "-D x=2", "-D y=1", "-D mapreduce.job.reduces=2"} {
		if got := of("/a", append([]string{"-input", "in", "-D", "x=1"}, strings.Fields(args)...)...); maps.Equal(got, first) {
			t.Errorf("%s does not change the key: %v", args, got)
		}
	}
	if got := of("/b", "-input", "in", "-D", "x=1"); maps.Equal(got, first) {
		t.Errorf("the directory does not change the key: %v", got)
	}
}

// TestDriverWarnings: a driver prints each warning about its steps once.
func TestDriverWarnings(t *testing.T) {
	flags, err := newJobFlags(flag.NewFlagSet("job", flag.ContinueOnError), drives)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{flags: flags, build: func(step *wire.Step) (bridge.Compiler, error) {
		return job{names: []string{"j"}, warnings: []string{"no effect", "of " + step.Definition}}, nil
	}}
	printed, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer printed.Close()
	saved := os.Stderr
	os.Stderr = printed
	defer func() { os.Stderr = saved }()
	for _, quiet := range []bool{false, true} {
		flags.quiet = quiet
		described, err := p.describe(nil, []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "a", "b"} {
			if _, err := p.step(*described, &wire.Step{Definition: name}); err != nil {
				t.Fatal(err)
			}
		}
		p.warned = nil
	}
	text, err := os.ReadFile(printed.Name())
	if want := "warning: no effect\nwarning: of a\nwarning: of b\n"; string(text) != want || err != nil {
		t.Errorf("printed %q, want %q; %v", text, want, err)
	}
}

// TestInputList: how -input is split into paths.
func TestInputList(t *testing.T) {
	for list, want := range map[string][]string{
		"":             nil,
		"a":            {"a"},
		"a,b c,a":      {"a", "b c", "a"},
		"x{1,2},y":     {"x{1,2}", "y"},
		"x{1,{2,3}},y": {"x{1,{2,3}}", "y"},
		`a\,b,c`:       {`a\,b`, "c"},
		`a\\,b`:        {`a\\`, "b"},
		`a\`:           {`a\`},
		`\{,x`:         {`\{`, "x"},
	} {
		if got, err := SplitList(list); !slices.Equal(got, want) || err != nil {
			t.Errorf("%s: %q, %v; want %q", list, got, err, want)
		}
	}
	for _, list := range []string{",", "a,", ",a", "a,,b", "{a,},,b"} { // Hadoop refuses them too
		if got, err := SplitList(list); err == nil {
			t.Errorf("%s: %q", list, got)
		}
	}
}

// TestInputIgnored: -input is refused if no job reads it.
func TestInputIgnored(t *testing.T) {
	for name, c := range map[string]struct {
		job   job
		wants string // empty: no error
	}{
		"own":         {job{names: []string{"own"}}, "-input a,b would be ignored: job own names its own input; leave -input out"},
		"flow":        {job{names: []string{"own", "other"}}, "-input a,b would be ignored: each job of the flow"},
		"given":       {job{names: []string{"given"}, readsInput: true}, ""},
		"one of them": {job{names: []string{"own", "given"}, readsInput: true}, ""},
	} {
		p := &program{build: func(*wire.Step) (bridge.Compiler, error) { return c.job, nil }, flags: &jobFlags{input: "a,b", output: "/out"}}
		_, err := p.compile("/", nil, nil)
		_, usage := err.(bridge.UsageError)
		switch {
		case c.wants == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.wants != "" && (!usage || !strings.Contains(err.Error(), c.wants)):
			t.Errorf("%s: %v, want a usage error with %q", name, err, c.wants)
		}
	}
}
