package account

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
)

// programs puts shell scripts into a directory that is the only one with programs.
func programs(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

// TestDirectory: an account that is not in /etc/passwd is looked up in directories such as LDAP. An answer for another account, or
// one that is not understood, is an error.
func TestDirectory(t *testing.T) {
	const line = `echo "$2:*:5001:5002:Zoe:/home/zoe/:/bin/sh"`
	for _, c := range []struct{ getent, id, want string }{
		{line, `echo "5002 5003"`, "zoe 5001 5002 [5002 5003] /home/zoe"},
		{line, `echo`, "zoe 5001 5002 [] /home/zoe"},
		{line, `echo "5002 users"`, `id -G zoe: "users" is not a user or group id`},
		{line, `exit 1`, "id -G zoe: exit status 1"},
		{line, `echo "5002 0"`, "a member of root's group"},
		{"exit 2", "", `this machine has no account "zoe"`},
		{"", "", "not one line of an account"},
		{"exit 1", "", "getent passwd zoe: exit status 1"},
		{line + "\n" + line, "", "not one line of an account"},
		{`echo "Zoe:*:5001:5002::/:"`, "", `for account "Zoe": give the owner a line OWNER ACCOUNT in -user-map`},
		{`echo "zoe:*:x:5002::/:"`, "", `"x" is not a user or group id`},
		{`echo "zoe:*:0:5002::/:"`, "", "its user id is 0"},
		{"while :; do echo zoe; done", "", "more than 65536 bytes"},
	} {
		programs(t, map[string]string{"getent": c.getent, "id": c.id})
		a, err := (&Users{Min: 1000}).Of("zoe")
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(a.Name, " ", a.UID, " ", a.GID, " ", a.Groups, " ", a.Home)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%q, %q: %.300s, want %s", c.getent, c.id, got, c.want)
		}
	}
	programs(t, nil)
	for _, name := range []string{"zoe", "-x", "zoe:"} {
		if _, err := new(Users).ask(name); !errors.Is(err, user.UnknownUserError(name)) {
			t.Errorf("%s without getent: %v", name, err)
		}
	}
}
