package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/internal/docs"
	"github.com/quernmr/quern/jobtracker/replica"
)

// asDaemon is an environment variable that makes this test binary run as the command.
const asDaemon = "QUERN_TEST_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(asDaemon) != "" {
		os.Exit(daemon.Main("jobtracker", run))
	}
	os.Exit(withState(m))
}

// withState runs the tests with a state directory of their own, where the daemons make their authority.
func withState(m *testing.M) int {
	dir, err := os.MkdirTemp("", "state-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv("XDG_STATE_HOME", dir)
	return m.Run()
}

func command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asDaemon+"=1")
	return cmd
}

func TestRefusedFlags(t *testing.T) {
	data := t.TempDir()
	for _, c := range []struct {
		args string
		want string // empty: the flags are accepted
	}{
		{"", ""},
		{"-listen localhost:0", ""},
		{"-listen [::1]:0", ""},
		{"-id no/slash", "-id"},
		{"-id " + strings.Repeat("x", 65), "-id"},
		{"-data= -id a", ""},
		{"-nonsense", "nonsense"},
		{"an argument", "unexpected argument"},
		{"-listen 0.0.0.0:7400", "-insecure"},
		{"-listen :7400", "-insecure"},
		{"-raft 10.0.0.1:7401", "-raft 10.0.0.1:7401 can be reached"},
		{"-gossip 10.0.0.1:7402", "-insecure"},
		{"-listen 10.0.0.1:7400 -insecure", "-staging"},
		{"-listen 10.0.0.1:7400 -insecure -staging file:///shared", ""},
		{"-advertise 10.0.0.1", "-staging"},
		{"-listen nowhere", "-listen"},
		{"-listen localhost:http", "-listen"},
		{"-listen no-such-host.invalid:1", "-listen"},
		{"-tls-dir /tls -insecure", "one or the other"},
		{"-tls-dir /tls", ""},
		{"-tls-dir /tls -admins ann,bob", ""},
		{"-tls-dir /tls -admins=", ""},
		{"-tls-dir /tls -admins ann/bob", "-admins: name \"ann/bob\""},
		{"-admins ann", ""},
		{"-admins ann -insecure", "-admins has no effect with -insecure"},
		{"-acl-view ann -insecure", "-acl-view has no effect with -insecure"},
		{"-join 127.0.0.1:1", "-staging"},
		{"-join 127.0.0.1:1 -staging file:///shared", ""},
		{"-join 127.0.0.1 -staging file:///shared", "-join"},
		{"-join host:0 -staging file:///shared", "-join"},
		{"-bootstrap-expect 3", "-join"},
		{"-bootstrap-expect -1", "-bootstrap-expect"},
		{"-bootstrap-expect 100 -join a:1", "-bootstrap-expect"},
		{"-bootstrap-expect 3 -join 127.0.0.1:1,127.0.0.1:2", "-staging"},
		{"-bootstrap-expect 3 -join 127.0.0.1:1,127.0.0.1:2 -staging file:///shared", ""},
		{"-staging /shared", "URL"},
		{"-staging file:/shared", ""},
		{"-staging hdfs:/quern", ""},
		{"-staging hdfs:quern", "-staging: path"},
		{"-staging s3a://bucket/quern", "-staging: s3a://bucket/quern: unknown file system"},
		{"-data file:/var/quern", ""},
		{"-data hdfs:/quern", "-data: hdfs:/quern is not a local path"},
		{"-scheduler flex -metric max-tardiness-weighted -delay dynamic", ""},
		{"-scheduler lottery", "scheduler \"lottery\": want one of fifo"},
		{"-metric least-work", "metric \"least-work\": want sum- or max-"},
		{"-delay fixed", "delay \"fixed\": want none"},
		{"-delay fixed=-1s", "delay \"fixed=-1s\""},
		{"-delay fixed=3s", ""},
		{"-pools pools.xml -pools-ignore maxAMShare,percentages", ""},
		{"-pools hdfs://nn:8020/pools.xml", ""},
		{"-pools ://x", "-pools"},
		{"-pools s3a://bucket/pools.xml", "-pools: s3a://bucket/pools.xml: unknown file system"},
		{"-period 0s", "-period"},
		{"-lease 1ms", "-lease"},
		{"-raft-timeout 1ms", "-raft-timeout"},
		{"-keep 0", "-keep"},
		{"-keep-bytes 0", "-keep-bytes"},
		{"-limits jobs=5,user-jobs=2,task-memory=4096,job-lifetime=24h,running=0", ""},
		{"-limits jobs", "\"jobs\": want NAME=VALUE"},
		{"-limits jobs=5,jbos=5", "\"jbos\" is not a limit"},
		{"-limits jobs=-1", "jobs is \"-1\": want a whole number"},
		{"-limits job-lifetime=1", "job-lifetime is \"1\": want a time"},
		{"-limits task-memory=99999999999999", "task-memory is"},
	} {
		var out bytes.Buffer
		args := append([]string{"-id", "a", "-data", data}, strings.Fields(c.args)...)
		_, err := parse(args, daemon.Output{Stdout: &out, Stderr: &out})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.args, err)
		case c.want != "" && (!errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", c.args, err)
		}
	}
}

