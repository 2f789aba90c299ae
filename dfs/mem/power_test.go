package mem

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/quernmr/quern/dfs"
)

// TestPowerCut checks that synced data survives every power cut. Other data may be lost,
// but renames stay atomic and each name's changes stay in order.
func TestPowerCut(t *testing.T) {
	seen := make(map[string]bool)
	for seed := range uint64(300) {
		f := New(1)
		ok := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		at := func(name string) string { return "mem://t/" + name }
		size := func(name string) int64 {
			info, err := f.Stat(at(name))
			if errors.Is(err, fs.ErrNotExist) {
				return -1
			}
			ok(err)
			return info.Size
		}
		ok(f.MkdirAll(at("a")))
		ok(f.MkdirAll(at("b")))
		ok(create(f, at("a/old"), "old"))
		f.Settle()

		ok(f.MkdirAll(at("deep/deeper")))
		ok(create(f, at("a/synced"), "synced"))
		ok(f.SyncDir(at("a")))
		ok(create(f, at("a/name"), "12345678"))
		ok(f.RenameFile(at("a/name"), at("b/name")))
		ok(f.RenameFile(at("a/old"), at("b/old")))
		w, err := dfs.Volatile(f).Create(at("b/short"))
		ok(err)
		_, err = w.Write([]byte("12345678"))
		ok(err)
		ok(w.Close())
		synced := seed%2 == 0
		if synced {
			ok(f.SyncDir(at("b")))
		}
		f.PowerCut(rand.New(rand.NewPCG(seed, 0)))

		must := func(property string, holds bool) {
			t.Helper()
			if !holds {
				t.Fatalf("seed %d: %s", seed, property)
			}
			seen[property] = true
		}
		may := func(property string, holds bool) { seen[property] = seen[property] || holds }
		must("directories that MkdirAll made", size("deep/deeper") == 0)
		must("a synced file in a synced directory", size("a/synced") == 6)
		must("a rename is in both directories or neither", (size("a/old") < 0) != (size("b/old") < 0))
		must("content is durable where the name is", size("a/name") < 0 || size("a/name") == 8)
		must("no name twice", size("a/name") < 0 || size("b/name") < 0)
		must("a synced directory has all", !synced || size("b/name") == 8 && size("b/old") == 3 && size("b/short") >= 0)
		may("a name survives unsynced", !synced && size("b/name") >= 0)
		may("a name is lost", !synced && size("a/name") < 0 && size("b/name") < 0)
		may("a rename is lost, not what came before", !synced && size("a/name") == 8)
		may("a later change survives an earlier one", !synced && size("b/old") >= 0 && size("b/name") < 0)
		may("unsynced content is cut short", size("b/short") >= 0 && size("b/short") < 8)
		may("unsynced content survives", size("b/short") == 8)
	}
	for property, was := range seen {
		if !was {
			t.Errorf("never: %s", property)
		}
	}
}

// TestPowerCutOfRemoval checks that a tree is removed name by name, and that a synced
// removal is permanent.
func TestPowerCutOfRemoval(t *testing.T) {
	var remaining []int
	for seed := range uint64(200) {
		f := New(1)
		if err := errors.Join(f.MkdirAll("mem://t/a/b"), create(f, "mem://t/a/b/c", "c"), create(f, "mem://t/a/d", "d")); err != nil {
			t.Fatal(err)
		}
		f.Settle()
		if err := f.RemoveAll("mem://t/a"); err != nil {
			t.Fatal(err)
		}
		if seed%2 == 0 {
			if err := f.SyncDir("mem://t/"); err != nil {
				t.Fatal(err)
			}
		}
		f.PowerCut(rand.New(rand.NewPCG(seed, 0)))
		infos, err := f.List("mem://t/a")
		if there := err == nil; there && seed%2 == 0 {
			t.Fatalf("seed %d: the tree is back", seed)
		} else if there {
			remaining = append(remaining, len(infos))
		}
	}
	slices.Sort(remaining)
	if remaining = slices.Compact(remaining); len(remaining) != 3 {
		t.Errorf("directories with %v entries were left, want 0, 1 and 2", remaining)
	}
}
