package isolation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// tree makes directories in a new one, and returns its path without links.
func tree(t *testing.T, dirs ...string) string {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(top, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// TestPlanKept: a job cannot replace programs that the daemon's account executes, or rename a directory around them. An
// output beside them is refused, one elsewhere is not.
func TestPlanKept(t *testing.T) {
	top := tree(t, "run", "srv/quern/bin", "srv/jobs")
	if err := os.Symlink("srv/quern", top+"/current"); err != nil {
		t.Fatal(err)
	}
	c := Config{Kept: []string{top + "/current/bin"}}
	plan := func(inputs, output string) ([]string, error) {
		job := wire.JobPlan{Output: "file://" + top + output}
		if inputs != "" {
			job.Inputs = []wire.InputPlan{{Paths: []string{"file://" + top + inputs}}}
		}
		p, err := c.Plan(&Worker{Submission: &wire.Submission{Staging: "hdfs:///s/sub", Plan: wire.Plan{Jobs: []wire.JobPlan{job}}}, Dir: top + "/run"})
		if err != nil {
			return nil, err
		}
		return render(p.Steps, top+"/srv"), nil
	}
	for _, x := range []struct{ input, output, want string }{
		{"", "/srv/out", "bind  write\nbind /quern write\nbind /quern/bin"},
		{"", "/srv/quern/out", "bind /quern write\nbind /quern/bin"},
		{"", "/srv/quern/bin/own/out", "bind /quern/bin/own write"},
		{"", "/srv/jobs/out", "bind /jobs write"},
		{"/srv/quern", "/srv/jobs/out", "bind /jobs write\nbind /quern"},
		{"/srv", "/srv/quern/out", "bind \nbind /quern write\nbind /quern/bin"}, // read-only, writable, read-only
	} {
		if got, err := plan(x.input, x.output); err != nil || strings.Join(got, "\n") != x.want {
			t.Errorf("input %q, output %s: %v, the steps are\n%s", x.input, x.output, err, strings.Join(got, "\n"))
		}
	}
	if _, err := plan("", "/current/bin/out"); err == nil || !strings.Contains(err.Error(), "/srv/quern/bin, where programs of the task tracker are") {
		t.Errorf("an output beside the programs: %v", err)
	}
}

// TestReplacedIsShown: a daemon does not start with an audit log where jobs would see it after its rotation.
func TestReplacedIsShown(t *testing.T) {
	top := tree(t, "shown/logs", "shown/data", "logs")
	if err := os.Symlink("shown/logs", top+"/link"); err != nil {
		t.Fatal(err)
	}
	for file, refused := range map[string]bool{
		"/usr/share/audit.log": true, top + "/shown/audit": true, top + "/shown/logs/audit": true, top + "/link/audit": true,
		"/etc/quern/audit": false, top + "/shown/data/audit": false, top + "/logs/audit": false, "/var/log/audit": false,
	} {
		c := Config{Shown: []string{top + "/shown"}, Hidden: []string{top + "/shown/data", file}, Replaced: []string{file, file + ".1"}}
		if err := c.CheckReplaced(); (err != nil) != refused || refused && !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
