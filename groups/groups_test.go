package groups

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/wire"
)

// TestParse checks the format of /etc/group, and that an error names the line.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{ // groups with users, or an error
		"":                                    "",
		"# none\n\n":                          "",
		"staff:x:50:ann,bob\nempty:*:51:\n":   "empty= staff=ann,bob",
		"staff:::ann":                         "staff=ann",
		"a:x:1:bob,ann,bob\nb:x:2:c\na:x:1:z": "a=ann,bob,z b=c", // as from two sources
		"sta-ff@x.y:x:1:ann@x.y,Bob$":         "sta-ff@x.y=Bob$,ann@x.y",
		"größe:x:1:jürgen":                    "größe=jürgen",
		"ok:x:1:\nstaff:x:ann":                `line 2: "staff:x:ann" has 2 colons, want 3`,
		"staff:x:1:ann:":                      "line 1: \"staff:x:1:ann:\" has 4 colons",
		"staff: ann bob":                      "has 1 colons",
		":x:1:ann":                            `line 1: group name "": want`,
		"domain users:x:1:ann":                `group name "domain users": want`,
		"staff:x:1:ann, bob":                  `line 1: group staff: user name " bob": want`,
		"staff:x:1:ann,":                      `user name "": want`,
		"staff:x:1:ann\r\n":                   `user name "ann\r": want`,
		"*:x:1:ann":                           `group name "*": want`,
		"staff:x:1:*":                         `user name "*": want`,
		"+::::":                               "has 4 colons",
		"staff:x:1:a\xffb":                    `user name "a\xffb": want`,
		"staff:x:1:a\u202eb":                  `user name "a\u202eb": want`, // would print backwards
		strings.Repeat("#", maxFile+1):        "longer than 8388608 bytes",
	} {
		table, err := Parse([]byte(text))
		var got []string
		for _, name := range table.Names() {
			got = append(got, name+"="+strings.Join(table.users[name], ","))
		}
		shown := strings.Join(got, " ")
		if err != nil {
			shown = err.Error()
		}
		if shown != want && (err == nil || !strings.Contains(shown, want)) {
			t.Errorf("%.60q: %s, want %s", text, shown, want)
		}
	}
	if (*Table)(nil).Has("staff", "ann") || (*File)(nil).Table() != nil {
		t.Error("no file, but a member")
	}
}

// dumbHas looks for a user in the text of a valid file.
func dumbHas(text, group, user string) bool {
	for _, line := range strings.Split(text, "\n") {
		fields := strings.Split(line, ":")
		if !strings.HasPrefix(line, "#") && fields[0] == group && slices.Contains(strings.Split(fields[len(fields)-1], ","), user) {
			return true
		}
	}
	return false
}

// TestHas compares Has with a search in the text.
func TestHas(t *testing.T) {
	names := []string{"a", "b", "ann", "bob", "x.y", "ann2"}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(0, 8).Draw(t, "lines") {
			users := rapid.SliceOfN(rapid.SampledFrom(names), 0, 4).Draw(t, "users")
			comment := rapid.SampledFrom([]string{"", "", "#", "\n"}).Draw(t, "comment")
			fmt.Fprintf(&text, "%s%s:x:7:%s\n", comment, rapid.SampledFrom(names).Draw(t, "group"), strings.Join(users, ","))
		}
		table, err := Parse([]byte(text.String()))
		if err != nil {
			t.Fatalf("%q: %v", text.String(), err)
		}
		for _, group := range names {
			for _, user := range append(names, "") {
				if got, want := table.Has(group, user), user != "" && dumbHas(text.String(), group, user); got != want {
					t.Fatalf("%q: %s in %s is %v", text.String(), user, group, got)
				}
			}
		}
	})
}

