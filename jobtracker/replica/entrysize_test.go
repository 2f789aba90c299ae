package replica

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// TestLongProposals: proposals that are too long are refused, and later ones are committed.
func TestLongProposals(t *testing.T) {
	t.Parallel()
	if MaxEntry > maxReadable/2 {
		t.Errorf("%d bytes are proposed, and %d can be read back", MaxEntry, maxReadable)
	}
	g := newGroup(t, 1, func(c *Config) { c.maxEntry = 1000 })
	n := g.leader()
	n.Propose("a key", make([]byte, 1001))
	n.await("the refusal", func() bool { return len(n.refused) > 0 })
	if r := n.refused[0]; r.Key != "a key" || r.Err.Error() != `log entry "a key" has 1001 bytes, at most 1000` {
		t.Errorf("refused: %+v", r)
	}
	g.commit(strings.Repeat("x", 1000))
	if len(n.refused) > 1 || n.has(string(make([]byte, 1001))) {
		t.Errorf("%d are refused, %d entries", len(n.refused), len(n.applied))
	}
}

// TestUnwrittenEntries: the codec refuses entries that raft-wal could not read back. A leader of an
// earlier build may send such entries.
func TestUnwrittenEntries(t *testing.T) {
	codec, entry := checkedCodec{limit: 100}, &raft.Log{Index: 7}
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

// writeLong writes a log as an earlier build would. It has two submissions: a short one with the
// key before, and one with a long argument.
func writeLong(t *testing.T, cfg Config, segmentSize int, before, argument string) {
	t.Helper()
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	cfg.segmentSize, cfg.readLimit = segmentSize, math.MaxInt
	s, snaps, err := openState(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	raftCfg := raft.DefaultConfig()
	raftCfg.LocalID = raft.ServerID(cfg.ID)
	_, trans := raft.NewInmemTransport(raft.ServerAddress(cfg.Listen))
	defer trans.Close()
	if err := raft.BootstrapCluster(raftCfg, s, s, snaps, trans, raft.Configuration{
		Servers: []raft.Server{{ID: raftCfg.LocalID, Address: raft.ServerAddress(cfg.Listen)}},
	}); err != nil {
		t.Fatal(err)
	}
	c, index := core.New(core.Config{ID: cfg.ID, Staging: "mem://s/staging"}), uint64(1)
	var step func(ev core.Event)
	step = func(ev core.Event) {
		for _, cmd := range c.Step(0, ev) {
			if p, ok := cmd.(core.Propose); ok {
				index++
				if err := s.StoreLog(&raft.Log{Index: index, Term: 1, Type: raft.LogCommand, Data: p.Data}); err != nil {
					t.Fatal(err)
				}
				step(core.Entry{Index: index, Term: 1, Data: p.Data})
			}
		}
	}
	submit := func(key, argument string) {
		step(core.Submit{Wall: 8, Submission: &wire.Submission{
			Key: key, Staging: "mem://s/staging/" + key, Program: wire.Program{Args: []string{argument}},
			Plan: wire.Plan{Jobs: []wire.JobPlan{{Name: "count", Reduces: 1}}},
		}})
	}
	step(core.Elected{Term: 1, Wall: 7})
	submit(before, "")
	submit("long", argument)
}

// freeAddress returns an address at which no process listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", loopback())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestUnreadable: Open refuses a log with an entry that is too long to be read back. The command
// in the error recovers the whole log.
func TestUnreadable(t *testing.T) {
	for name, c := range map[string]struct {
		argument int // bytes
		segment  int
		readable int // 0: raft-wal's own limit
	}{
		"in a full segment":     {10_000, 8192, 9000},
		"in the last segment":   {10_000, 1 << 20, 9000},
		"longer than 64 MiB":    {maxReadable, 8 << 20, 0},
		"in the last, 1 MiB":    {1 << 20, 4 << 20, 1 << 20},
		"in a full one, 65 KiB": {65 << 10, 4096, 65 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{ID: "jt1", Dir: t.TempDir(), Listen: freeAddress(t)}
			writeLong(t, cfg, c.segment, "before", strings.Repeat("x", c.argument))
			cfg.readLimit = c.readable
			_, err := Open(cfg)
			if !errors.Is(err, ErrUnreadable) {
				t.Fatalf("opened: %v", err)
			}
			text := err.Error()
			file := text[strings.Index(text, cfg.Dir):]
			file, _, _ = strings.Cut(file, " ")
			if _, err := os.Stat(file); err != nil || filepath.Ext(file) != ".wal" {
				t.Errorf("the error names no file: %s", text)
			}
			for _, want := range []string{"entry ", fmt.Sprintf("has %d", c.argument/10_000), "jobtracker recover"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q lacks %q", text, want)
				}
			}

			if err := Recover(cfg.Dir, cfg.ID, cfg.Listen); err != nil {
				t.Fatal(err)
			}
			if c.readable == 0 {
				return // save time: the smaller cases check the rest
			}
			files := mem.New(1 << 20)
			alone := serve(t, cfg, files)
			for i, key := range []string{"before", "long", "after"} {
				if id := submit(t, []*server{alone}, key); id != (wire.JobID{Start: 7, N: i + 1}) {
					t.Errorf("%s is %v afterwards", key, id)
				}
			}
			alone.end(t)
			serve(t, cfg, files)
		})
	}
}
