package isolation

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/datadir"
	"github.com/quernmr/quern/wire"
)

// planOf returns the plan of a job with an input and an output, either may be empty.
func planOf(c *Config, dir, input, output string) ([]string, error) {
	job := wire.JobPlan{}
	if input != "" {
		job.Inputs = []wire.InputPlan{{Paths: []string{"file://" + dir + input}}}
	}
	if output != "" {
		job.Output = "file://" + dir + output
	}
	plan, err := c.Plan(&Worker{Submission: &wire.Submission{Staging: "hdfs:///s/sub", Plan: wire.Plan{Jobs: []wire.JobPlan{job}}}, Dir: dir + "/run"})
	if err != nil {
		return nil, err
	}
	return render(plan.Steps, dir), nil
}

// TestPlanOtherDaemons: a job cannot name the data and keys of another daemon of the account, or what is in them. Around them, it
// does not see them.
func TestPlanOtherDaemons(t *testing.T) {
	secrets := map[string]string{"jt/data": datadir.JobTracker, "tt/disk": datadir.TaskTracker, "certs/authority": "ca-key.pem", "certs/jt1": "gossip.key", "certs/ann": "key.pem"}
	top := tree(t, "run", "in/books", "jt/data/log/x", "tt/disk", "certs/authority", "certs/jt1", "certs/ann", "deep/quern-tasktracker")
	for dir, name := range secrets {
		if err := os.WriteFile(filepath.Join(top, dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("jt/data/log", top+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, named := range []string{"/jt/data", "/jt/data/log/x", "/jt/data/log/*", "/link/x", "/tt/disk/new", "/certs/authority/ca-key.pem", "/certs/jt1", "/certs/ann/cert.pem"} {
		if _, err := planOf(new(Config), top, named, ""); err == nil || !strings.Contains(err.Error(), "jobs cannot use") {
			t.Errorf("input %s: %v", named, err)
		}
		if _, err := planOf(new(Config), top, "", named+"/out"); err == nil || !strings.Contains(err.Error(), "jobs cannot use") {
			t.Errorf("output %s/out: %v", named, err)
		}
	}
	for _, around := range []string{"/certs", "/jt", "/tt", ""} {
		for _, x := range [][2]string{{around + "/*", "/in/out"}, {"/in/books", around + "/out"}} {
			steps, err := planOf(new(Config), top, x[0], x[1])
			if err != nil {
				t.Errorf("input %s, output %s: %v", x[0], x[1], err)
			}
			for dir := range secrets {
				if strings.HasPrefix("/"+dir, around+"/") && !slices.Contains(steps, "empty /"+dir) {
					t.Errorf("input %s, output %s: %s is visible:\n%s", x[0], x[1], dir, strings.Join(steps, "\n"))
				}
			}
		}
	}
	if steps, err := planOf(new(Config), top, "/deep", "/in/out"); err != nil || len(steps) > 3 {
		t.Errorf("a directory with the name of a marker: %v, %v", steps, err)
	}
	if found := Secrets([]string{top + "/certs", top + "/in"}, 100); len(found) != 3 {
		t.Errorf("found %v", found)
	}
}

// TestPrivate: what other users cannot read is found, but not what they can read, or what is shown on purpose.
func TestPrivate(t *testing.T) {
	top := tree(t, "etc/open", "etc/closed/in", "etc/app/conf")
	for name, mode := range map[string]fs.FileMode{"open/passwd": 0o644, "open/shadow-": 0o640, "closed/in/key": 0o600, "app/conf/secret": 0o600} {
		if err := os.WriteFile(filepath.Join(top, "etc", name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range map[string]fs.FileMode{"etc/open": 0o755, "etc/closed": 0o700, "etc/app": 0o755, "etc/app/conf": 0o755, "etc": 0o755} {
		if err := os.Chmod(filepath.Join(top, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{top + "/etc/closed", top + "/etc/open/shadow-"}
	if found := Private([]string{top + "/etc"}, []string{top + "/etc/app/"}, 100); !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

// TestPlanCoversSockets: a job cannot use a socket below a directory that it names.
func TestPlanCoversSockets(t *testing.T) {
	top := tree(t, "run", "in/a", "out")
	for _, name := range []string{"/in/a/socket", "/out/socket"} {
		listener, err := net.Listen("unix", top+name)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
	}
	steps, err := planOf(new(Config), top, "/in", "/out/job")
	if err != nil || !slices.Contains(steps, "bind /in/a/socket from /dev/null") || !slices.Contains(steps, "bind /out/socket from /dev/null") {
		t.Errorf("%v: %v", err, steps)
	}
}

// TestPlanLooksAtLittle: the start of a worker does not look at all files of a large directory, but at the outer ones first.
func TestPlanLooksAtLittle(t *testing.T) {
	top := tree(t, "a/b/c", "d")
	for _, name := range []string{"a/b/c/gossip.key", "d/gossip.key"} {
		if err := os.WriteFile(filepath.Join(top, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if dirs, _ := secrets(top, 4); !slices.Equal(dirs, []string{top + "/d"}) {
		t.Errorf("found %v", dirs)
	}
}

// TestPlanOutputs: an output is in a directory that the operator has named, and never directly in one for temporary files.
func TestPlanOutputs(t *testing.T) {
	top := tree(t, "run", "srv/jobs", "tmp")
	if err := os.Symlink("srv/jobs", top+"/jobs"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", top+"/tmp")
	c := Config{Outputs: []string{top + "/jobs", top + "/tmp"}}
	for output, want := range map[string]string{
		"/jobs/out": "", "/srv/jobs/a/out": "", "/tmp/ann/out": "",
		"/srv/out": "in no directory of tasktracker -job-outputs (" + top + "/srv/jobs," + top + "/tmp) (-isolation namespace): choose an output in a directory in " + top + "/srv/jobs, such as " + top + "/srv/jobs/jobs/out", "/srv/jobs2/out": "in no directory", "/out": "in no directory",
		"/tmp/out": "choose an output in a directory in " + top + "/tmp, such as " + top + "/tmp/jobs/out",
	} {
		if _, err := planOf(&c, top, "", output); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("output %s: %v, want %q", output, err, want)
		}
		// A job of a driver that a later step follows, which has the output.
		step := &wire.Step{Output: "file://" + top + output}
		_, err := c.Plan(&Worker{Submission: &wire.Submission{Staging: "hdfs:///s/sub", Program: wire.Program{Step: step}}, Dir: top + "/run"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("later output %s: %v, want %q", output, err, want)
		}
	}
	later := &wire.Submission{Staging: "hdfs:///s/sub", Program: wire.Program{Step: &wire.Step{Output: "file://" + top + "/jobs/later/out"}}}
	if _, err := c.Plan(&Worker{Submission: later, Dir: top + "/run"}); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(top + "/jobs/later"); err == nil {
		t.Error("a job that does not write the output made the directory around it")
	}
	home := &planner{daemonHome: "/root", outputs: []string{"/tmp", "/var/tmp"}, temp: []string{"/tmp", "/var/tmp"}}
	if got, want := home.otherThan("/root", "out"), "a directory in /tmp, such as /tmp/jobs/out"; got != want {
		t.Errorf("for an output of root in its home directory: %s, want %s", got, want)
	}
	for _, output := range []string{"/tmp/out", "/var/tmp/out", "/dev/shm/out"} {
		if _, err := planOf(new(Config), "", "", output); err == nil {
			t.Errorf("output %s is permitted", output)
		}
	}
}
