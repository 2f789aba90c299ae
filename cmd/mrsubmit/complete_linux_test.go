package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// installed puts this test binary as mrsubmit into a directory, and returns an environment that finds
// it and the cluster of f.
func installed(t *testing.T, f *fakeJobTracker) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(exe, filepath.Join(dir, "mrsubmit")); err != nil {
		t.Fatal(err)
	}
	return []string{
		"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TERM=xterm", "GORACE=atexit_sleep_ms=0",
		"QUERN_JOBTRACKER=" + f.addr, "QUERN_INSECURE=1", "LC_ALL=C.UTF-8",
	}
}

// shell returns a command of a shell, or skips the test.
func shell(t *testing.T, f *fakeJobTracker, name string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = installed(t, f), t.TempDir()
	if err := os.WriteFile(filepath.Join(cmd.Dir, "program"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// TestBash: bash completes in its own words, which it splits at "=" and ":".
func TestBash(t *testing.T) {
	f := newFake(t)
	s := onTerminal(t, shell(t, f, "bash", "--norc", "--noprofile", "-i"), 200, 50)
	s.send("PS1=; bind 'set enable-bracketed-paste off'; source <(mrsubmit completion bash); echo rea''dy\n")
	at := s.await(0, "ready")
	for _, c := range []struct{ typed, want string }{
		{"mrsubmit susp\t-no\tx ", "mrsubmit suspend -now x "},
		{"mrsubmit cluster sch\tfle\t", "flex"},
		{"mrsubmit kill job_7_0002\t", "job_7_0002 "},
		{"mrsubmit cluster scheduler -metric=sum-stretch-\t", "weighted"},
		{"mrsubmit set job_7_0002 prio\tVERY_H\t", "priority=VERY_HIGH "},
		{"mrsubmit run -pool et\tprog\t-out\t", "-pool etl program"},
		{"mrsubmit list -name $(touch evaluated) -o\t", "-owner "},
	} {
		s.send(c.typed)
		at = s.await(at, c.want)
		s.send("\x15")
	}
	if _, err := os.Stat(filepath.Join(s.cmd.Dir, "evaluated")); err == nil {
		t.Error("the completion has evaluated the command line")
	}
}

// TestBashQuotes: jobs can have any name, and bash evaluates the line later. So names are quoted, whatever they end with.
func TestBashQuotes(t *testing.T) {
	cmd := shell(t, newFake(t), "bash", "--norc", "--noprofile", "-c", `source <("$0" completion bash)
		COMP_WORDS=(choices list -name '') COMP_CWORD=3
		choices() { printf '%s\t\n' '$(touch evaluated)=' '$(touch evaluated)' 'weight='; }
		_mrsubmit; printf '%s\n' "${COMPREPLY[@]}"`, "mrsubmit")
	out, err := cmd.CombinedOutput()
	if want := "\\$\\(touch\\ evaluated\\)=\n\\$\\(touch\\ evaluated\\)\nweight=\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v, want %q", out, err, want)
	}
}

// TestZsh: zsh completes, and shows what the choices mean.
func TestZsh(t *testing.T) {
	f := newFake(t)
	s := onTerminal(t, shell(t, f, "zsh", "-f", "-i"), 200, 50)
	s.send("PS1=; autoload -U compinit; compinit -D; source <(mrsubmit completion zsh); echo rea''dy\n")
	at := s.await(0, "ready")
	for _, c := range []struct{ typed, want string }{
		{"mrsubmit clus\tsched\tfle\t", "flex"},
		{"mrsubmit kill \t\t", "job_7_0004  -- soon, running"},
		{"mrsubmit cluster scheduler -metric=sum-stretch-\t", "weighted"},
		{"mrsubmit set job_7_0002 prio\tVERY_H\t", "priority=VERY_HIGH"},
		{"mrsubmit run -pool e\tprog\t", "program"},
	} {
		s.send(c.typed)
		at = s.await(at, c.want)
		s.send("\x15")
	}
}

// TestFish: fish lists the choices.
func TestFish(t *testing.T) {
	f := newFake(t)
	for typed, want := range map[string][]string{
		"mrsubmit susp":           {"suspend\tgive jobs no more slots; running attempts go on"},
		"mrsubmit kill job_7_000": {"job_7_0002\tso?rt, running", "job_7_0004\tsoon, running"},
		"mrsubmit cluster drain ": {"t1\th1, good", "t2\th2, not connected, silent for 1.2s; excluded until"},
		"mrsubmit run prog":       {"program"},
		"mrsubmit cluster scheduler -metric=max-tardiness-w": {"-metric=max-tardiness-weighted"},
	} {
		cmd := shell(t, f, "fish", "--no-config", "-c", "mrsubmit completion fish | source; complete -C '"+typed+"'")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		slices.Sort(lines)
		if !slices.EqualFunc(lines, want, strings.HasPrefix) {
			t.Errorf("%q: %q, want %q", typed, lines, want)
		}
	}
}
