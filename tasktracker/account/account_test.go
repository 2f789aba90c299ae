package account

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

// machine looks accounts up in a fixed list.
func machine(name string) (*Account, error) {
	for _, a := range []Account{
		{Name: "ann", UID: 1001, GID: 1001, Groups: []uint32{1001, 27}, Home: "/home/ann"},
		{Name: "daemon", UID: 1, GID: 1},
		{Name: "first", UID: 1000, GID: 1000},
		{Name: "last", UID: 999, GID: 1000},
		{Name: "quern", UID: 1500, GID: 1500},
		{Name: "root", UID: 0, GID: 0},
		{Name: "wheel", UID: 1002, GID: 0},
		{Name: "operator", UID: 1003, GID: 1003, Groups: []uint32{1003, 0}},
	} {
		if a.Name == name {
			return &a, nil
		}
	}
	if name == "lost" {
		return nil, errors.New("the disk is broken")
	}
	return nil, user.UnknownUserError(name)
}

func users(t *testing.T, text string) *Users {
	t.Helper()
	u := &Users{Min: 1000, Self: 1500, Lookup: machine}
	if text != "" {
		u.Map = filepath.Join(t.TempDir(), "map")
		if err := os.WriteFile(u.Map, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		u.Self = uint32(os.Geteuid())
	}
	return u
}

// TestOf: the map comes first, then the account with the owner's name. Accounts of the system, of the
// task tracker and with root's group are refused, wherever they come from.
func TestOf(t *testing.T) {
	const text = "# owners\n\n  bob ann\ncarl 2001 2002\nann 3000 3000\nroot ann\nlow 999 5000\nzero 0 5000\ngroup 5000 0\nnone absent\nnever 4294967295 7\n"
	for _, c := range []struct {
		text, owner string
		want        string // account, or a part of the error
	}{
		{"", "ann", "ann 1001 1001 [1001 27] /home/ann"},
		{"", "first", "first 1000 1000 [] "},
		{"", "last", "user id 999, and the lowest one is 1000 (-min-uid)"},
		{"", "daemon", "user id 1, and the lowest one is 1000 (-min-uid)"},
		{"", "quern", "user id 1500, which is the task tracker's own"},
		{"", "root", "its user id is 0"},
		{"", "wheel", "its group id is 0"},
		{"", "operator", "a member of root's group"},
		{"", "zoe", `jobs of "zoe" do not run here (-isolation user): this machine has no account "zoe", and -user-map names no other one`},
		{"", "", "the job has no owner"},
		{text, "bob", "ann 1001 1001 [1001 27] /home/ann"},
		{text, "carl", "carl 2001 2002 [] "},
		{text, "ann", "ann 3000 3000 [] "},
		{text, "root", "ann 1001 1001 [1001 27] /home/ann"},
		{text, "first", "first 1000 1000 [] "},
		{text, "low", "user id 999, and the lowest one"},
		{text, "zero", "its user id is 0"},
		{text, "group", "its group id is 0"},
		{text, "never", "which the system does not use"},
		{text, "none", `this machine has no account "absent"`},
	} {
		a, err := users(t, c.text).Of(c.owner)
		if err == nil {
			if got := fmt.Sprint(a.Name, " ", a.UID, " ", a.GID, " ", a.Groups, " ", a.Home); got != c.want {
				t.Errorf("%q: got %q, want %q", c.owner, got, c.want)
			}
			continue
		}
		if _, refused := errors.AsType[*RefusedError](err); !refused || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.owner, err, c.want)
		}
	}
	_, err := users(t, "").Of("lost")
	if _, refused := errors.AsType[*RefusedError](err); refused || err == nil {
		t.Errorf("a list of accounts that cannot be read: %v", err)
	}
}