// TestRecoverRefused: recover refuses what it cannot use, and names it.
func TestRecoverRefused(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args, want string
		usage      bool
	}{
		{"-data " + dir, "recover: -data, -id and -raft are needed", true},
		{"-data " + dir + " -id a -raft b", "recover: -raft: address b: missing port", true},
		{"-data " + dir + " -id a -raft b:1 c", `unexpected argument "c"`, true},
		{"-datadir " + dir, "flag provided but not defined: -datadir", true},
		{"-data " + dir + " -id a -raft b:1", dir, false},
	} {
		err := run(t.Context(), append([]string{"recover"}, strings.Fields(c.args)...), daemon.Output{})
		if err == nil || errors.Is(err, daemon.ErrUsage) != c.usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.args, err, c.want)
		}
	}
	var help bytes.Buffer
	if err := run(t.Context(), []string{"recover", "-h"}, daemon.Output{Stdout: &help}); !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(help.String(), "usage: jobtracker recover -data DIR") {
		t.Errorf("-h: %v, %q", err, help.String())
	}
}

func TestDefaults(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	o, err := parse([]string{"-data", "here"}, daemon.Output{})
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if o.id != host || o.expect != 1 || o.data != filepath.Join(here, "here") || o.staging != "file://"+o.data+"/staging" {
		t.Errorf("%+v", o)
	}
}

// TestDefaultData: -data is below the state directory, and missing without one.
func TestDefaultData(t *testing.T) {
	o, err := parse([]string{"-id", "jt1"}, daemon.Output{})
	if want := filepath.Join(os.Getenv("XDG_STATE_HOME"), "quern/data/jobtracker-jt1"); err != nil || o.data != want {
		t.Errorf("%+v, %v, want %s", o, err, want)
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := parse([]string{"-id", "jt1"}, daemon.Output{}); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), "-data is missing") {
		t.Error(err)
	}
}

