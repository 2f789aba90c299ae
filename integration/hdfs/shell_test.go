package hdfs_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/internal/shelltable"
)

// shellOver returns a function that runs mrsubmit fs over a cluster.
func shellOver(t *testing.T, c *minicluster.Cluster) shelltable.Exec {
	t.Helper()
	return answersAs(t, c, "mrsubmit")
}

// answersAs returns a function that runs the command fs of mrsubmit under a name over a cluster.
func answersAs(t *testing.T, c *minicluster.Cluster, name string) shelltable.Exec {
	t.Helper()
	dir := t.TempDir()
	if err := processes.Build(dir, "cmd/mrsubmit"); err != nil {
		t.Fatal(err)
	}
	if name != "mrsubmit" {
		if err := os.Symlink("mrsubmit", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return func(args []string, stdin string) (string, string, int) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, name), append([]string{"fs", "-fs", c.URL()}, args...)...)
		cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+c.Conf(), "HADOOP_USER_NAME="+minicluster.Superuser, "TZ=UTC")
		var stdout, stderr bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
		var exit *exec.ExitError
		if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	}
}

// TestShellOfHadoop runs the commands of testdata/shell.txt, and compares the answers with Hadoop's.
func TestShellOfHadoop(t *testing.T) {
	c := startOwn(t, func(cfg *minicluster.Config) { cfg.Racks = []string{"/a", "/b"} })
	if n := shelltable.Run(t, "testdata/shell.txt", "../..", c.URL(), shellOver(t, c)); n < 80 {
		t.Errorf("%d commands: the table is cut short", n)
	}
}

// TestPropertiesOfCommands: properties of -D hold over those of the configuration.
func TestPropertiesOfCommands(t *testing.T) {
	c := cluster(t)
	f := client(t, c)
	run := answersAs(t, c, "hadoop")
	dir := newDir(t, c, f)
	for _, args := range []string{
		"-D dfs.replication=1 -D dfs.blocksize=2m -D fs.permissions.umask-mode=077 -put - " + dir + "/a",
		"-D fs.permissions.umask-mode=027 -mkdir " + dir + "/d",
	} {
		if stdout, stderr, code := run(strings.Fields(args), "text\n"); code != 0 || stdout+stderr != "" {
			t.Fatalf("%s: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
	if a, err := f.Attributes(dir + "/a"); err != nil || a.Replicas != 1 || a.BlockSize != 2*blockSize || a.Mode != 0o600 {
		t.Errorf("%+v, %v", a, err)
	}
	if d, err := f.Attributes(dir + "/d"); err != nil || d.Mode != 0o750 {
		t.Errorf("%+v, %v", d, err)
	}
	args := []string{"-D", "fs.trash.interval=60", "-rm", dir + "/a"}
	if stdout, stderr, code := run(args, ""); code != 0 || stdout != "" || !strings.HasPrefix(stderr, "rm: Moved: ") {
		t.Errorf("%s: exit code %d, %q, %q", args, code, stdout, stderr)
	}
}

// TestTrash: where HDFS has a trash, removed files go there, also a second one of the same name.
func TestTrash(t *testing.T) {
	c := startOwn(t, func(cfg *minicluster.Config) {
		cfg.Racks, cfg.Replication, cfg.Properties = []string{"/a"}, 1, map[string]string{"fs.trash.interval": "10"}
	})
	f := client(t, c)
	run := shellOver(t, c)
	for _, want := range []string{"1", "2"} {
		write(t, f, c.URL()+"/a", []byte(want))
		if stdout, stderr, code := run([]string{"-rm", "/a"}, ""); code != 0 || stdout != "" || !strings.Contains(stderr, "Moved: '"+c.URL()+"/a' to trash at: ") {
			t.Fatalf("exit code %d, %q, %q", code, stdout, stderr)
		}
	}
	trash := c.URL() + "/user/" + minicluster.Superuser + "/.Trash/Current"
	if list, err := f.List(trash); err != nil || len(list) != 2 || string(read(t, f, trash+"/a")) != "1" || string(read(t, f, list[1].Name)) != "2" {
		t.Errorf("the trash has %v, %v", list, err)
	}
	write(t, f, c.URL()+"/b", nil)
	for _, name := range []string{"/b", "/b/x", "/b/y/x"} { // the trash has a file in place of a directory
		if err := f.MkdirAll(dfs.Dir(c.URL() + name)); err != nil {
			t.Fatal(err)
		}
		if name != "/b" {
			write(t, f, c.URL()+name, nil)
		}
		if stdout, stderr, code := run([]string{"-rm", name}, ""); code != 0 || stdout != "" || !strings.Contains(stderr, "Moved: '"+c.URL()+name) {
			t.Errorf("-rm %s: exit code %d, %q, %q", name, code, stdout, stderr)
		}
	}
	for command, want := range map[string]string{
		"-rm -r -skipTrash /user/nobody": "rm: `/user/nobody': No such file or directory\n",
		"-rm -r /user":                   "rm: Cannot move \"" + c.URL() + "/user\" to the trash, as it contains the trash. Consider using -skipTrash option\n",
	} {
		if _, stderr, code := run(strings.Split(command, " "), ""); code != 1 || stderr != want {
			t.Errorf("%s: exit code %d, %q", command, code, stderr)
		}
	}
	if stdout, stderr, code := run([]string{"-rm", trash + "/a"}, ""); code != 0 || stdout != "Deleted "+trash+"/a\n" {
		t.Errorf("from the trash: exit code %d, %q, %q", code, stdout, stderr)
	}
	if _, err := f.Stat(dfs.Dir(trash)); err != nil {
		t.Error(err)
	}
	if err := f.Mkdir(dfs.Join(dfs.Dir(trash), "010203040506-1")); err != nil { // a checkpoint of the year 2001
		t.Fatal(err)
	}
	for _, c := range []struct {
		command string
		left    int
	}{{"-expunge", 1}, {"-expunge", 1}, {"-expunge -immediate", 0}} {
		stdout, stderr, code := run(strings.Split(c.command, " "), "")
		if list, err := f.List(dfs.Dir(trash)); code != 0 || stdout+stderr != "" || err != nil || len(list) != c.left || len(list) > 0 && list[0].Name == trash {
			t.Errorf("%s: exit code %d, %q, %q; the trash has %v, %v", c.command, code, stdout, stderr, list, err)
		}
	}
}
