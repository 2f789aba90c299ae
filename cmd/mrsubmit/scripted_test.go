package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestScripted: -quiet prints nothing about a job that succeeds, and the reason of a failure. The last line
// of -json has the exit code and the jobs as in the HTTP API.
func TestScripted(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []wire.State{wire.Succeeded, wire.Failed} {
		run := func(flag string) *invocation {
			return submit(t, nil, state, "run", flag, exe, "-input", exe, "-output", t.TempDir()+"/out")
		}
		code := map[wire.State]int{wire.Succeeded: 0, wire.Failed: 1}[state]
		if s := run("-quiet"); s.code != code || s.stdout != "" || (s.stderr == "") != (state == wire.Succeeded) {
			t.Errorf("-quiet, %v: exit code %d, %q, %q", state, s.code, s.stdout, s.stderr)
		}
		s := run("-json")
		lines := strings.Split(strings.TrimSpace(s.stdout), "\n")
		for i, line := range lines {
			var got runLine
			if err := json.Unmarshal([]byte(line), &got); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			if last := i == len(lines)-1; got.Final != last || last && (got.Exit != code || s.code != code || got.Jobs[0].State != state.String()) {
				t.Errorf("-json, %v: exit code %d, line %d of %d: %s", state, s.code, i, len(lines), line)
			}
		}
	}
	if s := submit(t, nil, wire.Succeeded, "run", "-json", exe, "-input", "/missing", "-output", t.TempDir()+"/out"); s.code != 1 || !strings.HasPrefix(s.stdout, `{"final":true,"exit":1,"error":"`) || !strings.Contains(s.stdout, "/missing: no such file") || !strings.HasSuffix(s.stdout, "\"jobs\":[]}\n") {
		t.Errorf("a job without input: exit code %d: %s", s.code, s.stdout)
	}
	if s := submit(t, nil, wire.Succeeded, "run", "-detach", exe, "-input", exe, "-output", t.TempDir()+"/out"); s.code != 2 || !strings.Contains(s.stderr, "-detach: without a job tracker the job runs in this process") {
		t.Errorf("-detach: exit code %d: %s", s.code, s.stderr)
	}
}

// TestScriptedDrivers: what a program that drives jobs cannot do is refused, with the reason.
func TestScriptedDrivers(t *testing.T) {
	sub := &wire.Submission{Program: wire.Program{Drives: []string{"step"}}}
	for _, c := range []struct {
		flags     scripted
		onCluster bool
		want      string
	}{
		{scripted{detach: true}, true, "-detach: the program drives jobs: it decides here what runs next"},
		{scripted{json: true}, true, ""},
		{scripted{quiet: true}, false, ""},
		{scripted{quiet: true}, true, ""},
		{scripted{}, false, ""},
	} {
		err := c.flags.check(sub, c.onCluster)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
