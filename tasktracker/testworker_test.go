package tasktracker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// modeVariable is set when this binary must run as a worker.
const modeVariable = "QUERN_MODE"

// TestMain makes the test binary a job's program too: a small worker that does what
// wire.Run.Index says.
func TestMain(m *testing.M) {
	switch os.Getenv(modeVariable) {
	case "worker":
		testWorker()
		os.Exit(0)
	case "hog":
		takeMemory()
	case "nested":
		nested()
	case "flood":
		flood(floodLines/2, floodLines)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Actions of a test attempt, by wire.Launch.Index.
const (
	doSucceed         = iota
	doCommit          // requests the grant
	doFindFull        // requests the grant, then finds a disk full
	doMap             // writes a map output of three records for each of two partitions
	doReduce          // counts the records that it reads
	doExit            // exits with status 3, after 30 lines on stderr
	doDie             // kills itself
	doLeaveChild      // starts a child and succeeds
	doHang            // hangs with a child
	doIgnoreTERM      // hangs with a child, and both ignore SIGTERM
	doEndOnTERM       // leaves a file beside its log when it gets SIGTERM
	doFailWithLongLog // writes two lines on stdout and 10 MB on stderr, then fails
	doSendMalformed   // writes a malformed message
	doUseMemory       // uses more and more memory, half of it in a process outside the group
	doFork            // starts processes, every other one outside the group
	doSpill           // writes 64 MiB into its output file
	doFill            // writes 90 MiB into its working directory, and continues
	doGrow            // writes 200 MiB into its output file, in small pieces
	doCrash           // runs out of memory, with many goroutines, after lines that look like a panic
	doWriteLongLog    // writes 64 MB on stderr, then succeeds
	doEscape          // leaves a process in a session of its own, and its parent has ended; map 1 adopts it, others do not
	doLeaveEnded      // adopts a process that ends, and succeeds
	doReport          // counts the environment, limits and flags of its process
	doDaemonise       // leaves processes that have escaped in all ways, see escapes
	doSpy             // tries what the arguments of the program name, and counts what works
	doWriteBothLogs   // writes floodLines to both logs, half of it by a child, then requests the grant
	doBomb            // starts up to 600 processes as fast as it can
	doStartThreads    // starts 600 threads, and counts its soft and hard limit
)

func testWorker() {
	if slices.Contains(os.Args, "-flood") {
		flood(0, floodLines)
	}
	if slices.Contains(os.Args, "-crash") {
		fmt.Fprintln(os.Stderr, "crash before the first message")
		os.Exit(7)
	}
	in, out := os.NewFile(3, "in"), os.NewFile(4, "out")
	syscall.CloseOnExec(3)
	syscall.CloseOnExec(4)
	ownOut, _ := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 0)
	ownErr, _ := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 0)
	conn := wire.NewConn(in, out, out.Close)
	conn.Send(&wire.WorkerHello{Protocol: wire.WorkerProtocol})
	for {
		run, err := wire.ReadAs[*wire.Run](in)
		if err != nil {
			return
		}
		os.Chdir(filepath.Join(run.Dir, "work"))
		stderr, err := os.Create(filepath.Join(run.Logs, "stderr"))
		if err != nil {
			panic(err)
		}
		unix.Dup2(int(stderr.Fd()), 2)
		stderr.Close()
		stdout, err := os.OpenFile(filepath.Join(run.Logs, "stdout"), os.O_WRONLY|os.O_CREATE, 0o666)
		if err != nil {
			panic(err)
		}
		unix.Dup2(int(stdout.Fd()), 1)
		stdout.Close()
		conn.Send(&wire.WorkerProgress{Bytes: wire.Progress{Done: 1, Total: 2}, Activity: 1})
		result := testAttempt(conn, in, out, run)
		unix.Dup2(ownOut, 1)
		unix.Dup2(ownErr, 2)
		conn.Send(&wire.WorkerDone{Result: result})
	}
}

