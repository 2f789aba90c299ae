package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/internal/docs"
)

// deadline limits every wait for an event.
const deadline = 60 * time.Second

// asDaemon is an environment variable that makes this test binary run as the command.
const asDaemon = "QUERN_TEST_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(asDaemon) != "" {
		os.Exit(daemon.Main("tasktracker", run))
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
	for _, c := range []struct {
		args string
		want string // empty: the flags are accepted
	}{
		{"-join host:7402", ""},
		{"-jobtracker a:1,b:2", ""},
		{"-join a:1 -data /x,/y", ""},
		{"-join a:1 -map-slots 0 -reduce-slots 1", ""},
		{"-join a:1 -shuffle-rate 10000000", ""},
		{"-join a:1 -memory 16g -vcores 8", ""},
		{"-join a:1 -memory 16q", "-memory"},
		{"-join a:1 -memory 0", ""},
		{"-join a:1 -memory -1", "-memory"},
		{"-join a:1 -max-memory x", "-max-memory"},
		{"-join a:1 -max-cores -1", "-max-cores"},
		{"-join a:1 -memory 9999999999t", "-memory"},
		{"-join a:1 -vcores -1", "-vcores must not be negative"},
		{"-join a:1 -listen 10.0.0.1:0 -gossip 10.0.0.1:0 -insecure", ""},
		{"-join a:1 -listen 0.0.0.0:0 -insecure -advertise 10.0.0.1", ""},
		{"", "-join is missing"},
		{"-join host", "-join"},
		{"-jobtracker host", "-jobtracker"},
		{"-join a:1 -id no/slash", "-id"},
		{"-join a:1 -data=", ""},
		{"-join a:1 -data /x,/y,/x", "given twice"},
		{"-join a:1 -data /x,file:/x", "given twice"},
		{"-join a:1 -data /x,hdfs:/y", "-data: hdfs:/y is not a local path"},
		{"-join a:1 -data /x,/y,/x/z", "/x/z is inside /x"},
		{"-join a:1 -data /x/z,/x", "/x/z is inside /x"},
		{"-join a:1 -data /x,/xy", ""},
		{"-join a:1 -map-slots -1", "-map-slots"},
		{"-join a:1 -map-slots 65537", "at most 65536 are possible"},
		{"-join a:1 -reduce-slots 65537", "at most 65536 are possible"},
		{"-join a:1 -vcores 65537", "at most 65536 are possible"},
		{"-join a:1 -map-slots 65536", ""},
		{"-join a:1 -shuffle-rate 1000", "-shuffle-rate must be at least"},
		{"-join a:1 -shuffle-rate -1", "got -1"},
		{"-join a:1 -map-slots 0 -reduce-slots 0", "at least one slot"},
		{"-join a:1 -rack /r1", ""},
		{"-join a:1 -rack /dc1/r7", ""},
		{"-join a:1 -rack r1", "-rack"},
		{"-join a:1 -rack /", "-rack"},
		{"-join a:1 -rack /r1/", "-rack"},
		{"-join a:1 -tls-dir /tls -insecure", "one or the other"},
		{"-join a:1 -listen 0.0.0.0:0", "-insecure"},
		{"-join a:1 -gossip :0", "-insecure"},
		{"-join a:1 -listen 0.0.0.0:0 -insecure", "-advertise: others cannot dial 0.0.0.0:0"},
		{"-join a:1 -gossip 0.0.0.0:0 -insecure", "-gossip-advertise: others cannot dial"},
		{"-join a:1 -advertise a:http", "-advertise"},
		{"-join a:1 -keep 0", "-keep"},
		{"-join a:1 -attempt-log-bytes 0", "-attempt-log-bytes must be at least"},
		{"-join a:1 -attempt-log-bytes 65536", ""},
		{"-join a:1 -attempt-disk-bytes -1", "-attempt-disk-bytes must not be negative, got -1"},
		{"-join a:1 -stop-grace 0s", "-stop-grace must be more than 0 and at most 10m0s, got 0s"},
		{"-join a:1 -stop-grace 11m", "-stop-grace must be more than 0 and at most 10m0s, got 11m0s"},
		{"-join a:1 -stop-grace 250ms", ""},
		{"-join a:1 -health-script /bin/sh -health-interval 5s -health-timeout 1s", ""},
		{"-join a:1 -health-script bin/sh", "-health-script: bin/sh is not an absolute path"},
		{"-join a:1 -health-script /nowhere", "-health-script: stat /nowhere: no such file"},
		{"-join a:1 -health-script /dev", "-health-script: /dev is not a regular file"},
		{"-join a:1 -health-interval -1s", "-health-interval must be positive, got -1s"},
		{"-join a:1 -health-timeout 0s", "-health-timeout must be positive, got 0s"},
		{"-join a:1 -staging file:///shared/quern/", ""},
		{"-join a:1 -staging /shared/quern", "-staging /shared/quern: want a URL"},
		{"-join a:1 -staging ://shared", "-staging"},
		{"-join a:1 stray", "unexpected argument"},
	} {
		args := append([]string{"-id", "a", "-data", "/d"}, strings.Fields(c.args)...)
		_, err := parse(args, daemon.Output{})
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.args, err)
		case c.want != "" && (!errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", c.args, err)
		}
	}
}

