package jobtracker

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/groups"
	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/admission"
	"github.com/quernmr/quern/wire"
)

// TestHistoryAccess: only users who might see a job may read its history, also after the cluster has
// forgotten it. A record of an older build, which has no ACL, is for its owner and administrators.
func TestHistoryAccess(t *testing.T) {
	f := mem.New(1 << 20)
	s := start(t, func(c *Config) { c.FS, c.History, c.ViewACL = f, true, "dora" })
	go attach(t, s, "t1", 1, 5).run()
	table, err := groups.Parse([]byte("staff:::gus\n"))
	if err != nil {
		t.Fatal(err)
	}
	sub := submission("a", 1)
	sub.Plan.Jobs[0].Properties = map[string]string{wire.ViewACL: "bob staff"}
	ids, err := s.Submit(testContext(t), core.Caller{Name: "ann", Groups: table}, sub)
	if err != nil {
		t.Fatal(err)
	}
	finish(t, s, ids)
	write := func(n int, change func(r *history.Record)) wire.JobID {
		id := wire.JobID{Start: 1, N: n}
		r := &history.Record{Job: wire.JobStatus{ID: id, Name: "old", State: wire.Succeeded}, Owner: "ann", Ended: time.Now().UnixMilli()}
		change(r)
		if err := history.Write(f, history.Name(staging, time.UnixMilli(r.Ended), id), r); err != nil {
			t.Fatal(err)
		}
		return id
	}
	listed := write(1, func(r *history.Record) { r.View, r.HasView = "bob staff", true })
	none := write(2, func(r *history.Record) { r.HasView = true })
	blank := write(3, func(r *history.Record) { r.View, r.HasView = " ", true })
	older := write(4, func(r *history.Record) {})
	unowned := write(5, func(r *history.Record) { r.Owner = "" })
	read := func(by core.Caller, id wire.JobID) (*history.Record, *history.Page, error) {
		ctx, cancel := context.WithCancel(testContext(t))
		defer cancel() // as after an answer
		r, err := s.History(ctx, by, id)
		p, pageErr := s.Histories(ctx, core.Query{})
		if pageErr != nil {
			t.Fatal(pageErr)
		}
		return r, p, err
	}
	users := []string{"root", "ann", "bob", "gus", "dora", "carl"}
	for id, sees := range map[wire.JobID]string{
		ids[0]: "root ann bob gus", listed: "root ann bob gus", none: "root ann dora", blank: "root ann", older: "root ann", unowned: "root",
	} {
		for _, user := range users {
			by := core.Caller{Name: user, Admin: user == "root", Groups: table}
			allowed := strings.Contains(" "+sees+" ", " "+user+" ")
			r, p, err := read(by, id)
			if (err == nil) != allowed || (r != nil) != allowed || err != nil && !errors.Is(err, admission.ErrNotAllowed) {
				t.Errorf("%s reads the history of %v: %+v, %v", user, id, r, err)
			}
			if len(p.Records) != 6 {
				t.Fatalf("%d histories", len(p.Records))
			}
			for _, r := range p.Records {
				if r.Job.ID == id && by.MayView(r.Owner, r.Job.Access) != allowed {
					t.Errorf("%s sees %v in the list: %v, %+v", user, id, !allowed, r.Job.Access)
				}
			}
			ctx, cancel := context.WithCancel(testContext(t))
			p, err = s.Histories(ctx, core.Query{By: by, Filter: admission.Filter{Name: "*"}})
			cancel()
			if found := slices.ContainsFunc(p.Records, func(r *history.Record) bool { return r.Job.ID == id }); err != nil || found != allowed {
				t.Errorf("%s finds %v by its name: %v, %v", user, id, found, err)
			}
		}
		if r, _, err := read(core.Caller{}, id); err != nil || r.Job.ID != id {
			t.Errorf("without certificates: %v", err)
		}
	}
	if r, err := history.Find(f, staging, ids[0]); err != nil || r.ViewACL() != "bob staff" {
		t.Errorf("the record has the ACL %q, %v", r.ViewACL(), err)
	}
	if _, _, err := read(core.Caller{}, wire.JobID{Start: 1, N: 99}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unknown job: %v", err)
	}
}

// TestHistoryReads: a request counts until its answer is sent, since the answer is as large as the history. This
// includes the attempts of an ended job.
func TestHistoryReads(t *testing.T) {
	s := start(t, func(c *Config) { c.History = true })
	go attach(t, s, "t1", 1, 5).run()
	ids, err := s.Submit(testContext(t), core.Caller{}, submission("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	finish(t, s, ids)
	for range 3 {
		ctx, cancel := context.WithCancel(testContext(t))
		_, historyErr := s.History(ctx, core.Caller{}, ids[0])
		_, listErr := s.Histories(ctx, core.Query{})
		_, flowErr := s.Histories(ctx, core.Query{Filter: admission.Filter{Flow: wire.FlowID{Start: ids[0].Start, N: ids[0].N}}})
		_, attemptsErr := s.Attempts(ctx, core.Caller{}, ids[0], wire.AttemptID{})
		if err := errors.Join(historyErr, listErr, flowErr, attemptsErr); err != nil {
			t.Fatal(err)
		}
		if n := len(s.historyReads); n != maxHistoryReads {
			t.Errorf("%d requests are served, want %d", n, maxHistoryReads)
		}
		cancel()
		waitFor(t, "the requests to end", func() bool { return len(s.historyReads) == 0 })
	}
}