// TestMachine: without a test's list, accounts are those of the machine.
func TestMachine(t *testing.T) {
	_, err := (&Users{Min: 1, Self: 12345}).Of("no-such-account")
	if _, refused := errors.AsType[*RefusedError](err); !refused {
		t.Errorf("an unknown account: %v", err)
	}
	_, err = (&Users{Min: 1, Self: 12345}).Of("root")
	if err == nil || !strings.Contains(err.Error(), "its user id is 0") {
		t.Errorf("root: %v", err)
	}
}

// TestMapFile: a map that other users could have written is refused, as is one that is no regular file. It is read
// again each time.
func TestMapFile(t *testing.T) {
	u := users(t, "bob 2001 2001\n")
	if err := os.WriteFile(u.Map, []byte("bob 2002 2002\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a, err := u.Of("bob"); err != nil || a.UID != 2002 {
		t.Errorf("after a change: %v, %v", a, err)
	}
	for _, mode := range []os.FileMode{0o620, 0o602} {
		if err := os.Chmod(u.Map, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := u.Of("bob"); err == nil || !strings.Contains(err.Error(), "other users can write it") {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	u.Map = t.TempDir()
	if _, err := u.Of("bob"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	u.Map = filepath.Join(u.Map, "missing")
	if _, err := u.Of("bob"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing map: %v", err)
	}
}

// TestParseRefuses: a line that is not understood is refused, with its number.
func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"a":                           "line 1: want OWNER UID GID",
		"# x\na 1 2 3":                "line 2: want OWNER UID GID",
		"a 1":                         `line 1: owner "a" has a user id and no group id`,
		"a b c":                       `line 1: "b" is not a user or group id`,
		"a -1 1":                      `"-1" is not`,
		"a 1 4294967296":              `"4294967296" is not`,
		"a 1 0x1":                     `"0x1" is not`,
		"a b\n\nb c\na 1 2":           `line 4: owner "a" is in an earlier line`,
		strings.Repeat("#", maxMap+1): "more than 1048576 bytes",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

// TestParseAgain: a map that is written as text is read as the same map, whatever is between its fields and lines.
func TestParseAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z.@_-]{1,8}`)
		blank := rapid.SampledFrom([]string{" ", "\t", "  \t"})
		want := rapid.MapOf(name, rapid.Custom(func(t *rapid.T) Entry {
			if rapid.Bool().Draw(t, "named") {
				return Entry{Account: name.Draw(t, "account")}
			}
			return Entry{UID: rapid.Uint32().Draw(t, "uid"), GID: rapid.Uint32().Draw(t, "gid")}
		})).Draw(t, "map")
		var text strings.Builder
		for owner, e := range want {
			fields := []string{owner, e.Account}
			if e.Account == "" {
				fields = []string{owner, strconv.Itoa(int(e.UID)), strconv.Itoa(int(e.GID))}
			}
			fmt.Fprintf(&text, "%s\n%s\n", rapid.SampledFrom([]string{"", "# a b c d", "  "}).Draw(t, "between"), strings.Join(fields, blank.Draw(t, "blank")))
		}
		if got, err := Parse([]byte(text.String())); err != nil || !maps.Equal(got, want) {
			t.Fatalf("%q: %v, %v; want %v", text.String(), got, err, want)
		}
	})
}

// bound is for maps of the shortest lines: each line needs an entry.
var bound = membound.Bound{Free: 64 << 10, PerByte: 128}

// FuzzParse: a map is refused or has an entry for each line, and takes memory in proportion to its size.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", "bob ann\ncarl 2001 2002\n# x\n", "a b\na b\n", "a 1\n", "a\x00b c\r\n"} {
		f.Add([]byte(text))
	}
	var dense strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&dense, "%s b\n", strconv.FormatInt(int64(i), 36))
	}
	f.Add([]byte(dense.String()))
	f.Fuzz(func(t *testing.T, text []byte) {
		var entries map[string]Entry
		var err error
		bound.Check(t, len(text), func() { entries, err = Parse(text) })
		if err != nil {
			return
		}
		lines := 0
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				lines++
			}
		}
		if lines != len(entries) {
			t.Errorf("%d lines have %d entries", lines, len(entries))
		}
	})
}
