package admission

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/groups"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/scheduler/pool"
)

// expanded replaces the groups of a list by their users: a job tracker without groups decides the same.
func expanded(users, in []string, members map[string][]string) []string {
	all := slices.Clone(users)
	for _, group := range in {
		all = append(all, members[group]...)
	}
	return all
}

// TestGroupsAreTheirUsers: a group in a list admits its users, as if the list named them. This holds for
// ACLs of jobs, and for lists of pools.
func TestGroupsAreTheirUsers(t *testing.T) {
	users, names := []string{"ann", "bob", "carl", "dora"}, []string{"g", "h", "ann"} // also a group with the name of a user
	someUsers := rapid.SliceOfNDistinct(rapid.SampledFrom(users), 0, 2, rapid.ID)
	someGroups := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 2, rapid.ID)
	rapid.Check(t, func(r *rapid.T) {
		members, file := make(map[string][]string), ""
		for _, group := range names {
			members[group] = someUsers.Draw(r, group)
			file += group + ":::" + strings.Join(members[group], ",") + "\n"
		}
		table, err := groups.Parse([]byte(file))
		if err != nil {
			r.Fatal(err)
		}
		var acls, plain [2]string // view, modify
		for i := range acls {
			list, in := someUsers.Draw(r, "users"), someGroups.Draw(r, "groups")
			acls[i] = strings.Join(list, ",") + " " + strings.Join(in, ",")
			plain[i] = strings.Join(expanded(list, in, members), ",") + " "
		}
		var given, dumb pool.Pool
		given.Name, dumb.Name = "p", "p"
		given.Submitters, given.SubmitterGroups = append(someUsers.Draw(r, "submitters"), ""), someGroups.Draw(r, "submitters")
		given.Administrators, given.AdministratorGroups = someUsers.Draw(r, "administrators"), someGroups.Draw(r, "administrators")
		dumb.Submitters = expanded(given.Submitters, given.SubmitterGroups, members)
		dumb.Administrators = expanded(given.Administrators, given.AdministratorGroups, members)
		with := func(acls [2]string, p pool.Pool) *facts.Facts {
			x := withACLs("k", "ann", acls[0], acls[1])
			x.Submission.Settings.Pool = "p"
			return cluster(t, &facts.PoolsChanged{N: 1, Table: pool.Table{From: "f.xml", Pools: []pool.Pool{p}}}, x)
		}
		f, d := with(acls, given), with(plain, dumb)
		s, ds := f.Submission("k"), d.Submission("k")
		if s == nil || ds == nil {
			r.Fatal("not submitted")
		}
		for _, user := range users {
			by, dumbBy := Caller{Name: user, Groups: table}, Caller{Name: user}
			for what, errs := range map[string][2]error{
				"see":    {by.CheckView(f.ID(1), "ann", AccessOf(f, s, "")), dumbBy.CheckView(d.ID(1), "ann", AccessOf(d, ds, ""))},
				"change": {authorize(f, by, "change", f.ID(1), s), authorize(d, dumbBy, "change", d.ID(1), ds)},
				"pool":   {checkPool(f, "p", "carl", by), checkPool(d, "p", "carl", dumbBy)},
				"submit": {checkPool(f, "p", user, by), checkPool(d, "p", user, dumbBy)},
			} {
				if fmt.Sprint(errs[0]) != fmt.Sprint(errs[1]) {
					r.Fatalf("%s by %s with %q, %+v, %s: %v, without groups %v", what, user, acls, given, file, errs[0], errs[1])
				}
			}
		}
	})
}

// TestGroupsOfOwner: for a job that is moved, its owner's groups count. Administrators of the pool may move
// it, too.
func TestGroupsOfOwner(t *testing.T) {
	f := cluster(t, &facts.PoolsChanged{N: 1, Table: pool.Table{From: "f.xml", Pools: []pool.Pool{
		{Name: "p", Submitters: []string{""}, SubmitterGroups: []string{"staff"}, Administrators: []string{}, AdministratorGroups: []string{"ops"}},
	}}})
	table, err := groups.Parse([]byte("staff:::ann\nops:::olga\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		owner, by string
		allowed   bool
	}{{"ann", "bob", true}, {"bob", "ann", false}, {"bob", "olga", true}, {"", "bob", false}, {"olga", "bob", true}} {
		if err := checkPool(f, "p", c.owner, Caller{Name: c.by, Groups: table}); (err == nil) != c.allowed || err != nil && !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s moves a job of %q: %v", c.by, c.owner, err)
		}
	}
}

// TestUnknownGroups: a job tracker without groups refuses an ACL with groups, and names one. It does not
// refuse it again for a known key, nor where ACLs have no effect.
func TestUnknownGroups(t *testing.T) {
	table, err := groups.Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	f := cluster(t, withACLs("known", "ann", "bob staff", ""))
	for _, c := range []struct {
		key, view, modify string
		by                Caller
		refused           string
	}{
		{"k", "bob staff,ops", "", Caller{Name: "ann"}, "property mapreduce.job.acl-view-job names the group staff, but"},
		{"k", "", " ops", Caller{Name: "root", Admin: true}, "property mapreduce.job.acl-modify-job names the group ops, but"},
		{"k", "bob", "*", Caller{Name: "ann"}, ""},
		{"k", "bob staff", " ops", Caller{Name: "ann", Groups: table}, ""}, // the group may come later
		{"k", "bob staff", " ops", Caller{}, ""},
		{"known", "bob staff", "", Caller{Name: "ann"}, ""},
	} {
		x := withACLs(c.key, "ann", c.view, c.modify)
		_, _, err := Submit(f, &x.Submission, c.by, 1)
		if (err == nil) != (c.refused == "") || err != nil && (!errors.Is(err, ErrBadSubmission) || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestOwnerNames: without certificates, an owner that would be unclear in logs and ACLs is refused.
func TestOwnerNames(t *testing.T) {
	for owner, good := range map[string]bool{
		"": true, "ann": true, "ann@x.y": true, "DOMAIN\\ann": true, "ann b": false, "ann,bob": false, "ann\n": false, "\x1b[2J": false, "*": false, "\xff": false,
	} {
		x := withACLs("k", owner, "", "")
		x.Submission.Program.Hash, x.Submission.Digest = "h", make([]byte, 32)
		_, _, err := Submit(cluster(t), &x.Submission, Caller{}, 1)
		if (err == nil) != good || err != nil && (!errors.Is(err, ErrBadSubmission) || !strings.Contains(err.Error(), fmt.Sprintf("owner name %q", owner))) {
			t.Errorf("%q: %v", owner, err)
		}
	}
}
