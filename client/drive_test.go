package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/wire"
)

// driveAsProgram is what the test binary does as a program that drives jobs: it runs two jobs at once, looks for a third,
// kills the first, and prints their ends.
func driveAsProgram() {
	in, out := os.NewFile(3, "in"), os.NewFile(4, "out")
	conn := wire.NewConn(in, out, func() error { return errors.Join(in.Close(), out.Close()) })
	send := func(m wire.Message) {
		if err := conn.Send(m); err != nil {
			panic(err)
		}
	}
	protocol := wire.DriveProtocol
	if len(os.Args) > 1 && os.Args[1] == "old" {
		protocol--
	}
	send(&wire.DriveHello{Protocol: protocol})
	m, err := conn.Receive()
	if err != nil {
		os.Exit(3)
	}
	os.Stdout.WriteString("sessions in " + m.(*wire.DriveBegin).Sessions + "\n")
	for run, key := range []string{"hangs", "ends", "known"} {
		send(&wire.DriveRun{Run: run, Find: key == "known", Submission: wire.Submission{Key: key}})
	}
	ends := make([]*wire.DriveEnded, 3)
	for i := range ends {
		m, err := conn.Receive()
		if err != nil {
			panic(err)
		}
		ended := m.(*wire.DriveEnded)
		ends[ended.Run] = ended
		if i == 1 {
			send(&wire.DriveKill{Run: 0})
		}
	}
	os.Stdout.WriteString("ended with " + ends[1].Jobs[0].State.String() + "\nfound " + ends[2].Jobs[0].ID.String() + "\nkilled: " + ends[0].Error + "\n")
	send(&wire.DriveFailed{Error: "no more steps"})
	os.Exit(4)
}

// TestDrive: a client runs the jobs of a program at the same time, kills one when the program says so, and
// returns the program's exit code.
func TestDrive(t *testing.T) {
	var failure string
	run := func(args ...string) (int, string, error) {
		var stdout bytes.Buffer
		code, err := Drive(t.Context(), Driven{
			Program: self(t), Args: args, Sessions: "mem://t/sessions", Stdout: &stdout, Stderr: io.Discard,
			Run: func(ctx context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
				if sub.Key == "hangs" {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				return []wire.EndedJob{{State: wire.Succeeded}}, nil
			},
			Failed: func(text string) { failure = text },
			Find: func(_ context.Context, sub *wire.Submission) ([]wire.EndedJob, error) {
				return []wire.EndedJob{{ID: wire.JobID{Start: 7, N: len(sub.Key)}}}, nil
			},
		})
		return code, stdout.String(), err
	}
	code, printed, err := run()
	if want := "sessions in mem://t/sessions\nended with succeeded\nfound job_7_0005\nkilled: the program that drives the job killed it\n"; code != 4 || err != nil || printed != want || failure != "no more steps" {
		t.Errorf("exit code %d, %v, %q, failure %q", code, err, printed, failure)
	}
	if code, printed, err := run("old"); code != 3 || printed != "" || err == nil || !strings.Contains(err.Error(), "speaks drive protocol 3") {
		t.Errorf("another protocol: exit code %d, %v, %q", code, err, printed)
	}
}

func self(t *testing.T) string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// TestFind follows the jobs of an earlier process. If the cluster does not know them, a named output stays: the jobs of another
// user may have put links into it.
func TestFind(t *testing.T) {
	sub := newSubmission("mem://t/in")
	sub.Key, sub.Program.Step = "k", &wire.Step{Result: "mem://t/results/1"}
	ids := make([]wire.JobID, len(sub.Plan.Jobs))
	for i := range ids {
		ids[i] = wire.JobID{Start: 7, N: i + 1}
	}
	cluster := &fakeCluster{known: map[string][]wire.JobID{"k": ids}, submitted: *sub}
	files := newFiles(t)
	cfg := Config{Cluster: cluster, FS: files, Staging: "mem://t/staging", Out: io.Discard}
	jobs, err := Find(t.Context(), cfg, sub)
	if err != nil || len(jobs) != len(ids) || jobs[0].ID != ids[0] || jobs[0].State != wire.Succeeded {
		t.Errorf("known: %+v, %v", jobs, err)
	}
	owner := dfs.Join(sub.Plan.Jobs[0].Output, "_temporary", "OWNER")
	if err := errors.Join(files.MkdirAll(dfs.Dir(owner)), writeNew(files, owner, []byte("job_7_0001 k"))); err != nil {
		t.Fatal(err)
	}
	cluster.known = nil
	if jobs, err := Find(t.Context(), cfg, sub); len(jobs) != 0 || err != nil {
		t.Errorf("not known: %+v, %v", jobs, err)
	}
	if _, err := files.Stat(owner); err != nil {
		t.Errorf("the named output: %v", err)
	}
}

// TestFindStep: the jobs of a step that the cluster does not know may have put links into its result, which is removed with
// them. Nothing that they lead to is removed or moved.
func TestFindStep(t *testing.T) {
	top := t.TempDir()
	result, outside := top+"/results/1", top+"/outside/_temporary"
	err := errors.Join(os.MkdirAll(outside+"/job_7_0001", 0o700), os.WriteFile(outside+"/OWNER", []byte("job_7_0001 k"), 0o600),
		os.MkdirAll(result, 0o700), os.Symlink(outside, result+"/_temporary"))
	if err != nil {
		t.Fatal(err)
	}
	sub := newSubmission("mem://t/in")
	sub.Key, sub.Plan.Jobs[0].Output, sub.Program.Step = "k", "file://"+result, &wire.Step{Result: "file://" + result}
	if jobs, err := Find(t.Context(), Config{Cluster: new(fakeCluster), FS: local.New(), Staging: "file://" + top, Out: io.Discard}, sub); len(jobs) != 0 || err != nil {
		t.Errorf("%+v, %v", jobs, err)
	}
	_, gone := os.Lstat(result)
	if _, err := os.Stat(outside + "/OWNER"); err != nil || !errors.Is(gone, fs.ErrNotExist) {
		t.Errorf("outside: %v; the result: %v", err, gone)
	}
}
