package replica

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"
	"pgregory.net/rapid"
)

func segmentInfo(base uint64) types.SegmentInfo {
	return types.SegmentInfo{ID: 1, BaseIndex: base, MinIndex: base, Codec: codecID}
}

// TestStoreLikeAMap compares the store with a map, and opens it again at random times.
func TestStoreLikeAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{ID: "jt1", Dir: tempDir(t), Listen: "127.0.0.1:0", segmentSize: rapid.SampledFrom([]int{128, 512, 4096}).Draw(t, "segment")}
		if err := cfg.complete(); err != nil {
			t.Fatal(err)
		}
		s, _, err := openState(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { s.close() }()
		m := storeModel{entries: make(map[uint64]string)}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			m.step(t, s)
			if rapid.IntRange(0, 4).Draw(t, "reopen") == 0 {
				s.close()
				if s, _, err = openState(&cfg); err != nil {
					t.Fatal(err)
				}
			}
			m.check(t, s)
		}
	})
}

// storeModel is the expected content of a store: entries first to last, or none if they are 0.
type storeModel struct {
	entries     map[uint64]string
	first, last uint64
	term        uint64
}

func (m *storeModel) step(t *rapid.T, s *store) {
	var err error
	switch op := rapid.SampledFrom([]string{"append", "append", "append", "cut end", "term"}).Draw(t, "op"); op {
	case "append":
		var logs []*raft.Log
		for range rapid.IntRange(1, 8).Draw(t, "number") {
			m.last++
			if m.first == 0 {
				m.first = m.last
			}
			m.entries[m.last] = fmt.Sprint(rapid.IntRange(0, 1<<30).Draw(t, "data"))
			logs = append(logs, &raft.Log{Index: m.last, Term: 1, Data: []byte(m.entries[m.last])})
		}
		err = s.StoreLogs(logs)
	case "cut end":
		if m.last <= m.first {
			return
		}
		from := rapid.Uint64Range(m.first+1, m.last).Draw(t, "from")
		err = s.DeleteRange(from, m.last)
		for i := from; i <= m.last; i++ {
			delete(m.entries, i)
		}
		m.last = from - 1
	case "term":
		m.term++
		err = s.SetUint64([]byte("CurrentTerm"), m.term)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m *storeModel) check(t *rapid.T, s *store) {
	first, err1 := s.FirstIndex()
	last, err2 := s.LastIndex()
	term, err3 := s.GetUint64([]byte("CurrentTerm"))
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	if first != m.first || last != m.last || term != m.term {
		t.Fatalf("has entries %d to %d, term %d; not %d to %d, %d", first, last, term, m.first, m.last, m.term)
	}
	for i, want := range m.entries {
		var l raft.Log
		if err := s.GetLog(i, &l); err != nil || string(l.Data) != want || l.Index != i {
			t.Fatalf("entry %d: %d %q %v, not %q", i, l.Index, l.Data, err, want)
		}
	}
	var l raft.Log
	if err := s.GetLog(m.last+1, &l); err != raft.ErrLogNotFound {
		t.Fatalf("entry %d after the last: %v", m.last+1, err)
	}
}

func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "quern-replica-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// TestEntryAtAnotherPlace checks that an entry is refused at the place of another one.
func TestEntryAtAnotherPlace(t *testing.T) {
	var data bytes.Buffer
	if err := (checkedCodec{}).Encode(&raft.Log{Index: 5, Term: 1, Data: []byte("entry")}, &data); err != nil {
		t.Fatal(err)
	}
	for index := range uint64(10) {
		if err := checkEntry(data.Bytes(), index); (err == nil) != (index == 5) {
			t.Errorf("entry 5 at the place of %d: %v", index, err)
		}
	}
}

// TestNothingAfterFailure checks that a store takes no entries after a failure: the disk may have
// lost some before them.
func TestNothingAfterFailure(t *testing.T) {
	cfg := Config{ID: "jt1", Dir: t.TempDir(), Listen: "127.0.0.1:0"}
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	s, _, err := openState(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	failure := errors.New("sync: input/output error")
	s.fail(failure)
	if err := s.StoreLog(&raft.Log{Index: 1, Term: 1}); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	if last, err := s.LastIndex(); err != nil || last != 0 {
		t.Errorf("the last entry is %d: %v", last, err)
	}
}
