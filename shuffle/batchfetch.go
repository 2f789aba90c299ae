package shuffle

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/quernmr/quern/wire"
)

// BatchPair is a partition of a map output.
type BatchPair struct {
	Output    int // in Batch.Outputs
	Partition int // -1: all
}

// BatchFailure is why a partition of a map output was not gathered.
type BatchFailure struct {
	BatchPair
	Err error // as of Fetch
}

// BatchRun is a sorted run: a partition of some map outputs, in the order of the batch.
type BatchRun struct {
	Partition int
	Outputs   []int32 // in Batch.Outputs; those without records are left out
	Segment   wire.Segment
	Largest   Largest
}

// Gathered is what a batch has gathered.
type Gathered struct {
	Runs   []BatchRun     // by partition; those without records are left out
	Failed []BatchFailure // these are in no run
	Large  []BatchPair    // these must be fetched alone
	Ended  int            // outputs that were answered: those after them must be fetched again
	Bytes  int64          // of the runs
}

// BatchOptions configures [FetchBatch] and [ReadBatch].
type BatchOptions struct {
	File    string         // with a partition for each run; it is not made if there are no runs
	Largest func() Largest // made for each run
}

// FetchBatch fetches a batch from the [Handler] at base, merges the outputs of each partition, and writes the runs into
// one file. It verifies all blocks, as [Fetch] does. If the fetch fails, the outputs that were answered before are
// in runs, and err says why the others are not. There is no err if the server may have closed the connection in a long
// wait of o.Pace. If the local file cannot be written, there are no runs.
func FetchBatch(ctx context.Context, base string, b *Batch, x BatchOptions, o FetchOptions) (got Gathered, err error) {
	in, from, err := fetchStream(ctx, b.url(base), o)
	if err != nil {
		return Gathered{}, explainBatch(ctx, base, err)
	}
	defer in.close()
	r := &batchReader{from: from, batch: b, where: base, progress: in.progress}
	failed := r.read()
	switch {
	case failed == nil:
	case in.paused && ctx.Err() == nil:
		failed = nil // the server waited for this receiver
	default:
		failed = explainBatch(ctx, base, failed)
	}
	got, err = r.write(x)
	if err != nil {
		return Gathered{}, err
	}
	return got, failed
}

// explainBatch adds the server to an error.
func explainBatch(ctx context.Context, base string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, ok := errors.AsType[*UnreadableError](err); ok {
		return err
	}
	return notReadable(wire.Segment{Map: -1, URL: base}, err)
}

// answers keeps the memory of the last answers.
var answers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// ReadBatch is [FetchBatch] for map outputs in local files. resolve and indexes are as for [Handler].
func ReadBatch(b *Batch, x BatchOptions, resolve func(job wire.JobID, m, attempt int) (file string, err error)) (Gathered, error) {
	answer := answers.Get().(*bytes.Buffer)
	defer answers.Put(answer)
	answer.Reset()
	s := batchSender{to: bufio.NewWriterSize(answer, batchWindow), indexes: newIndexCache()}
	failed := s.send(b, resolve)
	r := &batchReader{from: answer, batch: b, where: "files"}
	if err := r.read(); failed == nil {
		failed = err
	}
	got, err := r.write(x)
	if err != nil {
		return Gathered{}, err
	}
	return got, failed
}

// write merges and writes the pieces.
func (r *batchReader) write(x BatchOptions) (Gathered, error) {
	defer r.release()
	got := Gathered{Failed: r.failed, Large: r.large, Ended: r.ended}
	var w *segmentWriter
	merger := batchMerger{}
	for p, pieces := range r.pieces {
		if len(pieces) == 0 {
			continue
		}
		if w == nil {
			var err error
			if w, err = createSegment(x.File, CreateFile); err != nil {
				return Gathered{}, writeError("write a batch", err)
			}
			defer w.abort()
			w.temporary = true // the digests are known
		}
		run := BatchRun{Partition: r.batch.Partitions[p], Outputs: make([]int32, len(pieces)), Largest: x.Largest()}
		for i := range pieces {
			run.Outputs[i] = pieces[i].output
		}
		part, err := merger.merge(w, pieces, &run.Largest)
		if err != nil {
			return Gathered{}, err
		}
		run.Segment = wire.Segment{Map: -1, File: x.File, Offset: part.Offset, Length: part.Length}
		got.Bytes += part.Length
		got.Runs = append(got.Runs, run)
	}
	if w == nil {
		return got, nil
	}
	if err := w.close(); err != nil {
		return Gathered{}, err
	}
	return got, nil
}

// batchMerger merges pieces. It keeps its memory for the next run.
type batchMerger struct {
	merged  merge
	blocks  []memoryBlocks
	sources []source
}

// merge appends the pieces of a partition as a sorted run.
func (b *batchMerger) merge(w *segmentWriter, pieces []batchPiece, largest *Largest) (Partition, error) {
	for len(b.blocks) < len(pieces) {
		b.blocks = append(b.blocks, memoryBlocks{})
	}
	b.sources = b.sources[:0]
	digest, bytes := uint64(0), int64(0)
	for i, p := range pieces {
		b.blocks[i].rest = p.blocks
		b.sources = append(b.sources, &b.blocks[i])
		digest += p.digest
		bytes += p.bytes
	}
	m := &b.merged
	m.reset(b.sources)
	groups := grouping{largest: largest, to: w}
	grouped := largest.Keeps(bytes) // else no group is large
	for m.Next() {
		if grouped {
			groups.add(m)
		}
		if err := w.addEncoded(m.record); err != nil {
			return Partition{}, err
		}
	}
	if m.Err() != nil {
		return Partition{}, m.Err()
	}
	if grouped {
		groups.end()
	} else {
		largest.read += bytes
	}
	if err := w.closeBlock(); err != nil {
		return Partition{}, err
	}
	w.current.Digest = digest
	part := w.current
	return part, w.endPartition()
}
