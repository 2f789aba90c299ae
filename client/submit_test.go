package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// undecided is a cluster that fails the first call of Submit.
type undecided struct {
	fakeCluster
	calls   int                         // number of calls of Submit
	accepts int                         // 0: later calls of Submit never answer
	first   func(context.Context) error // result of the first call
	keys    []string
}

func (d *undecided) Submit(ctx context.Context, sub wire.Submission) ([]wire.JobID, error) {
	d.calls++
	d.keys = append(d.keys, sub.Key)
	if d.calls == 1 {
		return nil, d.first(ctx)
	}
	if d.accepts == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return d.fakeCluster.Submit(ctx, sub)
}

// TestInterruptedSubmit: if the cluster may have accepted a submission, the interrupted client
// submits again, and does not remove the staging directory.
func TestInterruptedSubmit(t *testing.T) {
	interrupted := errors.New("got signal interrupt")
	lost := func(ctx context.Context) error {
		<-ctx.Done()
		return errors.Join(ErrUndecided, context.Cause(ctx))
	}
	for _, c := range []struct {
		name    string
		first   func(context.Context) error
		accepts int
		early   bool // the interrupt comes before the submission
		calls   int
		staged  int
		took    time.Duration
		want    string
	}{
		{"taken", lost, 2, false, 2, 1, time.Second, "wordcount killed"},
		{"never known", lost, 0, false, 2, 1, time.Second + submitAgainWait, "it is not known whether the job was submitted: context deadline exceeded; if it was, it runs under the key"},
		{"not taken", func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("no job tracker was reached")
		}, 0, false, 1, 0, time.Second, "interrupted before the job was submitted: got signal interrupt"},
		{"embedded", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}, 2, false, 2, 1, time.Second, "wordcount killed"},
		{"out of patience", func(context.Context) error { return ErrUndecided }, 0, false, 1, 1, 0, "if it was, it runs under the key"},
		{"refused", func(context.Context) error { return errors.New("bad") }, 0, false, 1, 0, 0, "error: bad"},
		{"early", nil, 0, true, 0, 0, 0, "before anything was submitted: got signal interrupt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := newFiles(t)
			cluster := &undecided{first: c.first, accepts: c.accepts, fakeCluster: fakeCluster{jobTime: time.Hour}}
			var text bytes.Buffer
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.early {
					cancel(interrupted)
				}
				time.AfterFunc(time.Second, func() { cancel(interrupted) })
				start := time.Now()
				if code := Run(ctx, Config{Cluster: cluster, FS: files, Staging: "mem://t/staging", Out: &text}, newSubmission("mem://t/in")); code != 1 {
					t.Errorf("exit code %d", code)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
			})
			if cluster.calls != c.calls || !strings.Contains(text.String(), c.want) {
				t.Errorf("%d calls, want %d; output %q, want %q", cluster.calls, c.calls, text.String(), c.want)
			}
			if len(cluster.keys) == 2 && cluster.keys[0] != cluster.keys[1] {
				t.Errorf("keys %q", cluster.keys)
			}
			if n := stagingDirs(t, files); n != c.staged {
				t.Errorf("%d staging directories, want %d", n, c.staged)
			}
		})
	}
}

// TestGiveUpSettling: a second interrupt ends submitAgain.
func TestGiveUpSettling(t *testing.T) {
	files := newFiles(t)
	synctest.Test(t, func(t *testing.T) {
		giveUp := make(chan struct{})
		close(giveUp)
		ctx, cancel := context.WithCancel(t.Context())
		cluster := &undecided{first: func(context.Context) error {
			cancel()
			return ErrUndecided
		}}
		start := time.Now()
		code := Run(ctx, Config{Cluster: cluster, FS: files, Staging: "mem://t/staging", Out: new(bytes.Buffer), GiveUp: giveUp}, newSubmission("mem://t/in"))
		if code != 1 || time.Since(start) != 0 {
			t.Errorf("exit code %d after %v", code, time.Since(start))
		}
	})
}

// TestFollow: an interrupt does not kill followed jobs.
func TestFollow(t *testing.T) {
	for _, c := range []struct {
		name      string
		cluster   *fakeCluster
		interrupt time.Duration
		code      int
		want      string
	}{
		{"success", &fakeCluster{jobTime: time.Second}, time.Hour, 0, "wordcount succeeded"},
		{"failure", &fakeCluster{jobTime: time.Second, fail: "boom"}, time.Hour, 1, "    boom\n"},
		{"interrupt", &fakeCluster{jobTime: time.Minute}, time.Second, 1, "error: stopped waiting (got signal interrupt): job_7_0001 is running\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var text bytes.Buffer
			synctest.Test(t, func(t *testing.T) {
				ids, err := c.cluster.Submit(t.Context(), *newSubmission())
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				time.AfterFunc(c.interrupt, func() { cancel(errors.New("got signal interrupt")) })
				notes := make(chan string, 1)
				notes <- "leader changed"
				if code := Follow(ctx, Config{Cluster: c.cluster, Out: &text, Notes: notes}, ids); code != c.code {
					t.Errorf("exit code %d", code)
				}
			})
			if !strings.Contains(text.String(), c.want) || strings.Count(text.String(), "leader changed\n") != 1 {
				t.Errorf("output %q, want %q", text.String(), c.want)
			}
			if len(c.cluster.killed) > 0 {
				t.Errorf("killed %v", c.cluster.killed)
			}
		})
	}
}

