package replica

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// The types in this file wrap raft-wal 0.4.0's access to its files. They work around its defects:
//
//   - For a new segment raft-wal records its own codec's number instead of the configured one,
//     and refuses to open it later: metaStore and filer write our number.
//   - It finishes a full segment in the background. If the end of the log is deleted meanwhile,
//     no entry fits its list of segments any more: awaitRotation waits for the background
//     work, and rotate, in verify.go, repairs the list after a crash.
//   - It cannot read a segment that such a deletion has ended: segmentReader can.
//   - It writes longer entries than it can read: checkedCodec refuses them, and segmentReader
//     reads them for Recover.

// metaStore stores the list of segments, the term and the vote.
type metaStore struct {
	metadb.BoltMetaDB
	fault   func() error // in tests
	rotated chan<- error // receives failures of a rotation
}

// SetStable implements types.MetaStore.
func (m *metaStore) SetStable(key, value []byte) error {
	if m.fault != nil {
		if err := m.fault(); err != nil {
			return err
		}
	}
	return m.BoltMetaDB.SetStable(key, value)
}

// CommitState implements types.MetaStore.
func (m *metaStore) CommitState(state types.PersistentState) error {
	for i := range state.Segments {
		state.Segments[i].Codec = codecID
	}
	err := m.BoltMetaDB.CommitState(state)
	if err != nil && m.rotated != nil {
		trySend(m.rotated, err)
	}
	return err
}

// trySend sends an error, unless the channel is full.
func trySend(to chan<- error, err error) {
	select {
	case to <- err:
	default:
	}
}

// filer creates and opens segments.
type filer struct {
	*segment.Filer
	dir     string
	long    bool        // read entries that are longer than raft-wal can read
	full    atomic.Bool // the last segment is full, and the next one is being created
	rotated chan error  // the result of creating the next one
}

func newFiler(dir string, vfs types.VFS) *filer {
	return &filer{Filer: segment.NewFiler(dir, vfs), dir: dir, rotated: make(chan error, 1)}
}

// Create implements types.SegmentFiler.
func (f *filer) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	info.Codec = codecID
	w, err := f.Filer.Create(info)
	f.full.Store(false)
	trySend(f.rotated, err)
	if err != nil {
		return nil, err
	}
	return &segmentWriter{SegmentWriter: w, f: f}, nil
}

// RecoverTail implements types.SegmentFiler.
func (f *filer) RecoverTail(info types.SegmentInfo) (types.SegmentWriter, error) {
	w, err := f.Filer.RecoverTail(info)
	if err != nil {
		return nil, err
	}
	s := &segmentWriter{SegmentWriter: w, f: f}
	if f.long {
		info.MaxIndex = w.LastIndex()
		if s.old, err = f.read(info); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return s, nil
}

type segmentWriter struct {
	types.SegmentWriter
	f   *filer
	old *segmentReader // reads entries from before the start; nil: SegmentWriter reads them
}

// GetLog implements types.SegmentReader.
func (w *segmentWriter) GetLog(index uint64) (*types.PooledBuffer, error) {
	if w.old != nil && index <= w.old.info.MaxIndex {
		return w.old.GetLog(index)
	}
	return w.SegmentWriter.GetLog(index)
}

// Sealed implements types.SegmentWriter. Raft-wal calls it after each write, and creates another
// segment if it returns true.
func (w *segmentWriter) Sealed() (bool, uint64, error) {
	sealed, index, err := w.SegmentWriter.Sealed()
	if sealed && err == nil {
		select {
		case <-w.f.rotated: // result of an earlier rotation
		default:
		}
		w.f.full.Store(true)
	}
	return sealed, index, err
}

// awaitRotation waits until the segment after a full one was created. It waits in pieces: of the
// time in which this process is stopped, at most one piece counts.
func (f *filer) awaitRotation(wait time.Duration) error {
	if !f.full.Load() {
		return nil
	}
	const pieces = 20
	for range pieces {
		select {
		case err := <-f.rotated:
			return err
		case <-time.After(wait / pieces):
		}
	}
	return errors.New("the segment after a full one was not created in time")
}

// segmentReader reads a segment without an index, and entries of any length.
type segmentReader struct {
	info types.SegmentInfo
	data []byte
	scan scan
}

// Open implements types.SegmentFiler.
func (f *filer) Open(info types.SegmentInfo) (types.SegmentReader, error) {
	if info.IndexStart != 0 && !f.long {
		return f.Filer.Open(info)
	}
	return f.read(info)
}

func (f *filer) read(info types.SegmentInfo) (*segmentReader, error) {
	name := filepath.Join(f.dir, segment.FileName(info))
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read a segment: %w", err)
	}
	s, err := scanSegment(name, data, info)
	if err != nil {
		return nil, err
	}
	return &segmentReader{info: info, data: data[:s.end], scan: s}, nil
}

// GetLog implements types.SegmentReader.
func (r *segmentReader) GetLog(index uint64) (*types.PooledBuffer, error) {
	if index < r.info.MinIndex || index > r.info.MaxIndex || index-r.info.BaseIndex >= uint64(len(r.scan.entries)) {
		return nil, types.ErrNotFound
	}
	return &types.PooledBuffer{Bs: payload(r.data, r.scan.entries[index-r.info.BaseIndex])}, nil
}

// Close implements types.SegmentReader.
func (r *segmentReader) Close() error { return nil }
