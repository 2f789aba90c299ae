package identity

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDenyListChanges: new entries act at once. Entries that are gone stay until the list has not changed for some time, so
// that a list which is read while it is written lifts nothing. If a list is broken, the old one stays in use.
func TestDenyListChanges(t *testing.T) {
	dir := issue(t, t.TempDir(), Peer{TaskTracker, "tt1"}, time.Now(), time.Now().Add(day))
	name := filepath.Join(dir, DeniedFile)
	clock := time.Now()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, clock, clock); err != nil {
			t.Fatal(err)
		}
	}
	write("client alice\nclient bob\n")
	id := load(t, dir, TaskTracker)
	var logged bytes.Buffer
	id.log, id.now = slog.New(slog.NewTextHandler(&logged, nil)), func() time.Time { return clock }
	want := func(after time.Duration, names string) {
		t.Helper()
		clock = clock.Add(after)
		id.current()
		var denied []string
		for _, user := range []string{"alice", "bob", "carl"} {
			if id.denies(Peer{Client, user}, id.pair.Leaf.SerialNumber) != nil {
				denied = append(denied, user)
			}
		}
		if got := strings.Join(denied, " "); got != names {
			t.Errorf("denied are %s, want %s", got, names)
		}
	}
	want(checkPeriod, "alice bob")
	for range 2 {
		write("nonsense\n")
		want(checkPeriod, "alice bob")
	}
	if n := strings.Count(logged.String(), "cannot be used"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, &logged)
	}
	for _, part := range []string{"", "client c", "client carl"} { // a list that is being written
		write(part)
		want(checkPeriod, "alice bob")
	}
	write("client carl\n")
	want(checkPeriod, "alice bob carl")
	write("client carl\nclient bob\n")
	want(checkPeriod, "alice bob carl")
	want(settleTime, "bob carl")
	write("# none\n")
	want(settleTime, "") // it has not changed for long when it is seen
	write("client alice\n")
	want(checkPeriod, "alice")
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(dir, clock, clock); err != nil {
		t.Fatal(err)
	}
	want(checkPeriod, "alice")
	if err := os.Chtimes(dir, clock.Add(time.Hour), clock.Add(time.Hour)); err != nil { // by another clock
		t.Fatal(err)
	}
	want(checkPeriod, "alice")
	want(settleTime, "")
}