func TestUpload(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "job")
	if err := os.WriteFile(exe, bytes.Repeat([]byte("program"), 10_000), 0o755); err != nil {
		t.Fatal(err)
	}
	evening := time.Date(2026, 11, 21, 23, 30, 0, 0, time.FixedZone("west", -3600))
	memory := mem.New(1 << 20)
	upload := func(faults string) (wire.Program, error) {
		t.Helper()
		if err := memory.SetFaults(faults); err != nil {
			t.Fatal(err)
		}
		var p wire.Program
		err := Upload(memory, "mem://t/s", evening, exe, &p)
		if err := memory.SetFaults(""); err != nil {
			t.Fatal(err)
		}
		return p, err
	}
	uploaded := func() []dfs.Info {
		entries, err := memory.List("mem://t/s/programs/20261122")
		if err != nil {
			return nil
		}
		return entries
	}
	if _, err := upload("write /s/** error=enospc"); err == nil || len(uploaded()) != 0 {
		t.Errorf("on a full disk: %v, left %v", err, uploaded())
	}
	p, err := upload("")
	if err != nil || p.Path != "mem://t/s/programs/20261122/"+p.Hash || len(p.Hash) != 64 || len(uploaded()) != 1 {
		t.Fatalf("%+v, %v, left %v", p, err, uploaded())
	}
	if again, err := upload("create /s/** error=enospc"); err != nil || again.Path != p.Path || again.Hash != p.Hash {
		t.Errorf("once more: %+v, %v", again, err)
	}
	if err := os.WriteFile(exe, []byte("another"), 0o755); err != nil {
		t.Fatal(err)
	}
	if other, err := upload(""); err != nil || other.Hash == p.Hash || len(uploaded()) != 2 {
		t.Errorf("another program: %+v, %v, left %v", other, err, uploaded())
	}
	for _, size := range []int{0, len("another") - 1, len("another") + 1} { // no client wrote it
		other, err := upload("")
		if err == nil {
			err = errors.Join(memory.Remove(other.Path), writeNew(memory, other.Path, make([]byte, size)))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := upload(""); err == nil || !strings.Contains(err.Error(), other.Path) {
			t.Errorf("an uploaded file of %d bytes: %v", size, err)
		}
		if err := memory.Remove(other.Path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	if _, err := upload(""); err == nil || !strings.Contains(err.Error(), exe) {
		t.Errorf("no program: %v", err)
	}
}

// meanwhile calls a function when the directory of a file is made.
type meanwhile struct {
	dfs.FS
	do func() error
}

func (m meanwhile) MkdirAll(name string) error { return errors.Join(m.do(), m.FS.MkdirAll(name)) }

// TestUploadMeanwhile: during an upload, the program may change, and another client may upload it.
func TestUploadMeanwhile(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "job")
	memory := mem.New(1 << 20)
	for what, c := range map[string]struct {
		do    func() error
		want  string // part of the error; empty: none
		files int
	}{
		"changed": {func() error { return os.WriteFile(exe, []byte("changed"), 0o755) }, exe + " changed", 0},
		"uploaded": {func() error {
			return Upload(memory, "mem://t/uploaded", time.Unix(0, 0), exe, new(wire.Program))
		}, "", 1},
	} {
		if err := os.WriteFile(exe, []byte("program"), 0o755); err != nil {
			t.Fatal(err)
		}
		err := Upload(meanwhile{memory, c.do}, "mem://t/"+what, time.Unix(0, 0), exe, new(wire.Program))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s meanwhile: %v, want %q", what, err, c.want)
		}
		if left, err := memory.List("mem://t/" + what + "/programs/19700101"); err != nil || len(left) != c.files {
			t.Errorf("%s meanwhile: left %v, %v", what, left, err)
		}
	}
}

// TestStagedIsPrivate: only the user can read or change what a client stages.
func TestStagedIsPrivate(t *testing.T) {
	exe, top := filepath.Join(t.TempDir(), "job"), t.TempDir()
	if err := os.WriteFile(exe, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	files, sub := dfs.Mux{"file": local.New()}, newSubmission("mem://t/in")
	err := errors.Join(Upload(files, "file://"+top+"/a/uploads", time.Now(), exe, &sub.Program), Stage(files, "file://"+top+"/a/staging", sub))
	if err != nil {
		t.Fatal(err)
	}
	staged := 0
	err = filepath.WalkDir(filepath.Join(top, "a"), func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		staged++
		return err
	})
	if err != nil || staged != 8 {
		t.Errorf("%d files and directories, want 8: %v", staged, err)
	}
}