func testAttempt(conn *wire.Conn, in, out *os.File, run *wire.Run) (r wire.Result) {
	r.Counters = wire.Counters{"pid": {"self": int64(os.Getpid())}}
	switch run.Index {
	case doCommit, doFindFull:
		conn.Send(&wire.CommitReady{})
		if _, err := wire.ReadAs[*wire.CommitGranted](in); err != nil {
			r.Error = err.Error()
		}
		if run.Index == doFindFull {
			r.Error = "write x: " + syscall.ENOSPC.Error()
		}
	case doMap:
		testMap(run, &r)
	case doReduce:
		testReduce(run, &r)
	case doExit:
		for i := range 30 {
			fmt.Fprintln(os.Stderr, "line", i)
		}
		os.Exit(3)
	case doDie:
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		hang()
	case doEscape:
		if run.Attempt.Task.N == 1 {
			adoptOrphans()
		}
		out, err := exec.Command("setsid", "sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!").Output()
		pid, convErr := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err := errors.Join(err, convErr); err != nil {
			r.Error = err.Error()
		}
		r.Counters.Add("pid", "escaped", pid)
	case doLeaveEnded:
		adoptOrphans()
		out, err := exec.Command("sh", "-c", "sleep 0 >/dev/null 2>&1 & echo $!").Output()
		pid, convErr := strconv.Atoi(strings.TrimSpace(string(out)))
		if err := errors.Join(err, convErr); err != nil {
			r.Error = err.Error()
			break
		}
		awaitExit(pid)
	case doReport:
		for _, v := range os.Environ() {
			r.Counters.Add("env", v, 1)
		}
		status, _ := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(status)) {
			r.Counters.Add("status", strings.Join(strings.Fields(line), " "), 1)
		}
		if file := os.Getenv("HADOOP_TOKEN_FILE_LOCATION"); file != "" {
			tokens, _ := os.ReadFile(file)
			info, _ := os.Stat(file)
			r.Counters.Add("tokens", fmt.Sprint(info.Mode(), " ", string(tokens)), 1)
		}
		var core unix.Rlimit
		unix.Getrlimit(unix.RLIMIT_CORE, &core)
		r.Counters.Add("limits", "core", int64(core.Max))
	case doLeaveChild:
		r.Counters.Add("pid", "child", startChild())
	case doHang:
		os.WriteFile("child", fmt.Append(nil, startChild()), 0o666)
		conn.Send(&wire.WorkerProgress{Bytes: wire.Progress{Done: 2, Total: 2}, Activity: 2})
		hang()
	case doIgnoreTERM:
		signal.Ignore(syscall.SIGTERM) // the child inherits it
		os.WriteFile("child", fmt.Append(nil, startChild()), 0o666)
		conn.Send(&wire.WorkerProgress{Bytes: wire.Progress{Done: 2, Total: 2}, Activity: 2})
		hang()
	case doEndOnTERM:
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		conn.Send(&wire.WorkerProgress{Bytes: wire.Progress{Done: 2, Total: 2}, Activity: 2})
		<-asked
		fmt.Fprintln(os.Stderr, "asked to end")
		conn.Send(&wire.CommitReady{}) // too late
		os.Exit(0)
	case doFailWithLongLog:
		fmt.Print("one\ntwo\n")
		os.Stderr.Write(bytes.Repeat([]byte("much ado about nothing\n"), 10<<20/23))
		r.Error = "hoarse"
	case doSendMalformed:
		out.Write([]byte("this is no frame at all"))
		hang()
	case doUseMemory:
		hog := exec.Command(os.Args[0])
		hog.Env = append(os.Environ(), modeVariable+"=hog")
		hog.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := hog.Start(); err != nil {
			panic(err)
		}
		takeMemory()
	case doFork:
		for i := range 40 {
			child := exec.Command("sleep", "1000")
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: i%2 == 0}
			if err := child.Start(); err != nil {
				panic(err)
			}
			fmt.Fprintln(os.Stderr, child.Process.Pid)
		}
		waitToBeKilled()
	case doBomb:
		for range 4 {
			go bomb(150)
		}
		waitToBeKilled()
	case doStartThreads:
		var limit unix.Rlimit
		unix.Getrlimit(unix.RLIMIT_NPROC, &limit)
		r.Counters.Add("limits", "soft", int64(limit.Cur))
		r.Counters.Add("limits", "hard", int64(limit.Max))
		var started atomic.Int32
		for range 600 {
			go func() {
				runtime.LockOSThread()
				started.Add(1)
				unix.Select(0, nil, nil, nil, nil)
			}()
		}
		for started.Load() < 600 { // the program crashes if it may have no more threads
			runtime.Gosched()
		}
	case doSpill:
		if err := os.WriteFile(filepath.Join(run.Dir, "output"), make([]byte, 64<<20), 0o666); err != nil {
			r.Error = err.Error()
		}
	case doFill:
		_ = os.WriteFile("scratch", make([]byte, 90<<20), 0o666) // like a program that ignores errors
		waitToBeKilled()
	case doGrow:
		out, err := os.Create(filepath.Join(run.Dir, "output"))
		for range 200 {
			if err == nil {
				_, err = out.Write(make([]byte, 1<<20))
			}
		}
		if err != nil {
			r.Error = err.Error()
		}
	case doDaemonise:
		testDaemonise(run.Attempt.Task.N, &r)
	case doSpy:
		testSpy(&r)
	case doCrash:
		for range 100 {
			go func() { select {} }()
		}
		fmt.Fprintln(os.Stderr, "panic: only a line that the job prints")
		takeTooMuch(1 << 40)
	case doWriteLongLog:
		for range 64 {
			os.Stderr.Write(make([]byte, 1<<20))
		}
	case doWriteBothLogs:
		flood(0, floodLines/2)
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), modeVariable+"=flood")
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Run(); err != nil {
			r.Error = err.Error()
			return r
		}
		conn.Send(&wire.CommitReady{})
		if _, err := wire.ReadAs[*wire.CommitGranted](in); err != nil {
			r.Error = err.Error()
		}
	default:
		r.Counters.Add("env", strings.Join(ownVariables(), " "), 1)
	}
	return r
}

