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

// What is below stands between raft-wal 0.4.0 and its files, and makes up for what it
// gets wrong:
//
//   - It notes its own codec's number for a new segment, whatever codec it was given,
//     and refuses that when it opens: metaStore and filer write ours.
//   - It finishes a full segment in the background, and a cut of the log's end in the
//     meantime leaves a list that no entry fits any more: awaitRotation lets nothing
//     happen in between, and rotate, in verify.go, makes up for a crash there.
//   - It cannot read a segment any more that such a cut has ended: segmentReader can.
//   - It writes entries that are longer than it reads: checkedCodec does not, and
//     segmentReader can read them, for Recover.

// metaStore holds the list of segments, the term and the vote.
type metaStore struct {
	metadb.BoltMetaDB
	fault   func() error // in tests
	rotated chan<- error // hears what fails
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
		tell(m.rotated, err)
	}
	return err
}

// tell puts a value into a channel of one, in place of an older one.
func tell(to chan<- error, err error) {
	select {
	case to <- err:
	default:
	}
}

// filer makes and opens segments.
type filer struct {
	*segment.Filer
	dir     string
	long    bool        // entries may be longer than raft-wal can read
	full    atomic.Bool // the last segment is, and another is being made
	rotated chan error  // has a value when another was made, or could not be
}

func newFiler(dir string, vfs types.VFS) *filer {
	return &filer{Filer: segment.NewFiler(dir, vfs), dir: dir, rotated: make(chan error, 1)}
}

// Create implements types.SegmentFiler.
func (f *filer) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	info.Codec = codecID
	w, err := f.Filer.Create(info)
	f.full.Store(false)
	tell(f.rotated, err)
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
		if s.was, err = f.read(info); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return s, nil
}

type segmentWriter struct {
	types.SegmentWriter
	f   *filer
	was *segmentReader // of what it began with; nil: it is not needed
}

// GetLog implements types.SegmentReader.
func (w *segmentWriter) GetLog(index uint64) (*types.PooledBuffer, error) {
	if w.was != nil && index <= w.was.info.MaxIndex {
		return w.was.GetLog(index)
	}
	return w.SegmentWriter.GetLog(index)
}

// Sealed implements types.SegmentWriter. Raft-wal asks after each write, and makes
// another segment when the answer is yes.
func (w *segmentWriter) Sealed() (bool, uint64, error) {
	sealed, index, err := w.SegmentWriter.Sealed()
	if sealed && err == nil {
		select {
		case <-w.f.rotated: // of an earlier one
		default:
		}
		w.f.full.Store(true)
	}
	return sealed, index, err
}

// awaitRotation waits until the segment after a full one was made.
func (f *filer) awaitRotation(wait time.Duration) error {
	if !f.full.Load() {
		return nil
	}
	select {
	case err := <-f.rotated:
		return err
	case <-time.After(wait):
		return errors.New("no other segment was made for a full one")
	}
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