// TestStagedPowerCut: after a power failure at any call, programs are complete, and a staged
// submission is there.
func TestStagedPowerCut(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "job")
	program := bytes.Repeat([]byte("program"), 100)
	if err := os.WriteFile(exe, program, 0o755); err != nil {
		t.Fatal(err)
	}
	for calls, faulty := 0, true; faulty; calls++ {
		for seed := range uint64(10) {
			sub, memory := newSubmission("mem://t/in"), mem.New(1<<20)
			memory.Settle()
			if err := memory.SetFaults(fmt.Sprintf("any ** after=%d", calls)); err != nil {
				t.Fatal(err)
			}
			err := Upload(memory, "mem://t/s", time.Unix(0, 0), exe, &sub.Program)
			if err == nil {
				err = Stage(memory, "mem://t/s", sub)
			}
			faulty = err != nil
			if err := memory.SetFaults(""); err != nil {
				t.Fatal(err)
			}
			memory.PowerCut(rand.New(rand.NewPCG(seed, uint64(calls))))
			programs, err := memory.List("mem://t/s/programs/19700101")
			for _, info := range programs {
				if info.Size != int64(len(program)) && !strings.Contains(info.Name, "/.making-") {
					t.Errorf("the power fails at call %d: %+v", calls, info)
				}
			}
			if faulty {
				continue
			}
			if err != nil || len(programs) != 1 {
				t.Errorf("programs after the power failure: %v, %v", programs, err)
			}
			if info, err := memory.Stat(dfs.Join(sub.Staging, wire.StagedSubmission)); err != nil || info.Size == 0 {
				t.Errorf("the submission: %+v, %v", info, err)
			}
		}
	}
}

// TestHangUp: after SIGHUP the display ends. The job is submitted and continues.
func TestHangUp(t *testing.T) {
	flow := newSubmission("mem://t/in")
	flow.Plan.Flow = "both"
	flow.Plan.Jobs = append(flow.Plan.Jobs, wire.JobPlan{Name: "sort", Inputs: []wire.InputPlan{{From: 1}}, Output: "mem://t/sorted"})
	for _, c := range []struct {
		after time.Duration
		sub   *wire.Submission
		wants string
	}{
		{time.Second, newSubmission("mem://t/in"), "mrsubmit wait job_7_0001\n"},
		{0, newSubmission("mem://t/in"), "mrsubmit wait job_7_0001\n"},
		{time.Second, flow, "mrsubmit wait flow_7_0001\n"},
	} {
		files, cluster := newFiles(t), &fakeCluster{jobTime: time.Hour}
		var text bytes.Buffer
		synctest.Test(t, func(t *testing.T) {
			hangUp := make(chan struct{})
			if c.after == 0 {
				close(hangUp)
			} else {
				time.AfterFunc(c.after, func() { close(hangUp) })
			}
			start := time.Now()
			code := Run(t.Context(), Config{Cluster: cluster, FS: files, Staging: "mem://t/staging", Out: &text, HangUp: hangUp}, c.sub)
			if took := time.Since(start); code != ExitHungUp || took != c.after {
				t.Errorf("exit code %d after %v, want %d after %v", code, took, ExitHungUp, c.after)
			}
		})
		if !strings.HasSuffix(text.String(), c.wants) {
			t.Errorf("output ends without %q:\n%s", c.wants, text.String())
		}
		if n := stagingDirs(t, files); n != 1 || len(cluster.killed) != 0 {
			t.Errorf("%d staging directories, want 1; killed: %v", n, cluster.killed)
		}
	}
}

// TestHangUpAfterInterrupt: after an interrupt the client ignores SIGHUP, and waits for the jobs.
func TestHangUpAfterInterrupt(t *testing.T) {
	files, cluster := newFiles(t), &fakeCluster{jobTime: time.Hour, killsHang: true}
	var text bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancelCause(t.Context())
		hangUp, giveUp := make(chan struct{}), make(chan struct{})
		time.AfterFunc(time.Second, func() { interrupt(errors.New("got signal interrupt")) })
		time.AfterFunc(2*time.Second, func() { close(hangUp) })
		time.AfterFunc(3*time.Second, func() { close(giveUp) })
		start := time.Now()
		code := Run(ctx, Config{Cluster: cluster, FS: files, Staging: "mem://t/staging", Out: &text, GiveUp: giveUp, HangUp: hangUp}, newSubmission("mem://t/in"))
		if took := time.Since(start); code != 1 || took != 3*time.Second {
			t.Errorf("exit code %d after %v, want 1 after 3s\n%s", code, took, &text)
		}
	})
}
