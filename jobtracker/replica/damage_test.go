package replica

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft-wal/segment"

	"github.com/quernmr/quern/internal/membound"
)

// savedState has the files of a killed replica: a snapshot, and segments with later entries.
type savedState struct {
	cfg     Config
	entries []string
	files   map[string][]byte // by path below cfg.Dir
}

func writeState(t *testing.T) *savedState {
	t.Helper()
	n := open(t, Config{ID: "jt1", Dir: t.TempDir(), segmentSize: 2048, TrailingEntries: 10})
	if err := n.Bootstrap([]Voter{{"jt1", n.Addr()}}); err != nil {
		t.Fatal(err)
	}
	g := &group{t: t, nodes: []*node{n}}
	for i := range 60 {
		g.commit(fmt.Sprint("entry ", i, strings.Repeat("x", i)))
		if i == 30 {
			n.snapshot(n.instance())
		}
	}
	n.crash()
	w := &savedState{cfg: n.cfg, entries: n.list(), files: make(map[string][]byte)}
	if err := filepath.WalkDir(n.cfg.Dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		below, _ := filepath.Rel(n.cfg.Dir, path)
		w.files[below] = data
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return w
}

// restore writes a copy of the state to a new directory.
func (w *savedState) restore(t *testing.T) Config {
	t.Helper()
	cfg := w.cfg
	cfg.Dir = t.TempDir()
	for name, data := range w.files {
		path := filepath.Join(cfg.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cfg
}

func (w *savedState) names(match string) []string {
	var names []string
	for name := range w.files {
		if ok, _ := filepath.Match(match, name); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// lastSegment returns the name of the segment that was written last.
func (w *savedState) lastSegment() string {
	segments := w.names("*.wal")
	return segments[len(segments)-1]
}

// writtenEnd returns the offset after the last write in a segment.
func writtenEnd(data []byte) int { return lastWord(data, 0) }

// TestDamage: Open refuses damaged state, and the error names the file. Row 8 of docs/promises.md.
func TestDamage(t *testing.T) {
	t.Parallel()
	w := writeState(t)
	snapshot := w.names("snapshots/*/state.bin")[0]
	sealed := w.names("*.wal")[0]
	if sealed == w.lastSegment() {
		t.Fatal("there is only one segment")
	}
	flip := func(name string, at int) func([]byte) []byte {
		return func(data []byte) []byte { data[at] ^= 0x10; return data }
	}
	half := func(data []byte) []byte { return data[:len(data)/2] }
	removed := func([]byte) []byte { return nil }
	for name, c := range map[string]struct {
		file   string
		change func([]byte) []byte
	}{
		"flipped bit in a full segment":     {sealed, flip(sealed, 1000)},
		"full segment cut off":              {sealed, half},
		"full segment gone":                 {sealed, removed},
		"flipped bit in the last segment":   {w.lastSegment(), flip(w.lastSegment(), segmentHeader+20)},
		"last segment cut off":              {w.lastSegment(), func(data []byte) []byte { return data[:writtenEnd(data)/2] }},
		"flipped bit in a snapshot":         {snapshot, flip(snapshot, 30)},
		"snapshot cut off":                  {snapshot, half},
		"snapshot gone":                     {snapshot, removed},
		"snapshot's description cut off":    {filepath.Dir(snapshot) + "/meta.json", half},
		"list of segments gone":             {"wal-meta.db", removed},
		"list of segments cut off":          {"wal-meta.db", func(data []byte) []byte { return data[:5000] }},
		"list of segments filled with ones": {"wal-meta.db", func(data []byte) []byte { return bytes.Repeat([]byte{0xff}, len(data)) }},
		"zeros in the middle of a segment":  {w.lastSegment(), func(data []byte) []byte { clear(data[300:600]); return data }},
		"snapshot of another version":       {snapshot, func(data []byte) []byte { data[3]++; return data }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := w.restore(t)
			path := filepath.Join(cfg.Dir, c.file)
			data := c.change(bytes.Clone(w.files[c.file]))
			if data == nil {
				os.Remove(path)
			} else if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := tryOpen(t, cfg)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("opened with %v", err)
			}
		})
	}
}

// TestSnapshotsGone: Open refuses a log without the entries that only a snapshot had.
func TestSnapshotsGone(t *testing.T) {
	t.Parallel()
	cfg := writeState(t).restore(t)
	if err := os.RemoveAll(filepath.Join(cfg.Dir, "snapshots")); err != nil {
		t.Fatal(err)
	}
	if _, err := tryOpen(t, cfg); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "no snapshot has them") {
		t.Errorf("opened with %v", err)
	}
}

// TestTornTail: Open drops a torn write, and keeps the entries before it.
func TestTornTail(t *testing.T) {
	t.Parallel()
	w := writeState(t)
	tail := w.files[w.lastSegment()]
	last := w.entries[len(w.entries)-1]
	begin := bytes.LastIndex(tail, []byte(last)) - 2*frameHeader
	for name, c := range map[string]struct {
		change func(data []byte)
		lost   int
	}{
		"nothing":                        {func([]byte) {}, 0},
		"the beginning of another entry": {func(data []byte) { copy(data[writtenEnd(data):], "\x01\x00\x00\x00\x40\x00\x00\x00some") }, 0},
		"the last entry without its end": {func(data []byte) { clear(data[begin+40:]) }, 1},
		"the last entry's first 8 bytes": {func(data []byte) { clear(data[begin+8:]) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := w.restore(t)
			data := bytes.Clone(tail)
			c.change(data)
			if err := os.WriteFile(filepath.Join(cfg.Dir, w.lastSegment()), data, 0o600); err != nil {
				t.Fatal(err)
			}
			n := open(t, cfg)
			g := &group{t: t, nodes: []*node{n}}
			g.commit("after")
			want := append(slices.Clone(w.entries[:len(w.entries)-c.lost]), "after")
			got := slices.Compact(n.list()) // commit proposes an undecided entry again
			if !slices.Equal(got, want) {
				t.Errorf("has %q, not %q", got, want)
			}
			n = n.reopen()
			n.awaitEntry("after")
		})
	}
}

// TestEachFlippedBit: if any bit of a segment or a snapshot is flipped, the state is refused or has
// the same entries.
func TestEachFlippedBit(t *testing.T) {
	t.Parallel()
	w := writeState(t)
	cfg := w.restore(t)
	state, err := loadMeta(cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range state.Segments {
		name := segment.FileName(info)
		data := w.files[name]
		before, err := scanSegment(name, data, info)
		if err != nil {
			t.Fatal(err)
		}
		for at := range writtenEnd(data) {
			for _, bit := range []int{at % 8, (at + 3) % 8} {
				data[at] ^= 1 << bit
				after, err := scanSegment(name, data, info)
				if err == nil && !slices.Equal(after.entries, before.entries) {
					t.Errorf("%s: bit %d of byte %d flipped: %d entries of %d", name, bit, at, len(after.entries), len(before.entries))
				}
				data[at] ^= 1 << bit
			}
		}
	}
	snapshots, err := listSnapshots(cfg.Dir)
	if err != nil || len(snapshots) != 1 {
		t.Fatal(snapshots, err)
	}
	path := filepath.Join(snapshots[0].path, "state.bin")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := range data {
		data[at] ^= 4
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := verifySnapshot(snapshots[0]); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d of the snapshot changed: %v", at, err)
		}
		data[at] ^= 4
	}
}

func FuzzSegment(f *testing.F) {
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{1, 0, 0, 0, 8, 0, 0, 0}, 20))
	f.Fuzz(func(t *testing.T, data []byte) {
		var s scan
		var err error
		membound.Bound{Free: 1 << 20, PerByte: 64}.Check(t, len(data), func() { s, err = scanSegment("segment", data, segmentInfo(1)) })
		if err == nil && (s.end > len(data) || s.leftover > len(data)) {
			t.Errorf("found %+v in %d bytes", s, len(data))
		}
	})
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte("\x01\x01\x00\x03abc\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		membound.Bound{Free: 1 << 20, PerByte: 64}.Check(t, len(data), func() { checkEntry(data, 1) }) // any error is fine
	})
}
