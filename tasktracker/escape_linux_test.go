package tasktracker

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/wire"
)

// escapes are ways to outlive an attempt. SLEEP is a command that shows in the list of processes.
var escapes = []string{
	"setsid SLEEP &",           // a session of its own
	"setsid sh -c 'SLEEP & :'", // its parent has ended, too
	"cd /; setsid sh -c 'trap \"\" HUP INT TERM; (SLEEP </dev/null >/dev/null 2>&1 &) &'", // a daemon
}

// hangs is a task of doDaemonise that does not end.
const hangs = 2

// testDaemonise escapes in all ways, for as many seconds as the last argument says.
func testDaemonise(task int, r *wire.Result) {
	mark := os.Args[len(os.Args)-1]
	for _, escape := range escapes {
		cmd := exec.Command("sh", "-c", strings.ReplaceAll(escape, "SLEEP", "sleep "+mark)) // without pipes, which would wait for its children
		if err := cmd.Run(); err != nil {
			r.Error = fmt.Sprintf("%s: %v", escape, err)
			return
		}
	}
	for begin := time.Now(); len(sleeping(mark)) < len(escapes); runtime.Gosched() {
		if time.Since(begin) > deadline {
			r.Error = fmt.Sprintf("%d processes have escaped, want %d", len(sleeping(mark)), len(escapes))
			return
		}
	}
	if task == hangs {
		hang()
	}
}

// sleeping returns the processes that sleep for so long.
func sleeping(mark string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if text, _ := os.ReadFile(file); string(text) == "sleep\x00"+mark+"\x00" {
			found = append(found, filepath.Dir(file))
		}
	}
	return found
}

// awaitSleeping waits until so many processes sleep.
func awaitSleeping(t *testing.T, mark string, want int) {
	t.Helper()
	for begin := time.Now(); len(sleeping(mark)) != want; runtime.Gosched() {
		if time.Since(begin) > deadline {
			t.Fatalf("these processes sleep: %v, want %d", sleeping(mark), want)
		}
	}
}

// TestDaemonsOfJobsEnd: processes in sessions of their own, with and without a parent, and daemons that ignore signals
// end with the attempt that started them, or with the task tracker, with and without namespaces.
func TestDaemonsOfJobsEnd(t *testing.T) {
	alsoAsUser(t)
	for _, level := range []isolation.Level{isolation.None, isolation.Namespace} {
		t.Run(string(level), func(t *testing.T) {
			mark := fmt.Sprintf("100000.%d", os.Getpid())
			sub := new(wire.Submission)
			sub.Program.Args = []string{mark}
			start := startIsolated
			if level == isolation.None {
				start = startSubmission
			}
			l := start(t, Config{}, sub)
			for n := range hangs {
				l.succeed(wire.Map, n, doDaemonise)
				awaitSleeping(t, mark, 0)
			}
			l.launch(wire.Map, hangs, doDaemonise)
			awaitSleeping(t, mark, len(escapes))
			if err := l.stop(); err != nil {
				t.Error(err)
			}
			awaitSleeping(t, mark, 0)
		})
	}
}
