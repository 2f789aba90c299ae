package mapreduce

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"unsafe"

	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// BroadcastJoin joins in the maps: each worker reads small into memory once, and looks up the keys of large there.
// So large is neither sorted nor sent, and the result can be the map output of another step, such as [Fold] or [MapOnly].
// It calls f as [JoinEach] does, for an [InnerJoin] or [LeftJoin]; large is the left side. The values b of a key come in
// the order of small. Do not change what b refers to: other maps use the same values.
//
// The job fails if the values of small take more memory than quern.broadcast.max.bytes: use [JoinEach] then.
// The files of small are side files: the job fails if one changes after the job has started. small has paths of its own, or
// reads [From] another job of the flow. Its maps cannot [Write], and count once per worker.
func BroadcastJoin[K, A, B, KO, VO any](large *Pairs[K, A], small *Pairs[K, B], kind JoinKind, f func(t *Task, key K, a *A, b *B, emit func(KO, VO)) error) *Pairs[KO, VO] {
	large, small = requirePairs(large, f == nil, "BroadcastJoin"), requirePairs(small, false, "BroadcastJoin")
	joined := &Pairs[KO, VO]{errs: slices.Concat(large.errs, small.broadcastErrors(large, kind))}
	table := &broadcast{}
	for _, src := range small.sources {
		table.inputs = append(table.inputs, src.input)
	}
	joined.broadcasts = slices.Concat(large.broadcasts, small.broadcasts, []*broadcast{table})
	for _, src := range large.sources {
		joined.sources = append(joined.sources, source[KO, VO]{input: src.input, run: func(t *Task, in splitReader, emit func(KO, VO)) error {
			rows, err := loadBroadcast(t, table, small)
			if err != nil {
				return err
			}
			j := &lookup[K, A, B]{t: t, rows: rows, key: must(large.key), left: kind == LeftJoin, fresh: true}
			return src.run(t, in, func(key K, a A) {
				if !t.open {
					t.rejectLate(errLateEmit)
					return
				}
				j.k, j.a = key, a
				if err := j.each(func() error { return f(t, key, &j.a, j.match, emit) }); err != nil {
					t.failHere(err)
				}
			})
		}})
	}
	return joined
}

// broadcastErrors returns misuse of small as the small side of a join.
func (p *Pairs[K, V]) broadcastErrors(large interface {
	settings() (key any, shuffled bool)
}, kind JoinKind) []error {
	errs := []error{p.check()}
	misused := func(text string) { errs = append(errs, errors.New("BroadcastJoin: "+text)) }
	largeKey, shuffled := large.settings()
	smallKey, alsoShuffled := p.settings()
	if shuffled || alsoShuffled {
		misused("set Combine, Partition and TotalOrder on its result, not on its sides")
	}
	if largeKey != smallKey {
		misused("it needs one Codec of the key on both sides")
	}
	if kind != InnerJoin && kind != LeftJoin {
		misused("a map sees only a part of the large side, so the join can be InnerJoin or LeftJoin: use JoinEach for others")
	}
	for _, src := range p.sources {
		if src.input.from == nil && len(src.input.paths) == 0 && src.input.format != "generated" {
			misused("the small side has no paths: -input is for the large side")
		}
	}
	return errs
}

func (p *Pairs[K, V]) settings() (key any, shuffled bool) {
	return p.key, p.combines() || p.partition != nil || p.totalOrder
}

// broadcast identifies the small side of a join.
type broadcast struct{ inputs []*inputSpec }

// broadcastName is the name of the job's side file for a path of an input.
func broadcastName(table, input, path int) string {
	return fmt.Sprintf("quern.broadcast.%d.%d.%d", table, input, path)
}

// addBroadcasts declares the files of small sides as side files, and returns those that jobs of the flow write.
func (c *compilation) addBroadcasts(at places, to map[string]string, all []*broadcast) (results []wire.SideResult, err error) {
	for n, b := range all {
		for i, in := range b.inputs {
			if in.from != nil {
				results = append(results, wire.SideResult{Name: broadcastName(n, i, 0), From: c.writerOf(in.from) + 1})
			}
			for p, path := range in.paths {
				if path == "" {
					return nil, fmt.Errorf("the small side of a BroadcastJoin has an empty path: is a flag missing?")
				}
				if err := at.addFiles(to, map[string]string{broadcastName(n, i, p): path}, ""); err != nil {
					return nil, err
				}
			}
		}
	}
	return results, nil
}

// broadcastSlot has the table of a small side, which the attempts of a submission share in a process.
type broadcastSlot struct {
	turn   chan struct{}       // holds one value while an attempt uses the fields below
	rows   any                 // a *broadcastRows; nil: none yet
	chunks [][]mrruntime.Chunk // the files and versions that rows has been read from, by input
}

func newBroadcastSlot() any { return &broadcastSlot{turn: make(chan struct{}, 1)} }

// broadcastKeyCost estimates the memory of a key's chain and of its place in the map, beside the key's bytes.
const broadcastKeyCost = 64