// FuzzParse: whatever the file has, it takes memory in proportion to its size. A good file has only
// names that an ACL can have.
func FuzzParse(f *testing.F) {
	f.Add("root:x:0:\nstaff:x:50:ann,bob\n# comment\n\nempty:::\n")
	f.Add("a:::b,b,b,b,b,b,b,b\na:::c\n")
	f.Add(strings.Repeat("a:::\n", 1000))
	f.Add(strings.Repeat("a:::b\n", 1000))
	f.Add("a::b")
	f.Add("a:::" + strings.Repeat("b,", 5000))
	f.Fuzz(func(t *testing.T, text string) {
		var table *Table
		var err error
		membound.Bound{Free: 1 << 16, PerByte: 128}.Check(t, len(text), func() { table, err = Parse([]byte(text)) })
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") && len(text) <= maxFile {
				t.Fatalf("%v names no line", err)
			}
			return
		}
		for _, group := range table.Names() {
			for _, name := range append([]string{group}, table.users[group]...) {
				if wire.CheckACLName(name) != nil {
					t.Fatalf("%q has the name %q", text, name)
				}
			}
			if a, err := wire.ParseACL(" " + group); err != nil || len(a.Groups) != 1 || a.Groups[0] != group {
				t.Fatalf("an ACL cannot name %q: %v", group, err)
			}
		}
	})
}

// TestReload: a changed file and one that is replaced by a rename have effect. A bad or missing one
// keeps the last good groups, and is logged once with its line.
func TestReload(t *testing.T) {
	name := filepath.Join(t.TempDir(), "groups")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name+".new", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(name+".new", name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(name, nil); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("a missing file: %v", err)
	}
	write("staff:x:1:ann, bob\n")
	if _, err := Open(name, nil); err == nil || !strings.Contains(err.Error(), name+": line 1: group staff: user name") {
		t.Errorf("a bad file: %v", err)
	}
	write("staff:x:1:ann\n")
	var logged bytes.Buffer
	f, err := Open(name, slog.New(slog.NewTextHandler(&logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	has := func(users ...string) {
		t.Helper()
		f.look()
		f.look()
		for _, user := range []string{"ann", "bob"} {
			if f.Table().Has("staff", user) != slices.Contains(users, user) {
				t.Errorf("%s in staff is %v\n%s", user, f.Table().Has("staff", user), &logged)
			}
		}
	}
	has("ann")
	write("staff:x:1:bob\n") // of the same size
	has("bob")
	for _, part := range []string{"staff:x:1:bob\nstaff\n", "", "staff:x:1:ann", "staff:x:1:bob\nadmins:x:2:ann"} { // of ann2
		write(part)
		has("bob")
		if f.Table().Has("admins", "ann") {
			t.Errorf("a part of a name is used: %q", part)
		}
	}
	os.Remove(name)
	has("bob")
	write("staff:x:1:bob\n")
	has("bob")
	if err := os.Chmod(name, 0o666); err != nil {
		t.Fatal(err)
	}
	has("bob")
	if err := os.WriteFile(name, []byte("other:x:1:bob\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	has()
	for text, want := range map[string]int{"new groups": 2, "line 2": 1, "is empty": 1, "no newline": 1, "no such file": 1, "all users can write": 1, "the groups stay": 5} {
		if n := strings.Count(logged.String(), text); n != want {
			t.Errorf("%q is logged %d times, want %d:\n%s", text, n, want, &logged)
		}
	}
}

// lines is a log handler's writer that passes on each line.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// TestWatch: a replaced file is found without a request.
func TestWatch(t *testing.T) {
	name := filepath.Join(t.TempDir(), "groups")
	if err := os.WriteFile(name, []byte("staff:x:1:ann\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	logged := make(lines, 100)
	f, err := Open(name, slog.New(slog.NewTextHandler(logged, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.Watch(ctx, time.Millisecond)
	}()
	if err := os.WriteFile(name+".new", []byte("staff:x:1:bob\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
	if line := <-logged; !strings.Contains(line, "new groups") || f.Table().Has("staff", "ann") || !f.Table().Has("staff", "bob") {
		t.Errorf("the table is %v after %s", f.Table(), line)
	}
	cancel()
	<-done
	if Period > 4*time.Second {
		t.Errorf("a change is found after %v, want at most 5 s", Period)
	}
}
