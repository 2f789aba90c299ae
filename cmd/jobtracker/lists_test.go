package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/cmd/internal/daemon"
	"github.com/quernmr/quern/groups"
)

// TestLists: flags with lists of users take groups, if -groups says who is in them. A list that could mean
// something else is refused.
func TestLists(t *testing.T) {
	for _, c := range []struct {
		args           []string
		admins, groups []string
		refused        string
	}{
		{[]string{"-admins", "root,eve ops,dev", "-groups", "f"}, []string{"root", "eve"}, []string{"ops", "dev"}, ""},
		{[]string{"-admins", " ops", "-groups", "f"}, nil, []string{"ops"}, ""},
		{[]string{"-admins", "root "}, []string{"root"}, nil, ""},
		{[]string{"-acl-view", "ann staff", "-groups", "f"}, []string{"admin"}, nil, ""},
		{[]string{"-admins", "root ops"}, nil, nil, "names the group ops: say with -groups who is in it"},
		{[]string{"-acl-view", " staff"}, nil, nil, "names the group staff"},
		{[]string{"-acl-view", "ann\x1b"}, nil, nil, `-acl-view: name "ann\x1b"`},
		{[]string{"-admins", "root, eve", "-groups", "f"}, nil, nil, "after the blank come groups"},
		{[]string{"-admins", "root ops dev", "-groups", "f"}, nil, nil, `-admins: group name "ops dev"`},
		{[]string{"-admins", "root *", "-groups", "f"}, nil, nil, `-admins: group name "*"`},
		{[]string{"-admins", "*"}, nil, nil, `-admins: name "*"`},
	} {
		o, err := parse(append(c.args, "-data", t.TempDir()), daemon.Output{Stdout: io.Discard, Stderr: io.Discard})
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%q: %v, want %q", c.args, err, c.refused)
			}
			continue
		}
		if err != nil || !slices.Equal(o.admins, c.admins) || !slices.Equal(o.adminGroups, c.groups) {
			t.Errorf("%q: %v, %+v", c.args, err, o)
		}
	}
}

// TestUnknownGroups: groups in flags that the file does not have are named once. A group without users is known.
func TestUnknownGroups(t *testing.T) {
	table, err := groups.Parse([]byte("ops:::olga\nempty:::\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := &options{adminGroups: []string{"ops", "opps", "empty"}, viewACL: "ann staff,opps,ops"}
	if got := o.unknownGroups(table); !slices.Equal(got, []string{"opps", "staff"}) {
		t.Error(got)
	}
}
