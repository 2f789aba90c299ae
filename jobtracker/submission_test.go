package jobtracker

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// TestSubmission: what was submitted is known while the job runs, and from its history when it has ended. Only users
// who may see the job get it.
func TestSubmission(t *testing.T) {
	f := mem.New(1 << 20)
	s := start(t, func(c *Config) { c.FS, c.History = f, true })
	sub := submission("a", 1)
	const hash = "90d55380"
	sub.Plan.Jobs[0].Properties = map[string]string{"color": "red", wire.ViewACL: "bob", wire.ModifyACL: "carl"}
	sub.Program = wire.Program{Path: staging + "/programs/20260131/" + hash, Flags: map[string]string{"n": "5"}}
	ids, err := s.Submit(testContext(t), core.Caller{Name: "ann"}, sub)
	if err != nil {
		t.Fatal(err)
	}
	check := func(state string) {
		t.Helper()
		for user, allowed := range map[string]bool{"ann": true, "bob": true, "carl": false} {
			ctx, cancel := context.WithCancel(testContext(t))
			x, err := s.Submission(ctx, core.Caller{Name: user}, ids[0])
			cancel()
			if !allowed {
				if !errors.Is(err, admission.ErrNotAllowed) {
					t.Errorf("%s: %s sees it: %v", state, user, err)
				}
				continue
			}
			if err != nil || x.Owner != "ann" || x.View != "bob" || x.Modify != "carl" || x.Plan.Properties["color"] != "red" || x.Program.Flags["n"] != "5" || x.At == 0 {
				t.Errorf("%s: %s sees %+v, %v", state, user, x, err)
			}
		}
	}
	check("waiting")
	go attach(t, s, "t1", 1, 5).run()
	finish(t, s, ids)
	check("ended")
	if _, err := s.Submission(testContext(t), core.Caller{}, wire.JobID{Start: 1, N: 1}); !errors.Is(err, admission.ErrUnknownJob) {
		t.Errorf("an unknown job: %v", err)
	}
	older := wire.JobID{Start: 1, N: 2}
	r := &history.Record{Job: wire.JobStatus{ID: older, State: wire.Succeeded}, Owner: "ann", Ended: time.Now().UnixMilli()}
	if err := history.Write(f, history.Name(staging, time.UnixMilli(r.Ended), older), r); err != nil {
		t.Fatal(err)
	}
	if x, err := s.Submission(testContext(t), core.Caller{}, older); err != nil || x.Program != nil || x.Owner != "ann" {
		t.Errorf("a job of an older build: %+v, %v", x, err)
	}
}

// TestProgramBytes: only a program that is where clients upload programs has a size.
func TestProgramBytes(t *testing.T) {
	f := mem.New(1 << 20)
	s := New(Config{FS: f, Staging: staging, Log: NewMemoryLog()})
	write := func(name string) string {
		if err := f.MkdirAll(dfs.Dir(name)); err != nil {
			t.Fatal(err)
		}
		w, err := f.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte("12345"))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct {
		path, hash string
		want       int64
	}{
		{write(staging + "/programs/20260131/abc"), "abc", 5},
		{write(staging + "/users/ann/programs/20260131/abc"), "abc", 5},
		{write(staging + "/users/bob/programs/20260131/abc"), "abc", 0},
		{write(staging + "/programs/abc"), "abc", 0},
		{write(staging + "/history/2026/abc"), "abc", 0},
		{staging + "/programs/20260131/abc", "def", 0},
		{staging + "/programs/20260131/", "", 0},
		{staging + "/programs/20260131/gone", "gone", 0},
	} {
		n, err := s.ProgramBytes(&wire.JobSubmission{Owner: "ann", Program: &wire.Program{Path: c.path, Hash: c.hash}})
		if n != c.want || (err == nil) != (c.want > 0) {
			t.Errorf("%s with the hash %s: %d bytes, %v", c.path, c.hash, n, err)
		}
		if c.hash == "gone" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a removed program: %v", err)
		}
	}
}
