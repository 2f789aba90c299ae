package admission

import (
	"errors"
	"strings"
	"testing"

	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler/pool"
	"github.com/quernmr/quern/wire"
)

// withACLs makes a submission of two jobs with ACLs.
func withACLs(key, owner, view, modify string) *facts.Submitted {
	x := submitted(key, owner)
	properties := map[string]string{wire.ViewACL: view, wire.ModifyACL: modify}
	x.Submission.Plan.Jobs = []wire.JobPlan{{Name: "a", Output: "a", Properties: properties}, {Name: "b", Output: "b", Properties: properties}}
	return SubmittedFact(x.Submission, []byte("secret"), x.At)
}

// TestAccess checks who may see and change a job: by owner, ACL, pool, default, and after its end.
func TestAccess(t *testing.T) {
	etl := withACLs("etl", "ann", "vera", "mod")
	etl.Submission.Settings.Pool = "etl"
	f := cluster(t,
		&facts.PoolsChanged{N: 1, Table: pool.Table{From: "f.xml", Pools: []pool.Pool{{Name: "etl", Administrators: []string{"poul"}}, {Name: "open", Administrators: []string{"*"}}}}},
		etl, withACLs("none", "ann", "", ""), withACLs("blank", "ann", " ", " "), withACLs("all", "ann", "*", "*"))
	for job := range f.Flow(f.Submission("all")) { // which keeps its ACLs without a body
		f.Apply(f.Index()+1, 1, &facts.Stopped{Job: job.N(), Outcome: wire.Killed})
		f.Apply(f.Index()+1, 1, &facts.Ended{Job: job.N(), Outcome: wire.Killed})
	}
	if f.Submission("all").Open() {
		t.Fatal("the jobs have not ended")
	}
	users := []string{"", "root", "ann", "vera", "mod", "poul", "bob"}
	for _, c := range []struct {
		key, byDefault string
		sees, changes  string // users
	}{
		{"etl", "", "root ann vera poul", "root ann mod poul"},
		{"etl", "*", "root ann vera poul", "root ann mod poul"},
		{"none", "", "root ann", "root ann"},
		{"none", "bob", "root ann bob", "root ann"},
		{"blank", "*", "root ann", "root ann"},
		{"all", "", "root ann vera mod poul bob", "root ann vera mod poul bob"},
	} {
		s := f.Submission(c.key)
		for _, user := range users {
			by := Caller{Name: user, Admin: user == "root"}
			want := func(list string) bool { return user == "" || strings.Contains(" "+list+" ", " "+user+" ") }
			id := f.ID(s.First())
			err := by.CheckView(id, s.Owner(), AccessOf(f, s, c.byDefault))
			if (err == nil) != want(c.sees) || err != nil && (!errors.Is(err, ErrNotAllowed) || !strings.Contains(err.Error(), user+" cannot see "+id.String())) {
				t.Errorf("%q sees %s with the default %q: %v", user, c.key, c.byDefault, err)
			}
			if err := authorize(f, by, "change", id, s); (err == nil) != want(c.changes) || err != nil && !errors.Is(err, ErrNotAllowed) {
				t.Errorf("%q changes %s: %v", user, c.key, err)
			}
		}
	}
}

// TestBadACLs: a submission with an ACL that Quern does not understand is refused.
func TestBadACLs(t *testing.T) {
	differ := withACLs("k", "ann", "bob", "")
	differ.Submission.Plan.Jobs[1].Properties = map[string]string{wire.ViewACL: "carl"}
	for want, x := range map[string]*facts.Submitted{
		"acl-view-job: it has more than two lists":     withACLs("k", "ann", "a b c", ""),
		"acl-modify-job: * stands":                     withACLs("k", "ann", "", "a,*"),
		"acl-view-job: jobs \"a\" and \"b\" of a flow": differ,
		"": withACLs("k", "ann", "bob", "*"),
	} {
		_, _, err := Submit(cluster(t), &x.Submission, Caller{Name: "ann"}, 1)
		if want == "" && err == nil {
			continue
		}
		if err == nil || !errors.Is(err, ErrBadSubmission) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