// floodLines of 100 bytes are 6 MB.
const floodLines = 60_000

func floodLine(n int) string { return fmt.Sprintf("line %94d\n", n) }

// flood writes numbered lines to stdout and stderr.
func flood(from, to int) {
	out, errs := bufio.NewWriter(os.Stdout), bufio.NewWriter(os.Stderr)
	for n := from; n < to; n++ {
		_, err := out.WriteString(floodLine(n))
		_, err2 := errs.WriteString(floodLine(n))
		if err := errors.Join(err, err2); err != nil {
			panic(err)
		}
	}
	if err := errors.Join(out.Flush(), errs.Flush()); err != nil {
		panic(err)
	}
}

// takeTooMuch allocates more memory than the limit.
func takeTooMuch(n int) { fmt.Fprintln(os.Stderr, len(make([]byte, n))) }

// takeMemory allocates a gibibyte, and waits to be killed.
func takeMemory() {
	var taken [][]byte
	for range 64 {
		taken = append(taken, bytes.Repeat([]byte{1}, 16<<20))
	}
	waitToBeKilled()
	runtime.KeepAlive(taken)
}

// bomb starts processes, whatever happens.
func bomb(n int) {
	for range n {
		child := exec.Command("sleep", "1000")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = child.Start()
	}
}

func waitToBeKilled() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR2)
	for range never {
	}
}

// ownVariables lists the worker's QUERN_ variables.
func ownVariables() (own []string) {
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "QUERN_") {
			own = append(own, v)
		}
	}
	return own
}

// hang blocks. It does not use select {}: Go ends a process if all its goroutines block.
func hang() { <-time.After(24 * time.Hour) }

func startChild() int64 {
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		panic(err)
	}
	return int64(child.Process.Pid)
}

func testMap(run *wire.Run, r *wire.Result) {
	c, err := shuffle.NewCollector(shuffle.Config{
		Partitions: 2, Memory: 1 << 20, Dir: run.Dir, File: filepath.Join(run.Dir, "output"),
	})
	for i := range 6 {
		if err == nil {
			err = c.Collect(i%2, fmt.Appendf(nil, "key%d", i/2), fmt.Appendf(nil, "map%d", run.Attempt.Task.N))
		}
	}
	if err != nil {
		r.Error = err.Error()
		return
	}
	o, err := c.Close()
	if err != nil {
		r.Error = err.Error()
		return
	}
	r.Output = &wire.MapOutput{Bytes: o.Bytes, Digest: o.Digest}
}

func testReduce(run *wire.Run, r *wire.Result) {
	in, err := shuffle.Merge(context.Background(), run.Runs, shuffle.MergeOptions{Dir: run.Dir})
	if err != nil {
		r.Error = err.Error()
		return
	}
	defer in.Close()
	for in.Next() {
		r.Counters.Add("records", string(in.Key())+"="+string(in.Value()), 1)
	}
	if in.Err() != nil {
		r.Error = in.Err().Error()
	}
}
