package main

import (
	"os/exec"
	"strings"
	"testing"
)

// TestTop: top shows the jobs on a terminal, filters them, and restores the terminal at its end. Narrow
// terminals get the most important columns, and NO_COLOR no colors.
func TestTop(t *testing.T) {
	for _, c := range []struct {
		name    string
		columns uint16
		env     string
		shows   string
		not     string
	}{
		{"wide", 160, "COLORTERM=", "STATE", "nothing"},
		{"narrow", 40, "COLORTERM=", "ENDS", "OWNER"},
		{"no color", 160, "NO_COLOR=1", "STATE", "\x1b[36m"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			env := installed(t, f)
			cmd := exec.Command(strings.TrimPrefix(strings.Split(env[0], ":")[0], "PATH=")+"/mrsubmit", "top")
			cmd.Env = append(env, c.env)
			s := onTerminal(t, cmd, c.columns, 24)
			at := s.await(0, "leads")
			s.await(0, "job_7_0004")
			s.await(0, c.shows)
			if strings.Contains(s.text(), c.not) {
				t.Errorf("it shows %q: %q", c.not, s.text())
			}
			if c.name == "wide" && !strings.Contains(s.text(), "\x1b[36m") {
				t.Errorf("it has no colors: %q", s.text())
			}
			s.send("/soon\rq")         // while a filter is typed, q is a part of it
			s.await(at, "\x1b[?1049l") // the screen before
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	f := newFake(t)
	if code, _, stderr := f.run(t, "top"); code != exitFailed || !strings.Contains(stderr, "not a terminal that can redraw: use mrsubmit list") {
		t.Errorf("without a terminal: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := f.run(t, "top", "-json"); code != exitUsage || !strings.Contains(stderr, "top has no JSON: use mrsubmit list -json") {
		t.Errorf("with -json: exit code %d, %s", code, stderr)
	}
	if code, _, stderr := f.run(t, "run", "-ui", "job"); code != exitUsage || !strings.Contains(stderr, "-ui shows an embedded run") {
		t.Errorf("run -ui on a cluster: exit code %d, %s", code, stderr)
	}
}
