package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/tasktracker/isolation/enter"
	"github.com/quernmr/quern/tasktracker/process"
	"github.com/quernmr/quern/tasktracker/workers"
	"github.com/quernmr/quern/wire"
)

// TestHelperIsEarly: a process that sets up namespaces initialises few packages, as each worker starts with one. It needs
// none for networks, HTTP, HDFS or regular expressions.
func TestHelperIsEarly(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Args[0], cmd.Env = enter.Name, []string{"GODEBUG=inittrace=1"}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for len(cmd.ExtraFiles) <= enter.PlanFD-3 { // else the helper would take a file of Go's runtime for the plan, and close it
		cmd.ExtraFiles = append(cmd.ExtraFiles, null)
	}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), enter.Failed+" read the plan: ") {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		name := strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "init ")
		name, _, _ = strings.Cut(name, " ")
		for _, late := range []string{"net", "net/http", "regexp", "hadoop_common", "hadoop_hdfs", "protobuf/proto", "memberlist"} {
			if name == late || strings.HasSuffix(name, "/"+late) {
				t.Errorf("the helper waits for the initialisation of %s", name)
			}
		}
	}
}

// heldMemory is memory of the benchmark's process, as of a task tracker with jobs. It writes there after each start: a start that
// copies this process would delay it.
const heldMemory = 64 << 20

// BenchmarkWorkerStart starts workers until their first message, and ends them. The metrics are medians: the processor time and page
// faults of the worker with its helper, the processor time of this process, which is the task tracker, and the time until the
// first message. Run it with CGO_ENABLED=0, as the task tracker is built.
func BenchmarkWorkerStart(b *testing.B) {
	program := filepath.Join(b.TempDir(), "wordcount")
	build := exec.Command("go", "build", "-o", program, "github.com/quernmr/quern/examples/wordcount")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	for _, level := range []isolation.Level{isolation.None, isolation.Namespace, isolation.User} {
		b.Run(string(level), func(b *testing.B) {
			s := newStarts(b, program, level)
			var all [4][]float64
			for n := 0; b.Loop(); n++ {
				for i, value := range s.start(b, n) {
					all[i] = append(all[i], value)
				}
			}
			for i, name := range []string{"worker-ms", "tracker-ms", "ms-to-hello", "faults"} {
				slices.Sort(all[i])
				b.ReportMetric(all[i][len(all[i])/2], name)
			}
		})
	}
}

// starts starts workers of a program.
type starts struct {
	*process.Starter
	dir     string
	held    []byte
	program workers.Program
}

func newStarts(b *testing.B, program string, level isolation.Level) *starts {
	runtime.LockOSThread()                           // workers end with the thread
	dir, err := os.MkdirTemp("/tmp", "quern-start-") // other users can reach it
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	exe, err := os.Open(program)
	if err := errors.Join(err, os.Chmod(dir, 0o755), process.StartRecord(dir)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { exe.Close() })
	s := &starts{process.New(process.Config{Dir: dir, Logs: 1 << 20, Contain: true}), dir, make([]byte, heldMemory), workers.Program{
		Submission: &wire.Submission{Staging: "hdfs:///none", Program: wire.Program{Path: program}}, Executable: exe,
	}}
	b.Cleanup(func() { s.Close() })
	var probe *account.Account
	if level == isolation.User {
		s.program.Account = &account.Account{Name: "nobody", UID: 65534, GID: 65534}
		probe = s.program.Account
	}
	if level != isolation.None {
		if err := s.Isolate(isolation.Config{Hidden: []string{dir}, Home: os.Getenv("HOME")}, probe); err != nil {
			b.Skip(err)
		}
	}
	return s
}

// start returns the figures of a start.
func (s *starts) start(b *testing.B, n int) [4]float64 {
	dir := filepath.Join(s.dir, "run", strconv.Itoa(n))
	if err := errors.Join(os.MkdirAll(filepath.Dir(dir), 0o755), s.program.Account.MakeDir(dir)); err != nil {
		b.Fatal(err)
	}
	self, children, begin := usage(syscall.RUSAGE_SELF), usage(syscall.RUSAGE_CHILDREN), time.Now()
	w, err := s.Start(&s.program, dir)
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; i < len(s.held); i += os.Getpagesize() {
		s.held[i]++
	}
	if _, err := w.Conn().Receive(); err != nil {
		text, _ := os.ReadFile(filepath.Join(dir, "stderr"))
		b.Fatalf("%v: %s", err, text)
	}
	hello := time.Since(begin)
	if err := errors.Join(w.Conn().Close(), w.Wait()); err != nil {
		b.Fatal(err)
	}
	selfNow, now := usage(syscall.RUSAGE_SELF), usage(syscall.RUSAGE_CHILDREN)
	return [4]float64{now.ms - children.ms, selfNow.ms - self.ms, hello.Seconds() * 1e3, now.faults - children.faults}
}

// used is the processor time and page faults of processes.
type used struct{ ms, faults float64 }

func usage(who int) used {
	var u syscall.Rusage
	_ = syscall.Getrusage(who, &u) // never fails
	return used{float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6, float64(u.Minflt)}
}
