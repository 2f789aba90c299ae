package gossip

import (
	"bytes"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/memberlist"
)

func keyOf(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// keyFile is the keys of a process, which a test changes.
type keyFile struct {
	keys  atomic.Pointer[[][]byte]
	reads chan struct{}
}

func newKeyFile(keys ...[]byte) *keyFile {
	f := &keyFile{reads: make(chan struct{})}
	f.keys.Store(&keys)
	return f
}

func (f *keyFile) read() ([][]byte, error) {
	keys := *f.keys.Load()
	select {
	case f.reads <- struct{}{}:
	default:
	}
	if keys == nil {
		return nil, errors.New("the file is broken")
	}
	return keys, nil
}

// change changes the keys, and waits until they are in use: after a read that may be older than the
// change, and the next read, a third one begins.
func (f *keyFile) change(t *testing.T, keys [][]byte) {
	t.Helper()
	f.keys.Store(&keys)
	for range 3 {
		select {
		case <-f.reads:
		case <-time.After(deadline):
			t.Fatal("the keys are not read")
		}
	}
}

// TestKeysRollOver: two processes get a new key in three steps, one process after the other. They
// stay members of each other. In the end the old key is useless.
func TestKeysRollOver(t *testing.T) {
	before, after := keyOf(7), keyOf(8)
	files := []*keyFile{newKeyFile(before), newKeyFile(before)}
	begin := func(cfg Config, f *keyFile) *process {
		cfg.Keys, cfg.rekey = f.read, 20*time.Millisecond
		return startProcessWith(t, cfg)
	}
	a := begin(Config{Self: jobTracker("a")}, files[0])
	b := begin(Config{Self: taskTracker("b"), Join: []string{a.Addr()}}, files[1])
	a.awaitIDs(t, "a", "b")
	b.awaitIDs(t, "a", "b")
	addr := "127.0.0.1:1"
	for _, step := range [][][]byte{{before, after}, {after, before}, {after}} {
		for _, f := range files {
			f.change(t, step)
			addr += "1"
			// The news of a reaches b while they may encrypt with different keys.
			if err := a.Update(func(m Member) Member { m.HTTP = addr; return m }); err != nil {
				t.Fatal(err)
			}
			b.awaitMembers(t, "the news of a", func(all []Member) bool { return len(all) == 2 && all[0].HTTP == addr })
			a.awaitIDs(t, "a", "b")
		}
	}
	c := begin(Config{Self: taskTracker("c"), Join: []string{a.Addr()}}, newKeyFile(after))
	c.awaitIDs(t, "a", "b", "c")
	thief := begin(Config{Self: taskTracker("thief"), Join: []string{a.Addr()}}, newKeyFile(before))
	thief.journal.waitFor(t, "cannot join")
	thief.awaitIDs(t, "thief")
	files[0].change(t, nil)
	a.journal.waitFor(t, "the old ones stay")
	d := begin(Config{Self: taskTracker("d"), Join: []string{a.Addr()}}, newKeyFile(after))
	d.awaitIDs(t, "a", "b", "c", "d")
}

// TestSetKeys: each keyring becomes each other one.
func TestSetKeys(t *testing.T) {
	one, two, three, four := keyOf(1), keyOf(2), keyOf(3), keyOf(4)
	rings := [][][]byte{{one}, {two}, {one, two}, {two, one}, {three, two}, {three, four}, {one, two, three}}
	for _, from := range rings {
		for _, to := range rings {
			ring, err := memberlist.NewKeyring(from, from[0])
			if err != nil {
				t.Fatal(err)
			}
			changed, err := setKeys(ring, to)
			same := slices.EqualFunc(from, to, bytes.Equal)
			if err != nil || changed == same || !slices.EqualFunc(ring.GetKeys(), to, bytes.Equal) {
				t.Errorf("%x to %x: %v, %v, %x", from, to, changed, err, ring.GetKeys())
			}
		}
	}
	ring, err := memberlist.NewKeyring(nil, one)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][][]byte{nil, {}, {two, {1}}, {{1}}} {
		if changed, _ := setKeys(ring, bad); changed || !bytes.Equal(ring.GetPrimaryKey(), one) {
			t.Errorf("%x is used", bad)
		}
	}
}
