package client

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// busyError is the answer of a cluster that accepts no submission for now.
type busyError struct {
	wait  time.Duration
	cause error
}

func (b *busyError) Error() string                     { return "too many jobs" }
func (b *busyError) Unwrap() error                     { return b.cause }
func (b *busyError) RetryAfter() (time.Duration, bool) { return b.wait, b.wait > 0 }

// busyCluster refuses the first submissions.
type busyCluster struct {
	fakeCluster
	refusals []error
	times    []time.Time
	keys     map[string]bool
}

func (b *busyCluster) Submit(ctx context.Context, sub wire.Submission) ([]wire.JobID, error) {
	b.times = append(b.times, time.Now())
	b.keys[sub.Key] = true
	if i := len(b.times) - 1; i < len(b.refusals) {
		return nil, b.refusals[i]
	}
	return b.fakeCluster.Submit(ctx, sub)
}

// TestBusy: a client waits until the cluster accepts its job, as long as the cluster says, and says
// so. It need not wait.
func TestBusy(t *testing.T) {
	busy := &busyError{wait: 5 * time.Second}
	many := make([]error, 20)
	for i := range many {
		many[i] = busy
	}
	for _, c := range []struct {
		name      string
		refusals  []error
		noWait    bool
		interrupt time.Duration // 0: none
		calls     int           // 0: not checked
		code      int
		staged    int
		want, not string
	}{
		{name: "accepted at once", calls: 1, not: "waiting", want: "wordcount succeeded", staged: 1},
		{name: "accepted later", refusals: []error{busy, busy}, calls: 3, want: "waiting until the cluster accepts the job: too many jobs\naccepted after ", not: "still waiting", staged: 1},
		{name: "long", refusals: many, calls: 21, want: "still waiting after 1m", staged: 1},
		{name: "no wait", refusals: many, noWait: true, calls: 1, code: 1, want: "error: too many jobs", not: "waiting"},
		{name: "refused for good", refusals: []error{&busyError{}}, calls: 1, code: 1, want: "error: too many jobs", not: "waiting"},
		{name: "refused at last", refusals: []error{busy, errors.New("a bad job")}, calls: 2, code: 1, want: "error: a bad job"},
		{name: "interrupted", refusals: many, interrupt: time.Second, calls: 1, code: 1, want: "interrupted before the job was submitted: got signal interrupt"},
		{name: "interrupted, undecided", refusals: []error{&busyError{5 * time.Second, ErrUndecided}, busy}, interrupt: time.Second, calls: 2, code: 1, want: "it is not known whether the job was submitted", staged: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := newFiles(t)
			cluster := &busyCluster{refusals: c.refusals, keys: make(map[string]bool), fakeCluster: fakeCluster{jobTime: time.Minute}}
			var text bytes.Buffer
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if c.interrupt > 0 {
					time.AfterFunc(c.interrupt, func() { cancel(errors.New("got signal interrupt")) })
				}
				cfg := Config{Cluster: cluster, FS: files, Staging: "mem://t/staging", Out: &text, NoWait: c.noWait}
				if code := Run(ctx, cfg, newSubmission("mem://t/in")); code != c.code {
					t.Errorf("exit code %d, want %d", code, c.code)
				}
			})
			if got := text.String(); len(cluster.times) != c.calls || len(cluster.keys) != 1 || !strings.Contains(got, c.want) || c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("%d calls with %d keys, want %d with one; output %q, want %q and not %q", len(cluster.times), len(cluster.keys), c.calls, got, c.want, c.not)
			}
			for i := 1; i < len(cluster.times) && c.interrupt == 0; i++ {
				if pause := cluster.times[i].Sub(cluster.times[i-1]); pause < busy.wait || pause > 2*busy.wait {
					t.Errorf("it comes again after %v, want %v to twice as much", pause, busy.wait)
				}
			}
			if n := stagingDirs(t, files); n != c.staged {
				t.Errorf("%d staging directories, want %d", n, c.staged)
			}
		})
	}
}

// TestBusyForDays: a client that waits renews its staged files, so that the cluster does not remove
// them. If they are gone, it says so.
func TestBusyForDays(t *testing.T) {
	for _, c := range []struct {
		name    string
		program bool
		remove  string // below the staging directory, after a day
		repeats bool   // the file system repeats requests
		code    int
		want    string
	}{
		{name: "renewed", want: "accepted after 60h"},
		{name: "renewed with the program", program: true, want: "accepted after 60h"},
		{name: "renewed although requests are repeated", repeats: true, want: "accepted after 60h"},
		{name: "submission gone", remove: "KEY", code: 1, want: "while the job waited, its staged files were removed: submit it again: "},
		{name: "program gone", program: true, remove: "programs/20260301", code: 1, want: "while the job waited, its staged files were removed: submit it again: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := newFiles(t)
			const staging = "mem://t/staging"
			cluster := &dayCluster{t: t, files: files, fakeCluster: fakeCluster{jobTime: time.Minute}}
			var text bytes.Buffer
			synctest.Test(t, func(t *testing.T) {
				cluster.began = time.Now()
				cluster.visit = func(sub *wire.Submission, since time.Duration) {
					cluster.checkRenewed(staging + "/" + sub.Key)
					if c.program {
						cluster.checkRenewed(staging + "/programs/20260301")
					}
					if c.remove != "" && since > 24*time.Hour {
						if err := files.RemoveAll(staging + "/" + strings.Replace(c.remove, "KEY", sub.Key, 1)); err != nil {
							t.Error(err)
						}
					}
				}
				cfg := Config{Cluster: cluster, FS: files, Staging: staging, Out: &text, Today: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
				if c.program {
					cfg.Program = os.Args[0]
				}
				if c.repeats {
					cfg.FS = repeatingFS{files}
				}
				if code := Run(t.Context(), cfg, newSubmission("mem://t/in")); code != c.code {
					t.Errorf("exit code %d, want %d", code, c.code)
				}
			})
			if !strings.Contains(text.String(), c.want) {
				t.Errorf("output %q, want %q", text.String(), c.want)
			}
		})
	}
}

// repeatingFS is a file system that loses the answers to Remove. As in HDFS, it repeats the request, and
// then finds no file.
type repeatingFS struct{ dfs.FS }

func (f repeatingFS) Remove(name string) error {
	if err := f.FS.Remove(name); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

// dayCluster is busy for days, and asks clients to come again in ten minutes.
type dayCluster struct {
	fakeCluster
	t     *testing.T
	files dfs.FS
	began time.Time
	visit func(sub *wire.Submission, since time.Duration) // at each submission
	seen  map[string]change                               // the last change of directories
}

type change struct{ modified, at time.Time }

func (d *dayCluster) Submit(ctx context.Context, sub wire.Submission) ([]wire.JobID, error) {
	since := time.Since(d.began)
	d.visit(&sub, since)
	if since < 60*time.Hour {
		return nil, &busyError{wait: 10 * time.Minute}
	}
	return d.fakeCluster.Submit(ctx, sub)
}

// checkRenewed checks that a directory has changed within two hours.
func (d *dayCluster) checkRenewed(dir string) {
	info, err := d.files.Stat(dir)
	if err != nil {
		return // removed
	}
	if d.seen == nil {
		d.seen = make(map[string]change)
	}
	if c, ok := d.seen[dir]; !ok || !info.Modified.Equal(c.modified) {
		d.seen[dir] = change{info.Modified, time.Now()}
	} else if time.Since(c.at) > 2*time.Hour {
		d.t.Fatalf("%s has not changed for %v", dir, time.Since(c.at))
	}
}
