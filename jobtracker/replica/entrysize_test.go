package replica

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// TestLongProposals: what could not be read back is not written. The log goes on.
func TestLongProposals(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 1, nil)
	n := g.leader()
	n.Propose("a key", make([]byte, MaxEntry+1))
	n.await("the refusal", func() bool { return len(n.refused) > 0 })
	if r := n.refused[0]; r.Key != "a key" || r.Err.Error() != `log entry "a key" has 16777217 bytes, at most 16777216` {
		t.Errorf("refused: %+v", r)
	}
	longest := strings.Repeat("x", MaxEntry)
	n.Propose("another key", []byte(longest))
	n.await("the longest entry", func() bool { return n.has(longest) })
	n.crash()
	again := open(t, n.cfg)
	again.await("the longest entry, read back", func() bool { return again.has(longest) })
	if len(again.refused) > 0 || len(again.applied) != 1 {
		t.Errorf("%d entries", len(again.applied))
	}
}

// TestUnwrittenEntries: the codec writes nothing that raft-wal cannot read, as a leader of an
// earlier build could send it.
func TestUnwrittenEntries(t *testing.T) {
	codec, entry := checkedCodec{most: 100}, &raft.Log{Index: 7}
	var short strings.Builder
	if err := codec.Encode(entry, &short); err != nil {
		t.Fatal(err)
	}
	entry.Data = make([]byte, 100-short.Len())
	if err := codec.Encode(entry, &short); err != nil {
		t.Errorf("100 bytes: %v", err)
	}
	entry.Data = make([]byte, len(entry.Data)+1)
	if err := codec.Encode(entry, &short); !errors.Is(err, ErrUnreadable) || !strings.Contains(err.Error(), "entry 7 has 101 bytes, at most 100") {
		t.Errorf("101 bytes: %v", err)
	}
}

// TestUnreadable: a log with an entry that is too long to be read back says so when it is
// opened, and how to go on, and that works: nothing of it is lost.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		argument int // bytes of it
		segment  int
		readable int // 0: raft-wal's own bound
	}{
		"in a full segment":     {10_000, 8192, 9000},
		"in the last segment":   {10_000, 1 << 20, 9000},
		"longer than 64 MiB":    {maxReadable, 8 << 20, 0},
		"in the last, 1 MiB":    {1 << 20, 4 << 20, 1 << 20},
		"in a full one, 65 KiB": {65 << 10, 4096, 65 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			files := mem.New(1 << 20)
			cfg := Config{ID: "jt1", Dir: t.TempDir(), segmentSize: c.segment, maxEntry: math.MaxInt, readable: math.MaxInt, SnapshotBytes: math.MaxInt64}
			earlier := serve(t, cfg, files)
			if err := earlier.replica.Bootstrap([]Voter{{"jt1", earlier.replica.Addr()}}); err != nil {
				t.Fatal(err)
			}
			before := submit(t, []*server{earlier}, "before")
			ids, err := earlier.Submit(t.Context(), wire.Submission{
				Key: "long", Staging: "mem://s/staging/long", Program: wire.Program{Args: []string{strings.Repeat("x", c.argument)}},
				Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "long"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			cfg = earlier.cfg
			cfg.Dir = t.TempDir() // as a kill leaves it, without a last snapshot
			if err := os.CopyFS(cfg.Dir, os.DirFS(earlier.cfg.Dir)); err != nil {
				t.Fatal(err)
			}
			earlier.end(t)

			cfg.maxEntry, cfg.readable = 0, c.readable
			_, err = Open(cfg)
			if !errors.Is(err, ErrUnreadable) {
				t.Fatalf("opened: %v", err)
			}
			said := err.Error()
			file := said[strings.Index(said, cfg.Dir):]
			file, _, _ = strings.Cut(file, " ")
			if _, err := os.Stat(file); err != nil || filepath.Ext(file) != ".wal" {
				t.Errorf("no file is named: %s", said)
			}
			for _, want := range []string{"entry ", fmt.Sprintf("has %d", c.argument/10_000), "mrsubmit cluster recover"} {
				if !strings.Contains(said, want) {
					t.Errorf("%q does not say %q", said, want)
				}
			}

			if err := Recover(cfg.Dir, cfg.ID, cfg.Listen); err != nil {
				t.Fatal(err)
			}
			alone := serve(t, cfg, files)
			if again := submit(t, []*server{alone}, "before"); again != before {
				t.Errorf("%v is known as %v afterwards", before, again)
			}
			if again := submit(t, []*server{alone}, "long"); again != ids[0] {
				t.Errorf("%v is known as %v afterwards", ids[0], again)
			}
			submit(t, []*server{alone}, "after")
			alone.end(t)
			serve(t, cfg, files)
		})
	}
}