// TestDefaultData: -data is below the state directory, and missing without one.
func TestDefaultData(t *testing.T) {
	args := []string{"-id", "tt1", "-join", "127.0.0.1:1"}
	o, err := parse(args, daemon.Output{})
	if want := filepath.Join(os.Getenv("XDG_STATE_HOME"), "quern/data/tasktracker-tt1"); err != nil || len(o.disks) != 1 || o.disks[0] != want {
		t.Errorf("%+v, %v, want %s", o, err, want)
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	if _, err := parse(args, daemon.Output{}); !errors.Is(err, daemon.ErrUsage) || !strings.Contains(err.Error(), "-data is missing") {
		t.Error(err)
	}
}

// TestProcess checks exit codes, the ready line, and SIGTERM, without a job tracker.
func TestProcess(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"-h"}, 0},
		{[]string{"-version"}, 0},
		{[]string{"-data", dir}, 2},
		{[]string{"-data", filepath.Join(os.Args[0], "below"), "-jobtracker", "127.0.0.1:1", "-listen", "127.0.0.1:0"}, 1},
	} {
		cmd := command(t, c.args...)
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != c.code || len(out) == 0 {
			t.Errorf("%q: exit code %d, not %d: %s", c.args, cmd.ProcessState.ExitCode(), c.code, out)
		}
	}
	for _, flags := range [][]string{{"-jobtracker", "127.0.0.1:1"}, {"-join", "127.0.0.1:1", "-gossip", "127.0.0.1:0"}} {
		start(t, append(flags, "-data", filepath.Join(dir, flags[0]), "-id", "tt1", "-listen", "127.0.0.1:0"))
	}
}

func start(t *testing.T, args []string) {
	t.Helper()
	cmd := command(t, args...)
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
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "ready tasktracker tt1 http=127.0.0.1:") {
		t.Errorf("%q: it printed %q", args, lines.Text())
	}
	cmd.Process.Signal(syscall.SIGHUP) // has no effect
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%q: after SIGTERM: %v\n%s", args, err, &stderr)
	}
}

// TestForeignData: a -data directory with other files is refused, and nothing in it changes.
func TestForeignData(t *testing.T) {
	thesis := filepath.Join(t.TempDir(), "thesis.tex")
	if err := os.WriteFile(thesis, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "-data", filepath.Dir(thesis), "-jobtracker", "127.0.0.1:1", "-listen", "127.0.0.1:0")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "out of it: thesis.tex") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
	if all, err := os.ReadDir(filepath.Dir(thesis)); err != nil || len(all) != 1 {
		t.Errorf("there are %v, %v", all, err)
	}
}

// TestPortInUse: if the gossip port is in use, the error names the flag.
func TestPortInUse(t *testing.T) {
	taken, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cmd := command(t, "-data", t.TempDir(), "-join", "127.0.0.1:1", "-listen", "127.0.0.1:0", "-gossip", taken.LocalAddr().String())
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "another port with -gossip") {
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
	section := docs.Section(string(page), "### Flags of both") + docs.Section(string(page), "### tasktracker")
	for _, difference := range docs.FlagsDiffer(section, help.String()) {
		t.Errorf("docs/reference.md: tasktracker %s", difference)
	}
}
