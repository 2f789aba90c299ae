package client

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKnownDigests: a file that is as recorded is not read again. Any change is noticed, also if its writer sets the time of
// the last write back.
func TestKnownDigests(t *testing.T) {
	k := knownDigests{filepath.Join(t.TempDir(), "cache", "digests"), settleTime}
	exe := filepath.Join(t.TempDir(), "job")
	long := time.Now().Add(-time.Hour)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(exe, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(exe, long, long); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what, text string) {
		t.Helper()
		sum := sha256.Sum256([]byte(text))
		hash, size, err := k.hash(exe)
		if want := hex.EncodeToString(sum[:]); hash != want || size != int64(len(text)) || err != nil {
			t.Errorf("%s: %s, %d, %v; want %s", what, hash, size, err, want)
		}
	}
	write("first")
	check("new", "first")
	if lines := k.lines(); len(lines) != 0 {
		t.Errorf("recorded %q, although the file has just changed", lines)
	}
	recordAs := func(text string) {
		info, err := os.Stat(exe)
		if err != nil {
			t.Fatal(err)
		}
		identity, changed := identify(info)
		if time.Since(changed) > time.Minute {
			t.Fatalf("changed at %v, not when it was written", changed)
		}
		sum := sha256.Sum256([]byte(text))
		k.record(hex.EncodeToString(sum[:]), identity)
	}
	recordAs("other") // to see that the line is used
	hash, size, err := k.hash(exe)
	if sum := sha256.Sum256([]byte("other")); hash != hex.EncodeToString(sum[:]) || size != 5 || err != nil {
		t.Errorf("recorded: %s, %d, %v", hash, size, err)
	}
	for range 100_000 { // until the clock of the file system goes on
		if write("third"); k.find(identityOf(t, exe)) == "" {
			break
		}
	}
	check("changed, with the same size and time of the last write", "third")
	exe = filepath.Join(t.TempDir(), "missing")
	if _, _, err := k.hash(exe); err == nil || !strings.Contains(err.Error(), exe) {
		t.Errorf("missing: %v", err)
	}
}

func identityOf(t *testing.T, name string) string {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	identity, _ := identify(info)
	return identity
}

// TestSettledDigests: a settled file is recorded, at most maxDigests are kept, and a broken file is replaced.
func TestSettledDigests(t *testing.T) {
	k := knownDigests{filepath.Join(t.TempDir(), "digests"), -time.Hour}
	if err := os.WriteFile(k.name, []byte("broken\n"+strings.Repeat("0", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	settled := filepath.Join(t.TempDir(), "job")
	if err := os.WriteFile(settled, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(settled)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	hash, _, err := k.hash(settled)
	if hash != hex.EncodeToString(sum[:]) || err != nil || k.find(identityOf(t, settled)) != hash {
		t.Errorf("%s, %v; recorded %q", hash, err, k.lines())
	}
	for i := range 2 * maxDigests {
		k.record(hash, fmt.Sprint(i))
	}
	lines := k.lines()
	if last := fmt.Sprintf("%s %d\n", hash, 2*maxDigests-1); len(lines) != maxDigests || lines[0] != last {
		t.Errorf("%d lines, the first is %q", len(lines), lines[0])
	}
	if info, err := os.Stat(k.name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	nowhere := knownDigests{}
	if again, size, err := nowhere.hash(settled); again != hash || size != int64(len(data)) || err != nil {
		t.Errorf("without a cache: %s, %d, %v", again, size, err)
	}
}