// TestNoState: without a safe state directory a job tracker ends, and names the flags. With -insecure
// it logs that it is not protected.
func TestNoState(t *testing.T) {
	at := []string{"-data", t.TempDir(), "-id", "jt1", "-listen", "127.0.0.1:0", "-raft", "127.0.0.1:0", "-gossip", "127.0.0.1:0"}
	cmd := command(t, at...)
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME=", "HOME=")
	out, _ := cmd.CombinedOutput()
	for _, want := range []string{"no automatic certificate", "neither XDG_STATE_HOME nor HOME", "-tls-dir", "-insecure"} {
		if cmd.ProcessState.ExitCode() != daemon.ExitUsage || !strings.Contains(string(out), want) {
			t.Errorf("exit code %d, want %q in\n%s", cmd.ProcessState.ExitCode(), want, out)
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	launch(t, "jt1", t.TempDir(), "-insecure").log.await(t, "connections are not encrypted")
}

// TestProcess checks exit codes, the ready line, and SIGTERM.
func TestProcess(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"-h"}, 0},
		{[]string{"-version"}, 0},
		{[]string{"-data", t.TempDir(), "-listen", "0.0.0.0:0"}, 2},
		{[]string{"-data", filepath.Join(os.Args[0], "below"), "-listen", "127.0.0.1:0"}, 1},
	} {
		cmd := command(t, c.args...)
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != c.code || len(out) == 0 {
			t.Errorf("%q: exit code %d, not %d: %s", c.args, cmd.ProcessState.ExitCode(), c.code, out)
		}
	}
	cmd := command(t, "-data", t.TempDir(), "-id", "jt1", "-listen", "127.0.0.1:0", "-raft", "127.0.0.1:0", "-gossip", "127.0.0.1:0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(deadline, func() { cmd.Process.Kill() })
	defer watchdog.Stop()
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "ready jobtracker jt1 http=127.0.0.1:") {
		t.Errorf("it printed %q", lines.Text())
	}
	cmd.Process.Signal(syscall.SIGHUP) // has no effect
	cmd.Process.Signal(syscall.SIGTERM)
	if lines.Scan() {
		t.Errorf("it also printed %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, &stderr)
	}
}

// TestForeignData: a -data directory with other files is refused, and nothing in it changes.
func TestForeignData(t *testing.T) {
	thesis := filepath.Join(t.TempDir(), "thesis.tex")
	if err := os.WriteFile(thesis, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "-data", filepath.Dir(thesis), "-listen", "127.0.0.1:0", "-raft", "127.0.0.1:0", "-gossip", "127.0.0.1:0")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "out of it: thesis.tex") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
	if all, err := os.ReadDir(filepath.Dir(thesis)); err != nil || len(all) != 1 {
		t.Errorf("there are %v, %v", all, err)
	}
}

// TestNewClusterWithBadPools: a new cluster does not begin without the limits of its pools file.
func TestNewClusterWithBadPools(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "pools.xml")
	if err := os.WriteFile(name, []byte("<allocations><queue name=\"etl\"><maxChildResources>2 vcores</maxChildResources></queue></allocations>"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "-data", filepath.Join(dir, "data"), "-listen", "127.0.0.1:0", "-raft", "127.0.0.1:0", "-gossip", "127.0.0.1:0", "-pools", name)
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "-pools: "+name+":1: maxChildResources of pool etl is not supported") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

// TestFlagsAreDocumented: docs/reference.md has exactly the flags of the help.
func TestFlagsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	var help bytes.Buffer
	if _, err := parse([]string{"-h"}, daemon.Output{Stdout: &help}); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	section := docs.Section(string(page), "### Flags of both") + docs.Section(string(page), "### jobtracker")
	for _, difference := range docs.FlagsDiffer(section, help.String()) {
		t.Errorf("docs/reference.md: jobtracker %s", difference)
	}
}

// TestWithCommand: the error of an unreadable log ends with the complete command that recovers it.
func TestWithCommand(t *testing.T) {
	err := withCommand(fmt.Errorf("jt2's log: %w: use: jobtracker recover", replica.ErrUnreadable), "/var/lib/quern", "jt2", "10.0.0.2:7401")
	if !errors.Is(err, replica.ErrUnreadable) || !strings.HasSuffix(err.Error(), "jobtracker recover -data /var/lib/quern -id jt2 -raft 10.0.0.2:7401") {
		t.Error(err)
	}
	if err := withCommand(replica.ErrInUse, "/var/lib/quern", "jt2", "10.0.0.2:7401"); err != replica.ErrInUse {
		t.Error(err)
	}
}
