package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/wire"
)

// MergeOptions configures [Merge].
type MergeOptions struct {
	Dir        string        // existing directory for temporary runs, if there are more segments than FanIn
	FanIn      int           // segments merged at once, each with a buffer of 64 KiB, or two if it is packed; 0: 256; at least 2
	Client     *http.Client  // for segments with a URL; nil: http.DefaultClient
	Stall      time.Duration // longest wait for the next [StallBytes] from a URL; 0: [DefaultStall]
	OnProgress func()        // if not nil, called for every block read, also while temporary runs are made

	// Clock is for [Merger.ReadTime]; nil: it is not measured.
	Clock func() time.Time
}

// defaultFanIn is high because a merge into temporary runs writes and reads all records once more. The buffers of so many
// packed segments take half of the 64 MB that a slot may use beside its sort memory.
const defaultFanIn = 256

// Merger is [Records] over sorted segments. Equal keys come in the order of the segments.
// Its errors are [CorruptError], [UnreadableError] or the context's cause.
type Merger struct {
	merge
	readers []*blockReader
	temps   []string // temporary runs
	read    atomic.Int64
	took    time.Duration
}

var _ Records = (*Merger)(nil)

// Merge opens segments, from files or URLs, and merges them. If there are more than FanIn,
// it first merges neighbors into temporary files in opts.Dir.
func Merge(ctx context.Context, segments []wire.Segment, opts MergeOptions) (*Merger, error) {
	if opts.FanIn == 0 {
		opts.FanIn = defaultFanIn
	}
	opts.FanIn = max(opts.FanIn, 2)
	m := &Merger{}
	for len(segments) > opts.FanIn {
		var err error
		if segments, err = m.round(ctx, segments, opts); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	if err := m.open(ctx, segments, opts); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// open opens all segments and moves to their first records.
func (m *Merger) open(ctx context.Context, segments []wire.Segment, opts MergeOptions) error {
	sources := make([]source, 0, len(segments))
	for _, s := range segments {
		r, err := openSegment(ctx, s, opts)
		if err != nil {
			return err
		}
		r.bytes, r.onProgress, r.clock, r.took = &m.read, opts.OnProgress, opts.Clock, &m.took
		m.readers = append(m.readers, r)
		sources = append(sources, r)
	}
	m.merge = *newMerge(sources)
	return m.err
}

func openSegment(ctx context.Context, s wire.Segment, opts MergeOptions) (*blockReader, error) {
	if s.File != "" {
		return openFile(ctx, s)
	}
	r, _, err := openRemote(ctx, s, FetchOptions{Client: opts.Client, Stall: opts.Stall})
	return r, err
}

// round merges groups of neighbors and returns the remaining segments.
func (m *Merger) round(ctx context.Context, segments []wire.Segment, opts MergeOptions) ([]wire.Segment, error) {
	var remaining []wire.Segment
	for _, size := range groups(len(segments), opts.FanIn) {
		group := segments[:size]
		segments = segments[size:]
		if size == 1 {
			remaining = append(remaining, group[0])
			continue
		}
		merged, err := m.pass(ctx, group, opts)
		if err != nil {
			return nil, err
		}
		remaining = append(remaining, merged)
	}
	return remaining, nil
}

// pass merges a few segments into a temporary file.
func (m *Merger) pass(ctx context.Context, group []wire.Segment, opts MergeOptions) (wire.Segment, error) {
	f, err := os.CreateTemp(opts.Dir, "merge-*")
	if err != nil {
		return wire.Segment{}, fmt.Errorf("merge %d segments: %w", len(group), err)
	}
	f.Close()
	m.temps = append(m.temps, f.Name())
	return MergeTo(ctx, group, f.Name(), opts, nil)
}

// BytesRead returns the number of bytes read so far, from the segments or from temporary
// runs. It may be called concurrently.
func (m *Merger) BytesRead() int64 { return m.read.Load() }

// ReadTime returns the time that reads of the segments have taken so far, without temporary runs. It needs a
// Clock.
func (m *Merger) ReadTime() time.Duration { return m.took }

// Close closes the segments and removes temporary files. Afterwards Next returns false.
func (m *Merger) Close() error {
	var errs []error
	for _, r := range m.readers {
		errs = append(errs, r.in.close())
	}
	for _, file := range m.temps {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	m.readers, m.temps, m.cursors = nil, nil, nil
	return errors.Join(errs...)
}

// MergeTo merges segments of one partition into a new segment file with one partition, and
// returns the location of its records. The digest in its index is the sum of the segments'
// digests. largest gets the groups of equal keys; nil: they are not counted. After an error it
// removes the file.
func MergeTo(ctx context.Context, segments []wire.Segment, file string, opts MergeOptions, largest *Largest) (merged wire.Segment, err error) {
	m, err := Merge(ctx, segments, opts)
	if err != nil {
		return wire.Segment{}, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	w, err := createSegment(file, CreateFile)
	if err != nil {
		return wire.Segment{}, err
	}
	defer w.abort()
	groups := grouping{largest: largest, to: w}
	for m.Next() {
		if largest != nil {
			groups.add(&m.merge)
		}
		if err := w.addEncoded(m.record); err != nil {
			return wire.Segment{}, err
		}
	}
	if largest != nil {
		groups.end()
	}
	if m.Err() != nil {
		return wire.Segment{}, m.Err()
	}
	return w.finishSingle(wire.Segment{Map: -1})
}

// finishSingle closes a segment file with one partition, and adds the location of its
// records to s.
func (w *segmentWriter) finishSingle(s wire.Segment) (wire.Segment, error) {
	s.File = w.file.Name()
	if err := w.endPartition(); err != nil {
		return wire.Segment{}, err
	}
	if err := w.close(); err != nil {
		return wire.Segment{}, err
	}
	s.Offset, s.Length = w.index.Partitions[0].Offset, w.index.Partitions[0].Length
	return s, nil
}
