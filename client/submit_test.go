package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// doubtful is a cluster that does not answer a submission at first.
type doubtful struct {
	fakeCluster
	asked int
	taken int                         // the ask that brings the submission about, 0: none
	first func(context.Context) error // what becomes of the first ask
	keys  []string
}

func (d *doubtful) Submit(ctx context.Context, sub wire.Submission) ([]wire.JobID, error) {
	d.asked++
	d.keys = append(d.keys, sub.Key)
	if d.asked == 1 {
		return nil, d.first(ctx)
	}
	if d.taken == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return d.fakeCluster.Submit(ctx, sub)
}

// TestInterruptedSubmit: what the cluster may have taken is asked for again, and
// its staging directory is never taken away from it.
func TestInterruptedSubmit(t *testing.T) {
	interrupted := errors.New("got signal interrupt")
	lost := func(ctx context.Context) error {
		<-ctx.Done()
		return errors.Join(ErrUndecided, context.Cause(ctx))
	}
	for _, c := range []struct {
		name   string
		first  func(context.Context) error
		taken  int
		early  bool // the interrupt comes before the submission
		asked  int
		staged int
		took   time.Duration
		want   string
	}{
		{"taken", lost, 2, false, 2, 1, time.Second, "wordcount killed"},
		{"never known", lost, 0, false, 2, 1, time.Second + settleWait, "it is not known whether the job was submitted: context deadline exceeded; if it was, it runs under the key"},
		{"not taken", func(ctx context.Context) error {
			<-ctx.Done()
			return errors.New("nobody was reached")
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
			cluster := &doubtful{first: c.first, taken: c.taken, fakeCluster: fakeCluster{each: time.Hour}}
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
			if cluster.asked != c.asked || !strings.Contains(text.String(), c.want) {
				t.Errorf("asked %d times, want %d; said %q, want %q", cluster.asked, c.asked, text.String(), c.want)
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

// TestGiveUpSettling: a second interrupt ends the question, too.
func TestGiveUpSettling(t *testing.T) {
	files := newFiles(t)
	synctest.Test(t, func(t *testing.T) {
		giveUp := make(chan struct{})
		close(giveUp)
		ctx, cancel := context.WithCancel(t.Context())
		cluster := &doubtful{first: func(context.Context) error {
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

// TestFollow waits for jobs of others: they are not killed when the user has seen enough.
func TestFollow(t *testing.T) {
	for _, c := range []struct {
		name      string
		cluster   *fakeCluster
		interrupt time.Duration
		code      int
		want      string
	}{
		{"success", &fakeCluster{each: time.Second}, time.Hour, 0, "wordcount succeeded"},
		{"failure", &fakeCluster{each: time.Second, fail: "boom"}, time.Hour, 1, "    boom\n"},
		{"interrupt", &fakeCluster{each: time.Minute}, time.Second, 1, "error: stopped waiting (got signal interrupt): job_7_0001 is running\n"},
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
				t.Errorf("said %q, want %q", text.String(), c.want)
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
	left := func() []dfs.Info {
		entries, err := memory.List("mem://t/s/programs/20261122")
		if err != nil {
			return nil
		}
		return entries
	}
	if _, err := upload("write /s/** error=enospc"); err == nil || len(left()) != 0 {
		t.Errorf("on a full disk: %v, left %v", err, left())
	}
	p, err := upload("")
	if err != nil || p.Path != "mem://t/s/programs/20261122/"+p.Hash || len(p.Hash) != 64 || len(left()) != 1 {
		t.Fatalf("%+v, %v, left %v", p, err, left())
	}
	if again, err := upload("create /s/** error=enospc"); err != nil || again.Path != p.Path || again.Hash != p.Hash {
		t.Errorf("once more: %+v, %v", again, err)
	}
	if err := os.WriteFile(exe, []byte("another"), 0o755); err != nil {
		t.Fatal(err)
	}
	if other, err := upload(""); err != nil || other.Hash == p.Hash || len(left()) != 2 {
		t.Errorf("another program: %+v, %v, left %v", other, err, left())
	}
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	if _, err := upload(""); err == nil || !strings.Contains(err.Error(), exe) {
		t.Errorf("no program: %v", err)
	}
}

// What a client has staged is there and whole after a power cut, wherever that fails another.
func TestStagedPowerCut(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "job")
	program := bytes.Repeat([]byte("program"), 100)
	if err := os.WriteFile(exe, program, 0o755); err != nil {
		t.Fatal(err)
	}
	for calls, met := 0, true; met; calls++ {
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
			met = err != nil
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
			if met {
				continue
			}
			if err != nil || len(programs) != 1 {
				t.Errorf("programs that have survived: %v, %v", programs, err)
			}
			if info, err := memory.Stat(dfs.Join(sub.Staging, wire.StagedSubmission)); err != nil || info.Size == 0 {
				t.Errorf("the submission: %+v, %v", info, err)
			}
		}
	}
}

// TestHangUp: the display ends, the job goes on, and one that was not submitted yet is.
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
		files, cluster := newFiles(t), &fakeCluster{each: time.Hour}
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

// TestHangUpAfterInterrupt: who has interrupted wants the jobs killed, whatever becomes of
// the terminal.
func TestHangUpAfterInterrupt(t *testing.T) {
	files, cluster := newFiles(t), &fakeCluster{each: time.Hour, stubborn: true}
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
