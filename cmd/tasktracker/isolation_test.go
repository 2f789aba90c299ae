package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/cmd/internal/daemon"
)

// TestJobsDoNotSeeKeys: also the automatic authority of an account with / as its home directory, and the audit log with its rotated files.
func TestJobsDoNotSeeKeys(t *testing.T) {
	for _, env := range []map[string]string{{"HOME": "/"}, {"HOME": "/x", "XDG_STATE_HOME": "/.local/state"}} {
		i, err := jobIsolation(&isolationFlags{minUID: defaultMinUID}, &daemon.Security{TLSDir: "/keys", AuditLog: "/srv/audit"}, func(name string) string { return env[name] })
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/keys", "/srv/audit", "/srv/audit.1", "/srv/audit.4", "/.local/state/quern"} {
			if !slices.Contains(i.Hidden, path) {
				t.Errorf("%v: %s is not in %v", env, path, i.Hidden)
			}
		}
	}
}

// TestJobsDoNotSeeLogins: the keytab and the ticket file of the task tracker, also where a ticket file is replaced.
func TestJobsDoNotSeeLogins(t *testing.T) {
	env := map[string]string{"KRB5_CLIENT_KTNAME": "FILE:/srv/tt.keytab", "KRB5CCNAME": "FILE:/srv/tickets"}
	i, err := jobIsolation(&isolationFlags{minUID: defaultMinUID}, new(daemon.Security), func(name string) string { return env[name] })
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/srv/tt.keytab", "/srv/tickets"} {
		if !slices.Contains(i.Hidden, path) {
			t.Errorf("%s is not in %v", path, i.Hidden)
		}
	}
	if !slices.Equal(i.Replaced, []string{"/srv/tickets"}) {
		t.Errorf("replaced are %v", i.Replaced)
	}
	env["KRB5CCNAME"] = "KEYRING:persistent:1000"
	if _, tickets := logins(func(name string) string { return env[name] }); tickets != "" {
		t.Errorf("a keyring is the file %s", tickets)
	}
}

// TestJobPaths: the operator names what jobs see, do not see and write by absolute paths.
func TestJobPaths(t *testing.T) {
	none := func(string) string { return "" }
	i, err := jobIsolation(&isolationFlags{hidden: "/srv/keys,/srv/db", outputs: "/data,/scratch", minUID: defaultMinUID}, &daemon.Security{TLSDir: "/keys"}, none)
	if err != nil || !slices.Equal(i.Outputs, []string{"/data", "/scratch"}) || !slices.Equal(i.Hidden, []string{"/srv/keys", "/srv/db", "/keys"}) {
		t.Errorf("%+v, %v", i, err)
	}
	for want, f := range map[string]isolationFlags{"-job-hidden keys": {hidden: "keys"}, "-job-outputs /": {outputs: "/data,/"}, "-job-paths x": {shown: "x"}} {
		f.minUID = defaultMinUID
		if _, err := jobIsolation(&f, new(daemon.Security), none); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", f, err, want)
		}
	}
}

// TestUserFlags: the flags for accounts need the level user, and jobs do not see the map.
func TestUserFlags(t *testing.T) {
	none := func(string) string { return "" }
	i, err := jobIsolation(&isolationFlags{level: "user", users: "/srv/users", minUID: 2000}, new(daemon.Security), none)
	if err != nil || i.Users.Map != "/srv/users" || i.Users.Min != 2000 || !slices.Contains(i.Hidden, "/srv/users") {
		t.Errorf("%+v, %v", i, err)
	}
	for want, f := range map[string]isolationFlags{
		"-user-map and -min-uid need -isolation user":    {level: "namespace", users: "/srv/users", minUID: defaultMinUID},
		"need -isolation user":                           {minUID: 500},
		"-min-uid must be from 1 to 4294967294, got 0":   {level: "user"},
		"-isolation users: want none, namespace or user": {level: "users", minUID: defaultMinUID},
	} {
		if _, err := jobIsolation(&f, new(daemon.Security), none); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", f, err, want)
		}
	}
}
