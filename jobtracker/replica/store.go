package replica

import (
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
)

// store is raft's log, term and vote on disk. After a failed write it refuses all writes:
// raft-wal's state in memory may then differ from the disk.
type store struct {
	dir        string
	wal        *wal.WAL
	meta       *metaStore
	filer      *filer
	writeLimit time.Duration
	onFailure  func(error) // called with the first failure
	found      diskState   // content of the disk at the start

	// emptied is called after raft has removed all entries, up to last.
	onEmptied func(last uint64)

	opened  atomic.Bool           // raft has started, and would panic at some errors
	closed  atomic.Bool           // later errors are not failures
	err     atomic.Pointer[error] // the first failure
	writing atomic.Pointer[time.Time]
	entries atomic.Int64
	bytes   atomic.Int64
}

var (
	_ raft.LogStore          = (*store)(nil)
	_ raft.StableStore       = (*store)(nil)
	_ raft.MonotonicLogStore = (*store)(nil)
)

// openState checks all files, and opens the log and the snapshots.
func openState(cfg *Config) (*store, *raft.FileSnapshotStore, error) {
	found, err := verifyState(cfg.Dir, cfg.readLimit)
	if err != nil {
		return nil, nil, err
	}
	vfs := cfg.vfs
	if vfs == nil {
		vfs = walfs.New()
	}
	s := &store{dir: cfg.Dir, filer: newFiler(cfg.Dir, vfs), writeLimit: cfg.writeLimit, onFailure: func(error) {}}
	s.filer.long = cfg.readLimit > maxReadable
	s.meta = &metaStore{fault: cfg.metaFault, rotated: s.filer.rotated}
	s.found = found
	err = withoutPanic("read the log in "+cfg.Dir, func() (err error) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // bbolt maps its file
		s.wal, err = wal.Open(cfg.Dir,
			wal.WithMetaStore(s.meta),
			wal.WithSegmentFiler(s.filer),
			wal.WithSegmentSize(cfg.segmentSize),
			wal.WithCodec(checkedCodec{limit: cfg.readLimit}),
			wal.WithLogger(newLogger(cfg.Logger)))
		return err
	})
	if err != nil {
		s.meta.Close()
		return nil, nil, fmt.Errorf("open the log in %s: %w", cfg.Dir, err)
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(cfg.Dir, keptSnapshots, newLogger(cfg.Logger))
	if err != nil {
		s.close()
		return nil, nil, fmt.Errorf("open the snapshots in %s: %w", cfg.Dir, err)
	}
	return s, snaps, nil
}

const keptSnapshots = 2

func (s *store) close() {
	if s.closed.Swap(true) {
		return
	}
	s.wal.Close()
	s.meta.Close()
}

// fail records the first failure, and returns it.
func (s *store) fail(err error) error {
	if s.closed.Load() {
		return err
	}
	if s.err.CompareAndSwap(nil, &err) {
		s.onFailure(err)
	}
	return *s.err.Load()
}

// abandon is fail for errors at which raft would panic. If raft runs, it ends the calling
// goroutine, which is raft's; the replica shuts down anyway.
func (s *store) abandon(err error) error {
	err = s.fail(err)
	if s.opened.Load() && !s.closed.Load() {
		runtime.Goexit()
	}
	return err
}

// failure returns the first failure, or nil.
func (s *store) failure() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// write runs a write, and records when it began.
func (s *store) write(do func() error) error {
	now := time.Now()
	s.writing.Store(&now)
	defer s.writing.Store(nil)
	return do()
}

// writingSince returns when the current write began.
func (s *store) writingSince() (at time.Time, writes bool) {
	if p := s.writing.Load(); p != nil {
		return *p, true
	}
	return time.Time{}, false
}

// IsMonotonic implements raft.MonotonicLogStore: there are no gaps between entries,
// so raft empties the log when a snapshot is installed.
func (s *store) IsMonotonic() bool { return s.wal.IsMonotonic() }

// FirstIndex implements raft.LogStore.
func (s *store) FirstIndex() (uint64, error) { return s.wal.FirstIndex() }

// LastIndex implements raft.LogStore.
func (s *store) LastIndex() (uint64, error) { return s.wal.LastIndex() }

// GetLog implements raft.LogStore.
func (s *store) GetLog(index uint64, l *raft.Log) error {
	err := s.wal.GetLog(index, l)
	if err == nil || err == raft.ErrLogNotFound { // raft also compares with ==
		return err
	}
	return s.abandon(fmt.Errorf("read entry %d in %s: %w", index, s.segmentOf(index), err))
}

// segmentOf returns the file that should have an entry.
func (s *store) segmentOf(index uint64) string {
	names, _ := filepath.Glob(filepath.Join(s.dir, "*.wal")) // sorted; all base indexes have the same number of digits
	file := s.dir
	for _, name := range names {
		var base, id uint64
		if _, err := fmt.Sscanf(filepath.Base(name), "%d-%x.wal", &base, &id); err == nil && base <= index {
			file = name
		}
	}
	return file
}

// StoreLog implements raft.LogStore.
func (s *store) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (s *store) StoreLogs(logs []*raft.Log) error {
	if err := s.failure(); err != nil {
		return err
	}
	if len(logs) == 0 {
		return nil
	}
	s.entries.Add(int64(len(logs)))
	for _, l := range logs {
		s.bytes.Add(int64(len(l.Data) + len(l.Extensions)))
	}
	if err := s.write(func() error {
		if err := s.wal.StoreLogs(logs); err != nil {
			return err
		}
		return s.filer.awaitRotation(s.writeLimit)
	}); err != nil {
		first, last := logs[0].Index, logs[len(logs)-1].Index
		return s.fail(fmt.Errorf("store entries %d to %d in %s: %w", first, last, s.dir, err))
	}
	return nil
}

// DeleteRange implements raft.LogStore.
func (s *store) DeleteRange(from, to uint64) error {
	if err := s.failure(); err != nil {
		return err
	}
	if err := s.write(func() error { return s.wal.DeleteRange(from, to) }); err != nil {
		return s.fail(fmt.Errorf("delete entries %d to %d in %s: %w", from, to, s.dir, err))
	}
	if last, err := s.wal.LastIndex(); err == nil && last == 0 && s.opened.Load() {
		s.onEmptied(to)
	}
	return nil
}

// Set implements raft.StableStore.
func (s *store) Set(key, value []byte) error {
	return s.set(key, func() error { return s.wal.Set(key, value) })
}

// SetUint64 implements raft.StableStore.
func (s *store) SetUint64(key []byte, value uint64) error {
	return s.set(key, func() error { return s.wal.SetUint64(key, value) })
}

func (s *store) set(key []byte, do func() error) error {
	err := s.failure()
	if err == nil {
		err = s.write(do)
	}
	if err != nil {
		return s.abandon(fmt.Errorf("store %s in %s: %w", key, filepath.Join(s.dir, metadb.FileName), err))
	}
	return nil
}

// Get implements raft.StableStore.
func (s *store) Get(key []byte) ([]byte, error) { return s.wal.Get(key) }

// GetUint64 implements raft.StableStore.
func (s *store) GetUint64(key []byte) (uint64, error) { return s.wal.GetUint64(key) }
