package embedded_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var keptPath = regexp.MustCompile(`the files of this run are kept in (\S+): logs in`)

// kept returns the directory that a run says it has kept.
func kept(t *testing.T, o outcome) string {
	t.Helper()
	m := keptPath.FindStringSubmatch(o.stderr)
	if m == nil {
		t.Fatalf("no directory is kept:\n%s", o.stderr)
	}
	return m[1]
}

// TestShownAndKept: a run prints what attempts print, names the properties for debugging when it fails, and keeps
// logs and working directories. A later run leaves the kept directory alone.
func TestShownAndKept(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "a b\n")
	o := run(t, "faulty", "-input", in, "-output", dir+"/out", "-at", "map", "-do", "exit", "-D", "mapreduce.map.maxattempts=2",
		"-D", "quern.embedded.output=true", "-D", "quern.embedded.keep=true")
	if o.exit != 1 {
		t.Fatalf("exit %d:\n%s", o.exit, o.stderr)
	}
	shown := regexp.MustCompile(`(?m)^attempt_\d+_0001_m_000000_100[01]: deliberate exit$`)
	if n := len(shown.FindAllString(o.stderr, -1)); n != 2 || !strings.Contains(o.stderr, "-D quern.task.inprocess=true") || strings.Contains(o.stderr, "add -D quern.embedded.output=true") {
		t.Errorf("%d lines of two attempts are shown, or no hint:\n%s", n, o.stderr)
	}
	path := kept(t, o)
	succeed(t, "wordcount", "-input", in, "-output", dir+"/out2")
	logs, _ := filepath.Glob(filepath.Join(path, "tracker1/logs/job_*/attempt_*_m_000000_100*/stderr"))
	var work []string
	filepath.WalkDir(path, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "work" && strings.Contains(name, "_m_000000_") {
			work = append(work, name)
		}
		return nil
	})
	if len(work) != 2 || len(logs) != 2 {
		t.Errorf("working directories %v, logs %v", work, logs)
	}
}

// TestProfile: the tasks of the properties have a CPU profile, and the others none.
func TestProfile(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", text(100_000))
	args := []string{"-input", in, "-output", dir + "/out", "-D", "mapreduce.task.profile=true", "-D", "mapreduce.task.profile.maps=1", "-D", "mapreduce.task.profile.reduces="}
	o := succeed(t, "wordcount", append(args, smallSplits...)...)
	profiles, _ := filepath.Glob(filepath.Join(kept(t, o), "tracker1/*/*/*/work/cpu.pprof"))
	if len(profiles) != 1 || !strings.Contains(profiles[0], "_m_000001_") {
		t.Fatalf("profiles %v\n%s", profiles, o.stderr)
	}
	if content, err := os.ReadFile(profiles[0]); err != nil || !bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
		t.Errorf("the profile begins with %.2x, error %v", content, err)
	}
	o = run(t, "wordcount", "-input", in, "-output", dir+"/out3", "-D", "mapreduce.task.profile=true", "-D", "quern.task.inprocess=true")
	if want := "mapreduce.task.profile=true: the attempts share a process"; o.exit != 1 || !strings.Contains(o.stderr, want) {
		t.Errorf("exit %d, want %q:\n%s", o.exit, want, o.stderr)
	}
}
