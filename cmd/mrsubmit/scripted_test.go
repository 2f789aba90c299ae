package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
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

// TestLastLine: with -json each error before the submission has one last line too, except wrong flags.
func TestLastLine(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script, out := filepath.Join(dir, "script"), filepath.Join(dir, "out")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	job := []string{exe, "-input", exe, "-output", out}
	alone := func(args ...string) (int, string, string) {
		s := submit(t, nil, 0, args...)
		return s.code, s.stdout, s.stderr
	}
	secure := func(args ...string) (int, string, string) {
		s := submit(t, map[string]string{"HOME": dir}, 0, args...)
		return s.code, s.stdout, s.stderr
	}
	apart, shared := newFake(t), newFake(t)
	onCluster := func(f *fakeJobTracker) func(...string) (int, string, string) {
		return func(args ...string) (int, string, string) { return f.run(t, args...) }
	}
	proof := filepath.Join(strings.TrimPrefix(shared.staging, "file://"), "clusters", "c1")
	if err := errors.Join(os.MkdirAll(filepath.Dir(proof), 0o755), os.WriteFile(proof, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	shared.trackers[0].Addr = "10.0.0.1:1"
	for _, c := range []struct {
		run  func(args ...string) (code int, stdout, stderr string)
		args []string
		code int
		want string // in the last line; empty: there is none
	}{
		{alone, job, 1, "start embedded cluster: no room"},
		{alone, []string{script}, 1, "script is not executable"},
		{alone, []string{dir}, 1, "holds no Go main package"},
		{alone, []string{exe, "-exit", "3"}, 1, "exit status 3"},
		{secure, append([]string{"-jobtracker", "h:1", "-tls-dir", filepath.Join(dir, "none")}, job...), 1, "none/ca.pem"},
		{onCluster(apart), job, 1, "is not shared with this machine"},
		{onCluster(shared), job, 1, "is a local file on a cluster of several machines"},
		{alone, []string{}, 2, ""},
		{alone, []string{"-weight", "-1", exe}, 2, ""},
		{alone, []string{exe, "-exit", "2"}, 2, ""},
	} {
		code, stdout, stderr := c.run(append([]string{"run", "-json"}, c.args...)...)
		checkLastLine(t, c.args, code, c.code, stdout, stderr, c.want)
	}
	for _, c := range []struct{ args, want string }{
		{"-input " + exe + " -output " + out + " -mapper cat", "start embedded cluster: no room"},
		{"-inputs " + exe, "inputs"},
	} {
		args := strings.Fields("streaming -json " + c.args)
		code, stdout, stderr := alone(args...)
		checkLastLine(t, args, code, 1, stdout, stderr, c.want)
	}
}

// checkLastLine checks that standard output has one line, the last one, with an error. If want is empty, there must be none.
func checkLastLine(t *testing.T, args []string, code, wantCode int, stdout, stderr, want string) {
	t.Helper()
	if code != wantCode || !strings.Contains(stderr, want) {
		t.Errorf("%q: exit code %d, want %d: %s", args, code, wantCode, stderr)
	}
	if want == "" {
		if stdout != "" {
			t.Errorf("%q: standard output has %q", args, stdout)
		}
		return
	}
	var last runLine
	err := json.Unmarshal([]byte(stdout), &last)
	if err != nil || !last.Final || last.Exit != code || !strings.Contains(last.Error, want) || !strings.HasSuffix(stdout, "\"jobs\":[]}\n") {
		t.Errorf("%q: %v, standard output %q, want a last line with %q", args, err, stdout, want)
	}
}

// TestLastLineOnce: an error after the last line adds none.
func TestLastLineOnce(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	tool := &tool{stdout: &stdout, stderr: &stderr, getenv: func(string) string { return "" },
		embedded: func(context.Context, *wire.Submission, bool) (*cluster, error) {
			return &cluster{Cluster: &recorder{state: wire.Succeeded}, files: dfs.Mux{"file": local.New()}, staging: "file://" + t.TempDir(),
				close: func() error { return errors.New("the disk is gone") }}, nil
		}}
	code := tool.main(t.Context(), []string{"run", "-json", exe, "-input", exe, "-output", t.TempDir() + "/out"})
	if code != exitFailed || strings.Count(stdout.String(), `"final":true`) != 1 || !strings.Contains(stderr.String(), "stop embedded cluster: the disk is gone") {
		t.Errorf("exit code %d: %s%s", code, stdout.String(), stderr.String())
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