// loadBroadcast returns the rows of the small side. The first attempt in the process that needs them reads them; others wait.
func loadBroadcast[K, B any](t *Task, b *broadcast, small *Pairs[K, B]) (*broadcastRows[B], error) {
	readers, chunks, err := b.open(t)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, r := range readers {
			if closer, ok := r.(interface{ Close() }); ok {
				closer.Close()
			}
		}
	}()
	slot := t.job.tables[slices.Index(t.job.broadcasts, b)]
	var done <-chan struct{}
	if t.Context != nil {
		done = t.Done()
	}
	select {
	case slot.turn <- struct{}{}:
	case <-done:
		return nil, t.ended()
	}
	defer func() { <-slot.turn }()
	if rows, ok := slot.rows.(*broadcastRows[B]); ok && slices.EqualFunc(slot.chunks, chunks, slices.Equal[[]mrruntime.Chunk]) {
		return rows, nil
	}
	slot.rows = nil // frees the memory first
	rows, err := readBroadcast(t, readers, small)
	if t.small && err != nil {
		return nil, err // the join that t reads says so
	}
	if err != nil {
		return nil, fmt.Errorf("read the small side of a BroadcastJoin: %w", err)
	}
	slot.rows, slot.chunks = rows, chunks
	return rows, nil
}

// open opens the inputs of the small side, and returns what they read. Every attempt does so, which checks that the
// files are those from the job's start.
func (b *broadcast) open(t *Task) (readers []splitReader, chunks [][]mrruntime.Chunk, err error) {
	n := slices.Index(t.job.broadcasts, b)
	for i, in := range b.inputs {
		plan := &wire.InputPlan{Format: in.format, RecordSize: in.recordSize, Types: in.types, Splits: in.splits}
		var names []string
		if in.from != nil {
			names = append(names, broadcastName(n, i, 0))
		}
		for p := range in.paths {
			names = append(names, broadcastName(n, i, p))
		}
		r, err := t.host.sideInput(names, plan, in.custom)
		if err != nil {
			return nil, nil, fmt.Errorf("open the small side of a BroadcastJoin: %w", err)
		}
		readers, chunks = append(readers, r), append(chunks, r.Chunks())
	}
	return readers, chunks, nil
}

// readBroadcast runs the maps of the small side.
func readBroadcast[K, B any](t *Task, readers []splitReader, small *Pairs[K, B]) (*broadcastRows[B], error) {
	r := &broadcastReader[K, B]{rows: &broadcastRows[B]{byHash: make(map[uint64]uint32), rows: make([]broadcastRow[B], 1), seed: maphash.MakeSeed()},
		key: must(small.key), value: must(small.value), vd: decoder{keep: true}, limit: broadcastMax(t)}
	for i, src := range small.sources {
		in := readers[i]
		r.t = &Task{Context: t.Context, ID: t.ID, Attempt: t.Attempt, Partition: t.Partition, host: t.host, job: t.job, small: true, in: in}
		r.t.locate = func(err error) error { return errorAt(in, err) }
		if err := r.run(src); err != nil {
			return nil, err
		}
	}
	r.rows.filter = newKeyFilter(r.rows.byHash)
	return r.rows, nil
}

type broadcastReader[K, B any] struct {
	t           *Task
	rows        *broadcastRows[B]
	key         *codec[K]
	value       *codec[B]
	vd          decoder
	kbuf, vbuf  []byte
	used, limit int // bytes
}

func (r *broadcastReader[K, B]) run(src source[K, B]) (err error) {
	defer r.t.replacePanic(&err)
	return r.t.end(r.t.in.Err, src.run(r.t, r.t.in, r.emit))
}

func (r *broadcastReader[K, B]) emit(k K, v B) {
	if !r.t.open {
		r.t.rejectLate(errLateEmit)
		return
	}
	key, value := r.key.encode(&r.kbuf, k), r.value.encode(&r.vbuf, v)
	kept, err := read(r.value, &r.vd, value) // a copy that refers to none of the map's memory
	if err != nil {
		r.t.failHere(err)
		return
	}
	row := broadcastRow[B]{value: kept}
	known := r.rows.find(key, maphash.Bytes(r.rows.seed, key)) != nil
	r.used += int(unsafe.Sizeof(row)) + len(value)
	if !known {
		r.used += broadcastKeyCost + len(key)
	}
	if r.used > r.limit || len(r.rows.rows) == 1<<31-1 {
		r.t.failHere(mrruntime.Fatal(fmt.Errorf("it takes more memory than %s=%d: use JoinEach or Join, or raise the property",
			property.BroadcastMax, r.limit)))
		return
	}
	r.rows.add(key, row)
}

func broadcastMax(t *Task) int {
	n, err := strconv.Atoi(t.Property(property.BroadcastMax))
	if err != nil {
		return property.DefaultBroadcastMax // a task without properties, in a test
	}
	return n
}
