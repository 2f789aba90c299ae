package admission

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

const staging = "file:///shared/staging"

// cluster applies facts after the bootstrap.
func cluster(t *testing.T, more ...facts.Fact) *facts.Facts {
	t.Helper()
	f := facts.New()
	for i, x := range append([]facts.Fact{&facts.Bootstrapped{Start: 1, Staging: staging}}, more...) {
		if !f.Apply(uint64(i+1), 1, x) {
			t.Fatalf("%s does not fit", x.Name())
		}
	}
	return f
}

// submission makes a submission of one job, with its own directory.
func submission(key string) *wire.Submission {
	return &wire.Submission{Key: key, Staging: staging + "/" + key, Plan: wire.Plan{Jobs: []wire.JobPlan{{}}}}
}

func submitted(key, owner string) *facts.Submitted {
	s := submission(key)
	s.Owner = owner
	return &facts.Submitted{At: 1000, Submission: *s}
}

// TestStagingDirectories checks that a submission's directory, which the job tracker removes
// later, is directly below the staging directory, and that no other submission can have it.
func TestStagingDirectories(t *testing.T) {
	for dir, want := range map[string]bool{
		staging + "/k":              true,
		staging + "/another":        false,
		staging:                     false,
		staging + "/":               false,
		staging + "/../k":           false,
		staging + "/a/k":            false,
		"file:///shared/staging2/k": false,
		"file:///etc/k":             false,
		"/shared/staging/k":         false,
		"mem://shared/staging/k":    false,
	} {
		s := submission("k")
		s.Staging = dir
		if _, _, err := Submit(cluster(t), s, Caller{}, 1); (err == nil) != want || err != nil && !errors.Is(err, ErrBadSubmission) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	for key, want := range map[string]bool{
		";$(x)": true, "": false, ".": false, "..": false, "../k": false, "a/b": false, "history": false, "clusters": false, "programs": false, "sessions": false,
	} {
		if _, _, err := Submit(cluster(t), submission(key), Caller{}, 1); (err == nil) != want || err != nil && !errors.Is(err, ErrBadSubmission) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

// TestSubmissionsTooLarge checks that submissions are refused that need much memory. An earlier
// build may have accepted one: its log entry still applies.
func TestSubmissionsTooLarge(t *testing.T) {
	jobs := func(n int, fill func(*wire.JobPlan)) *wire.Submission {
		s := submission("k")
		s.Plan.Jobs = make([]wire.JobPlan, n)
		for i := range s.Plan.Jobs {
			fill(&s.Plan.Jobs[i])
		}
		return s
	}
	for name, c := range map[string]struct {
		sub  *wire.Submission
		want string
	}{
		"20,000 jobs": {jobs(20_000, func(*wire.JobPlan) {}), "20000 jobs, at most 1000"},
		"reduces":     {jobs(1000, func(j *wire.JobPlan) { j.Reduces = 1_000_000 }), "1000000000 reduces in all its jobs, at most 1000000"},
		"inputs":      {jobs(1, func(j *wire.JobPlan) { j.Inputs = make([]wire.InputPlan, 100_001) }), "100001 inputs, at most 100000"},
		"a name":      {jobs(1, func(j *wire.JobPlan) { j.Name = strings.Repeat("x", 1<<20) }), "has 1048576 bytes, at most 1000"},
	} {
		_, _, err := Submit(cluster(t), c.sub, Caller{}, 1)
		if !errors.Is(err, ErrBadSubmission) || !errors.Is(err, wire.ErrTooLarge) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		entry, err := facts.Decode(facts.Encode(&facts.Submitted{Submission: *c.sub}))
		if err != nil {
			t.Fatal(err)
		}
		if kept, _ := cluster(t, entry).CountJobs(); kept != len(c.sub.Plan.Jobs) {
			t.Errorf("%s: the log entry makes %d jobs", name, kept)
		}
	}
}

// TestSubmit checks which submission is proposed, and the answer to a known key.
func TestSubmit(t *testing.T) {
	ann, bob := Caller{Name: "ann"}, Caller{Name: "bob"}
	f := cluster(t, submitted("known", "ann"))
	s := submission("k")
	s.Owner, s.DeadlineAt = "bob", time.UnixMilli(5000).UnixMilli()
	got, known, err := Submit(f, s, ann, 2000)
	if err != nil || known != nil || got.Owner != "ann" || got.DeadlineAt != 0 || got.Settings.Deadline != 3*time.Second {
		t.Errorf("a new submission: %+v, %v, %v", got, known, err)
	}
	if got, _, _ := Submit(f, s, Caller{}, 5000); got.Owner != "bob" || got.Settings.Deadline != -1 {
		t.Errorf("due now, from an unknown client: %+v", got)
	}
	if _, known, err := Submit(f, submission("known"), ann, 1); err != nil || known != f.Submission("known") {
		t.Errorf("ann submits again: %v, %v", known, err)
	}
	if _, _, err := Submit(f, submission("known"), bob, 1); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("bob submits with ann's key: %v", err)
	}
	older := submission("known") // as an older build may have accepted it
	older.Staging, older.Plan.Jobs = "elsewhere", make([]wire.JobPlan, 20_000)
	if _, known, err := Submit(f, older, ann, 1); err != nil || known != f.Submission("known") {
		t.Errorf("ann submits again what would be refused by now: %v, %v", known, err)
	}
	s.Settings.Weight = -1
	if _, _, err := Submit(f, s, ann, 1); !errors.Is(err, ErrBadSettings) {
		t.Errorf("a bad weight: %v", err)
	}
	if _, _, err := Submit(f, nil, ann, 1); !errors.Is(err, ErrBadSubmission) {
		t.Errorf("no submission: %v", err)
	}
}

// TestPools checks that a pool's list of users holds for all but administrators.
func TestPools(t *testing.T) {
	f := cluster(t, submitted("k", "bob"), &facts.PoolsChanged{N: 1, Table: pool.Table{From: "f.xml", Pools: []pool.Pool{{Name: "etl", Submitters: []string{"ann"}}, {Name: "open"}}}})
	for _, c := range []struct {
		pool string
		by   Caller
		want error
	}{
		{"", Caller{Name: "bob"}, nil},
		{"open", Caller{Name: "bob"}, nil},
		{"etl", Caller{Name: "ann"}, nil},
		{"etl", Caller{Name: "bob"}, ErrNotAllowed},
		{"etl", Caller{Name: "root", Admin: true}, nil},
		{"etl", Caller{}, ErrNotAllowed}, // without an owner
		{"nowhere", Caller{Name: "root", Admin: true}, ErrBadSettings},
	} {
		s := submission("new")
		s.Settings.Pool = c.pool
		if _, _, err := Submit(f, s, c.by, 1); !errors.Is(err, c.want) {
			t.Errorf("%+v submits to %q: %v, want %v", c.by, c.pool, err, c.want)
		}
	}
	_, err := Change(f, f.ID(1), wire.Change{Pool: new("adhoc")}, Caller{Name: "bob"}, 1)
	if !errors.Is(err, ErrBadSettings) || !strings.Contains(err.Error(), `pool "adhoc" is unknown; there are [default etl open]`) {
		t.Errorf("bob's job changes to an unknown pool: %v", err)
	}
}

// TestChangeAndKill checks which callers may change and kill a job, and when.
func TestChangeAndKill(t *testing.T) {
	flow := submitted("flow", "ann") // jobs 6 and 7
	flow.Submission.Plan.Jobs = make([]wire.JobPlan, 2)
	flow.Submission.Plan.Jobs[0].Output, flow.Submission.Plan.Jobs[1].Output = "a", "b"
	var (
		f = cluster(t, submitted("runs", "ann"), submitted("stops", "ann"), submitted("commits", "ann"), submitted("ended", "ann"), submitted("unowned", ""), flow,
			&facts.Stopped{Job: 2, Outcome: wire.Killed}, &facts.SplitsWritten{Job: 3}, &facts.Committing{Job: 3},
			&facts.Stopped{Job: 4, Outcome: wire.Killed}, &facts.Ended{Job: 4, Outcome: wire.Killed},
			&facts.SplitsWritten{Job: 6}, &facts.Committing{Job: 6}, &facts.Ended{Job: 6, Outcome: wire.Succeeded})
		ann, bob, root = Caller{Name: "ann"}, Caller{Name: "bob"}, Caller{Name: "root", Admin: true}
		mustStop       = errors.New("it has to stop first")
	)
	for _, c := range []struct {
		what         string
		job          wire.JobID
		by           Caller
		change, kill error
	}{
		{"the owner", f.ID(1), ann, nil, mustStop},
		{"an administrator", f.ID(1), root, nil, mustStop},
		{"a client that has no name", f.ID(1), Caller{}, nil, mustStop},
		{"another user", f.ID(1), bob, ErrNotAllowed, ErrNotAllowed},
		{"a job that stops", f.ID(2), ann, nil, nil},
		{"another's job that stops", f.ID(2), bob, ErrNotAllowed, ErrNotAllowed},
		{"a job that commits", f.ID(3), ann, nil, ErrJobCommitting},
		{"a job that has ended", f.ID(4), ann, ErrJobEnded, ErrJobEnded},
		{"another's job that has ended", f.ID(4), bob, ErrJobEnded, ErrJobEnded},
		{"an ended job of a flow that runs", f.ID(6), ann, ErrJobEnded, ErrJobEnded},
		{"the next job of that flow", f.ID(7), ann, nil, mustStop},
		{"a job without an owner", f.ID(5), ann, ErrNotAllowed, ErrNotAllowed},
		{"a job without an owner, an administrator", f.ID(5), root, nil, mustStop},
		{"an unknown job", f.ID(9), ann, ErrUnknownJob, ErrUnknownJob},
		{"a job of another cluster", wire.JobID{Start: 2, N: 1}, ann, ErrUnknownJob, ErrUnknownJob},
	} {
		s, err := Change(f, c.job, wire.Change{Weight: new(2.0)}, c.by, 1)
		if !errors.Is(err, c.change) || err != nil && !strings.Contains(err.Error(), c.job.String()) || err == nil && s != f.Find(c.job).Submission() {
			t.Errorf("%s changes: %v, %v", c.what, s, err)
		}
		settled, err := Kill(f, c.job, f.Find(c.job), c.by)
		if !settled {
			err = mustStop
		}
		if !errors.Is(err, c.kill) || settled && err != nil && !strings.Contains(err.Error(), c.job.String()) {
			t.Errorf("%s kills: %v, want %v", c.what, err, c.kill)
		}
	}
	if _, err := Change(f, f.ID(1), wire.Change{Weight: new(-2.0)}, ann, 1); !errors.Is(err, ErrBadSettings) {
		t.Errorf("a bad weight: %v", err)
	}
	x := ChangeFact(f.Submission("runs"), wire.Change{Suspended: new(true), Deadline: new(time.Second)}, 3000)
	if x.Key != "runs" || x.N != 1 || !x.Suspended || x.Settings.Deadline != 3*time.Second {
		t.Errorf("a change after two seconds is %+v", x)
	}
}
