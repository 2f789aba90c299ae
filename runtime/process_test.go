package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/wire"
)

const workerVariable = "QUERN_RUNTIME_TEST_WORKER"

// TestMain also serves as the main function of worker processes.
func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) == "" {
		os.Exit(m.Run())
	}
	conn := wire.NewConn(os.NewFile(3, "from tracker"), os.NewFile(4, "to tracker"), func() error { return nil })
	load := func(sub *wire.Submission) (*Program, error) {
		job := wordCount()
		job.Maps[0], job.Combine = logsAndEmits, nil
		return &Program{Plan: sub.Plan, Jobs: []Job{job}}, nil
	}
	if err := Serve(context.Background(), conn, load, local.New(), Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// logsAndEmits emits its lines and writes to stdout and stderr. The second attempt panics.
func logsAndEmits(t *Task, in *Split, out Collector) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	fmt.Println("in", dir)
	fmt.Fprintln(os.Stderr, "attempt", t.ID)
	child := exec.Command("sh", "-c", "echo child >&2")
	child.Stderr = os.Stderr
	if err := child.Run(); err != nil {
		return err
	}
	for line := range in.Lines() {
		if t.ID.N == 1001 {
			panic("oh")
		}
		if err := out.Collect(0, []byte(line), nil); err != nil {
			return err
		}
	}
	return nil
}

// TestWorkerProcess checks that a worker process works in the attempt's directory and logs
// to the attempt's files. It must stay within its memory and exit when its stream ends.
func TestWorkerProcess(t *testing.T) {
	const sortMB, inputMB = 4, 32
	dir := t.TempDir()
	line := strings.Repeat("0123456789", 10) + "\n"
	in := filepath.Join(dir, "in")
	if err := os.WriteFile(in, bytes.Repeat([]byte(line), inputMB<<20/len(line)), 0o666); err != nil {
		t.Fatal(err)
	}
	plan := linesPlan()
	plan.Inputs[0].Paths, plan.Output = []string{"file://" + in}, "file://"+filepath.Join(dir, "out")
	plan.Reduces, plan.Combine, plan.Properties = 1, false, map[string]string{SortMB: strconv.Itoa(sortMB)}
	staging := "file://" + filepath.Join(dir, "staging")
	sub := &wire.Submission{Staging: staging, Plan: wire.Plan{Jobs: []wire.JobPlan{plan}}}
	putFile(local.New(), dfs.Join(staging, wire.StagedSubmission), must(wire.Append(nil, sub)))

	fromR, fromW, err := os.Pipe()
	toR, toW, err2 := os.Pipe()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"=1")
	cmd.ExtraFiles = []*os.File{toR, fromW}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fromW.Close()
	toR.Close()
	conn := wire.NewConn(fromR, toW, func() error { return errors.Join(fromR.Close(), toW.Close()) })
	run := func(name string, id wire.AttemptID) (failure string) {
		if err := conn.Send(&wire.Run{Attempt: id, Staging: staging,
			Dir: filepath.Join(dir, name), Logs: filepath.Join(dir, "logs", name)}); err != nil {
			t.Fatal(err)
		}
		for {
			switch m := must(conn.Receive()).(type) {
			case *wire.WorkerDone:
				return m.Result.Error
			}
		}
	}
	if failure := run("setup", testAttempt(wire.Setup, 0, 0)) + run("map", testAttempt(wire.Map, 0, 0)); failure != "" {
		t.Fatal(failure)
	}
	for fd := 1; fd <= 2; fd++ { // if /proc exists
		if file, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", cmd.Process.Pid, fd)); err == nil && strings.HasPrefix(file, dir) {
			t.Errorf("after the attempt, descriptor %d is still %s", fd, file)
		}
	}
	logged := func(name, want string) {
		got := string(must(os.ReadFile(filepath.Join(dir, "logs", "map", name))))
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	logged("stdout", "in "+filepath.Join(dir, "map", "work")+"\n")
	logged("stderr", "attempt "+testAttempt(wire.Map, 0, 0).String()+"\nchild\n")
	failure := run("panic", testAttempt(wire.Map, 0, 1))
	if stack := string(must(os.ReadFile(filepath.Join(dir, "logs", "panic", "stderr")))); !strings.Contains(failure, "panic: oh") || !strings.Contains(stack, failure) {
		t.Errorf("an attempt that panics fails with %q and logs %q", failure, stack)
	}
	if peak := peakMemory(t, cmd.Process.Pid); peak > (sortMB+64)<<20 {
		t.Errorf("the worker's memory reached %d MiB", peak>>20)
	}
	conn.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("worker: %v\n%s", err, stderr.Bytes())
	}
}

// peakMemory returns a process's VmHWM in bytes. It returns 0 if the value is not known, or
// if the race detector inflates it.
func peakMemory(t *testing.T, pid int) int64 {
	if goruntime.GOOS != "linux" || raceDetector {
		return 0
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, after, _ := strings.Cut(string(must(io.ReadAll(f))), "VmHWM:")
	fields := strings.Fields(after)
	t.Logf("peak memory: %s kB", fields[0])
	return must(strconv.ParseInt(fields[0], 10, 64)) << 10
}
