package replica

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// Raft-wal treats unreadable data as the end of the log, and deletes segments that are not in its
// list. Raft restores an older snapshot if it cannot read the newest. Each would silently lose
// acknowledged entries. So this file checks everything first.

// diskState is the content of the disk.
type diskState struct {
	snapshot uint64 // index of the newest one
	first    uint64 // index of the first entry; 0: none
	last     uint64
	bytes    int64 // of the entries after the snapshot
}

// errFormat reports a segment or snapshot that another build has written and this one cannot read.
var errFormat = errors.New("this build does not read its format, so start the build that wrote it")

// holdsState reports whether a replica has written state to dir.
func holdsState(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, metadb.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// verifyState reads and checks all files. It removes torn writes, which were never acknowledged.
// It fails if an entry is longer than readable, the maximum in bytes that this build can read.
func verifyState(dir string, readable int) (diskState, error) {
	var f diskState
	snapshots, err := listSnapshots(dir)
	if err != nil {
		return f, err
	}
	has, err := holdsState(dir)
	if err != nil {
		return f, err
	}
	if !has {
		segments, _ := filepath.Glob(filepath.Join(dir, "*.wal"))
		if len(segments)+len(snapshots) > 0 {
			return f, fmt.Errorf("%w: %s is missing beside %d segments and %d snapshots",
				ErrDamaged, filepath.Join(dir, metadb.FileName), len(segments), len(snapshots))
		}
		return f, nil
	}
	if len(snapshots) > 0 {
		newest := snapshots[len(snapshots)-1]
		if err := verifySnapshot(newest); err != nil {
			return f, err
		}
		f.snapshot = newest.index
	}
	if err := f.verifyLog(dir, readable); err != nil {
		return f, err
	}
	if f.first > f.snapshot+1 {
		return f, fmt.Errorf("%w: %s: entries %d to %d are missing, and no snapshot has them",
			ErrDamaged, dir, f.snapshot+1, f.first-1)
	}
	return f, nil
}

func (f *diskState) verifyLog(dir string, readable int) error {
	state, err := loadMeta(dir)
	if err != nil {
		return err
	}
	for i, info := range state.Segments {
		name := filepath.Join(dir, segment.FileName(info))
		if info.Codec != codecID {
			return fmt.Errorf("%s: %w: its codec is %d, not %d", name, errFormat, info.Codec, codecID)
		}
		tail := info.SealTime.IsZero()
		data, err := os.ReadFile(name)
		if tail && errors.Is(err, fs.ErrNotExist) {
			continue // the list is written before the file
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		s, err := scanSegment(name, data, info)
		if err != nil {
			return err
		}
		if err := checkReadable(name, data, s.entries, info.BaseIndex, readable); err != nil {
			return err
		}
		if size := int(info.SizeLimit); len(data) < size && lastWord(data, 0) > 0 {
			return &damage{name, len(data), fmt.Sprintf("it is truncated, and was created with %d bytes", size)}
		}
		last := info.BaseIndex + uint64(len(s.entries)) - 1
		switch {
		case !tail && last < info.MaxIndex:
			return &damage{name, s.end, fmt.Sprintf("entries end with %d, not %d", last, info.MaxIndex)}
		case !tail:
			last = info.MaxIndex
		case s.leftover > s.end:
			err = zeroTorn(name, s.end, s.leftover)
		case s.index > 0:
			err = rotate(dir, state, i, last, s.index)
		}
		if err == nil {
			err = f.add(name, data, s, info.MinIndex, last, info.BaseIndex)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rotate marks the last segment as full in the list. It repairs the state after a crash between the
// end of the segment and the update of the list, which raft-wal 0.4.0 cannot do.
func rotate(dir string, state types.PersistentState, i int, last uint64, index int) error {
	full := &state.Segments[i]
	next := types.SegmentInfo{
		ID: state.NextSegmentID, BaseIndex: last + 1, MinIndex: last + 1,
		SizeLimit: full.SizeLimit, Codec: codecID, CreateTime: time.Now(),
	}
	full.MaxIndex, full.IndexStart, full.SealTime = last, uint64(index)+frameHeader, time.Now()
	state.Segments = append(state.Segments, next)
	state.NextSegmentID++
	return withMeta(dir, func(db *metaStore) error { return db.CommitState(state) })
}

// add counts the entries of a segment.
func (f *diskState) add(name string, data []byte, s scan, first, last, base uint64) error {
	if last < first {
		return nil
	}
	if f.first == 0 {
		f.first = first
	} else if first != f.last+1 {
		return &damage{name, 0, fmt.Sprintf("it begins with entry %d, but the segment before it ends with %d", first, f.last)}
	}
	f.last = last
	for index := max(first, f.snapshot+1); index <= last; index++ {
		f.bytes += int64(len(payload(data, s.entries[index-base])))
	}
	return nil
}

// zeroTorn overwrites a torn write with zeros. Otherwise it would look like damage later.
func zeroTorn(name string, from, to int) error {
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(make([]byte, to-from), int64(from))
	return errors.Join(err, file.Sync(), file.Close())
}

// loadMeta reads raft-wal's list of segments.
func loadMeta(dir string) (state types.PersistentState, err error) {
	err = withMeta(dir, func(db *metaStore) (err error) {
		state, err = db.Load(dir)
		return err
	})
	return state, err
}

// withMeta opens raft-wal's list of segments, calls do, and closes it.
func withMeta(dir string, do func(*metaStore) error) error {
	name := filepath.Join(dir, metadb.FileName)
	var db metaStore
	err := withoutPanic("read "+name, func() error {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // bbolt maps the file
		_, err := db.Load(dir)
		if err == nil {
			err = do(&db)
		}
		return errors.Join(err, db.Close())
	})
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return nil
}

// snapshotDir is a snapshot of raft, named <term>-<index>-<milliseconds>.
type snapshotDir struct {
	path              string
	term, index, when uint64
}

// listSnapshots lists complete snapshots, the newest last. It removes incomplete ones, which a
// crash has left.
func listSnapshots(dir string) ([]snapshotDir, error) {
	root := filepath.Join(dir, "snapshots")
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var list []snapshotDir
	for _, e := range entries {
		s := snapshotDir{path: filepath.Join(root, e.Name())}
		if strings.HasSuffix(e.Name(), ".tmp") {
			if err := os.RemoveAll(s.path); err != nil {
				return nil, err
			}
			continue
		}
		if n, _ := fmt.Sscanf(e.Name(), "%d-%d-%d", &s.term, &s.index, &s.when); n == 3 {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b snapshotDir) int {
		return cmp.Or(cmp.Compare(a.term, b.term), cmp.Compare(a.index, b.index), cmp.Compare(a.when, b.when))
	})
	return list, nil
}

// verifySnapshot checks the files of a snapshot.
func verifySnapshot(s snapshotDir) error {
	name := filepath.Join(s.path, "meta.json")
	data, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	var meta struct {
		raft.SnapshotMeta
		CRC []byte
	}
	if err := json.Unmarshal(data, &meta); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	if meta.ID != filepath.Base(s.path) || meta.Term != s.term || meta.Index != s.index {
		return fmt.Errorf("%w: %s: it belongs to another snapshot", ErrDamaged, name)
	}
	name = filepath.Join(s.path, "state.bin")
	state, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if int64(len(state)) != meta.Size {
		return fmt.Errorf("%w: %s has %d bytes, not %d", ErrDamaged, name, len(state), meta.Size)
	}
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	sum.Write(state)
	if string(sum.Sum(nil)) != string(meta.CRC) {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, name, errChecksum)
	}
	if index, _, err := decodeSnapshot(state); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	} else if index > meta.Index {
		return fmt.Errorf("%w: %s: its entry is %d, not %d", ErrDamaged, name, index, meta.Index)
	}
	return nil
}
