package jobtracker

import (
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
	users := []string{"root", "ann", "bob", "gus", "dora", "carl"}
	for id, sees := range map[wire.JobID]string{
		ids[0]: "root ann bob gus", listed: "root ann bob gus", none: "root ann dora", blank: "root ann", older: "root ann", unowned: "root",
	} {
		for _, user := range users {
			by := core.Caller{Name: user, Admin: user == "root", Groups: table}
			allowed := strings.Contains(" "+sees+" ", " "+user+" ")
			r, err := s.History(testContext(t), by, id)
			if (err == nil) != allowed || (r != nil) != allowed || err != nil && !errors.Is(err, admission.ErrNotAllowed) {
				t.Errorf("%s reads the history of %v: %+v, %v", user, id, r, err)
			}
			p, err := s.Histories(testContext(t), core.Query{})
			if err != nil || len(p.Records) != 6 {
				t.Fatalf("%d histories, %v", len(p.Records), err)
			}
			for _, r := range p.Records {
				if r.Job.ID == id && by.MayView(r.Owner, r.Job.Access) != allowed {
					t.Errorf("%s sees %v in the list: %v, %+v", user, id, !allowed, r.Job.Access)
				}
			}
			p, err = s.Histories(testContext(t), core.Query{By: by, Filter: admission.Filter{Name: "*"}})
			if found := slices.ContainsFunc(p.Records, func(r *history.Record) bool { return r.Job.ID == id }); err != nil || found != allowed {
				t.Errorf("%s finds %v by its name: %v, %v", user, id, found, err)
			}
		}
		if r, err := s.History(testContext(t), core.Caller{}, id); err != nil || r.Job.ID != id {
			t.Errorf("without certificates: %v", err)
		}
	}
	if r, err := history.Find(f, staging, ids[0]); err != nil || r.ViewACL() != "bob staff" {
		t.Errorf("the record has the ACL %q, %v", r.ViewACL(), err)
	}
	if _, err := s.History(testContext(t), core.Caller{}, wire.JobID{Start: 1, N: 99}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unknown job: %v", err)
	}
}
