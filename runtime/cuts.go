package runtime

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// The partitions of a total order are ranges of keys. Setup finds their boundaries, the
// cuts, by sampling: it runs the job's own maps over pieces of a few splits, spread over
// the input. The cuts file is msgpack of cutsFile, then its xxhash64, u64, little-endian.
//
// A key that fills several partitions would have only one of them. If the job allows it, cuts
// divide the records of such a key by their place in the input. Records with equal keys keep
// their order then: those of an earlier map are in the same or an earlier partition.
const (
	sampledSplits = 10
	sampledBytes  = 1 << 20  // bytes of records from each sampled split
	sampledPlaces = 8        // these bytes come from this many places of the split
	sampledKeys   = 10_000   // keys from each sampled split
	sampleMemory  = 32 << 20 // bytes of all sampled keys
	sampledKey    = 1 << 10  // bytes of a key: its beginning is enough, and a job may have many cuts
	maxCutsFile   = 64 << 20

	// A key is divided if it has so many keys of the sample, and a quarter of a mean partition.
	minDivided   = 64
	dividedShare = 4
)

// DivideKeys is the property that allows cuts to divide the records of a key.
const DivideKeys = "quern.totalorder.divide.keys"

type cutsFile struct {
	Cuts   [][]byte `msgpack:"Cuts"`
	Places []uint64 `msgpack:"Places,omitempty"` // see Division; none: no key is divided
	Maps   int      `msgpack:"Maps,omitempty"`   // of the job; 0 without places
}

// Division says how cuts divide the records of a key.
type Division struct {
	// Places are the places in the input of all [Task.Cuts]: 0 is its beginning, 1<<32 its end. Map m of n reads from
	// m/n to (m+1)/n. Records with the key of a cut are left of it if their place is less.
	Places []uint64
	Maps   int // of the job
}

// sampledRecord is the key of a record of the sample, and the number of its split among the sampled ones.
type sampledRecord struct {
	key   []byte
	split int
}

func cutsName(staging string, job wire.JobID) string {
	return dfs.Join(staging, job.String(), wire.StagedCuts)
}

// stageCuts finds the cuts and stages them, unless an earlier attempt did so.
func (a *attempt) stageCuts() error {
	name := cutsName(a.sub.Staging, a.id().Task.Job)
	_, err := a.fs.Stat(name)
	if !missing(err) {
		return err
	}
	cuts, err := a.cuts()
	if err != nil {
		return err
	}
	data, err := encodeHashed(&cuts)
	if err != nil {
		return err
	}
	if err := writeOnce(a.staging, name, name+"."+a.id().String(), data); err != nil {
		return fmt.Errorf("stage cuts: %w", err)
	}
	return nil
}

// loadCuts reads the job's cuts for a map or reduce.
func (a *attempt) loadCuts() error {
	if !a.plan().TotalOrder || a.plan().Reduces < 2 {
		return nil
	}
	name := cutsName(a.sub.Staging, a.id().Task.Job)
	data, err := readAll(a.fs, name, maxCutsFile)
	if err != nil {
		return fmt.Errorf("read cuts: %w", err)
	}
	f, err := decodeCuts(data)
	if err == nil && len(f.Cuts) != a.plan().Reduces-1 {
		err = fmt.Errorf("%w: %d cuts for %d partitions", ErrCorrupt, len(f.Cuts), a.plan().Reduces)
	}
	if err != nil {
		return fmt.Errorf("read cuts %s: %w", name, err)
	}
	a.task.Cuts = f.Cuts
	if f.Places != nil {
		a.task.Division = &Division{Places: f.Places, Maps: f.Maps}
	}
	return nil
}

func decodeCuts(data []byte) (f cutsFile, err error) {
	if err := decodeHashed(data, &f); err != nil {
		return f, err
	}
	if f.Places != nil && (len(f.Places) != len(f.Cuts) || f.Maps < 1) {
		return f, fmt.Errorf("%w: %d places of %d cuts, %d maps", ErrCorrupt, len(f.Places), len(f.Cuts), f.Maps)
	}
	for i := 1; i < len(f.Cuts); i++ {
		if c := bytes.Compare(f.Cuts[i-1], f.Cuts[i]); c > 0 || c == 0 && f.Places != nil && f.Places[i-1] > f.Places[i] {
			return f, fmt.Errorf("%w: cuts are not sorted", ErrCorrupt)
		}
	}
	return f, nil
}

// encodeHashed returns the msgpack of a value, followed by its hash.
func encodeHashed(value any) ([]byte, error) {
	data, err := wire.Marshal(value)
	return binary.LittleEndian.AppendUint64(data, xxhash.Sum64(data)), err
}

func decodeHashed(data []byte, value any) error {
	body := len(data) - 8
	if body < 0 || xxhash.Sum64(data[:body]) != binary.LittleEndian.Uint64(data[body:]) {
		return fmt.Errorf("%w: wrong hash", ErrCorrupt)
	}
	if err := wire.Unmarshal(data[:body], value); err != nil {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil
}

// chooseCuts sorts a sample, and divides its keys into equal partitions. If one key fills several
// partitions, only one of them gets records, unless [placesOf] divides the key. Without a sample,
// the last one gets all keys.
func chooseCuts(sample []sampledRecord, partitions int) [][]byte {
	slices.SortFunc(sample, compareSampled)
	cuts := make([][]byte, partitions-1)
	for i := range cuts {
		cuts[i] = []byte{}
		if len(sample) > 0 {
			cuts[i] = sample[(i+1)*len(sample)/partitions].key
		}
	}
	return cuts
}

func compareSampled(a, b sampledRecord) int {
	if c := bytes.Compare(a.key, b.key); c != 0 {
		return c
	}
	return cmp.Compare(a.split, b.split)
}

// placesOf returns the places of the cuts that chooseCuts has chosen from a sample; nil: they divide no key. The
// records of a sampled split stand for all splits up to the next sampled one, evenly.
func placesOf(sample []sampledRecord, partitions, splits int) []uint64 {
	places, some := make([]uint64, partitions-1), false
	for i := range places {
		if len(sample) == 0 {
			return nil
		}
		at := (i + 1) * len(sample) / partitions
		key := sample[at].key
		first := searchSampled(sample, sampledRecord{key, 0})
		n := searchSampled(sample, sampledRecord{key, splits}) - first
		if at == first || n < minDivided || n*dividedShare*partitions < len(sample) || len(key) == sampledKey {
			continue // a key that was cut is no key of a record
		}
		split := sample[at].split
		begin, end := searchSampled(sample, sampledRecord{key, split}), searchSampled(sample, sampledRecord{key, split + 1})
		place := uint64(split)<<32 + uint64(at-begin)<<32/uint64(end-begin)
		places[i], some = place/uint64(splits), true
	}
	if !some {
		return nil
	}
	return places
}

// searchSampled returns the index of the first record of a sorted sample that is not less than x.
func searchSampled(sample []sampledRecord, x sampledRecord) int {
	at, _ := slices.BinarySearchFunc(sample, x, compareSampled)
	return at
}

// sampleKeys reads a sample of the job's splits, and returns the number of sampled splits.
func (a *attempt) sampleKeys(splits int) (sample []sampledRecord, sampled int, err error) {
	sampled = min(splits, sampledSplits)
	all := &sampler{random: rand.New(rand.NewPCG(1, 2)), memory: sampleMemory}
	for i := range sampled {
		split, err := a.openSplit(i * splits / sampled)
		if err != nil {
			return nil, 0, err
		}
		split.limit(a.job.format(split.Input, &a.plan().Inputs[split.Input]), sampledBytes)
		all.startSplit()
		sample := func() error { return a.job.Maps[split.Input](a.task, split, all) }
		if a.writesMapFiles() {
			err = a.scratchFiles(fmt.Sprintf("sample%d", i), sample, func(string, string) error { return nil })
		} else {
			err = sample()
		}
		split.close()
		if err := errors.Join(err, split.err, all.err); err != nil {
			return nil, 0, err
		}
	}
	return all.keys, sampled, nil
}

// limit restricts the split to about maxBytes of records.
func (s *Split) limit(format Format, maxBytes int64) {
	s.sample = maxBytes
	var chunks []Chunk
	for _, c := range s.chunks {
		if maxBytes <= 0 {
			break
		}
		pieces := format.Sample(s.in, c, maxBytes)
		if pieces == nil {
			chunks, s.stopAtSample = append(chunks, c), true // reading ends at s.sample
			continue
		}
		chunks = append(chunks, pieces...)
		maxBytes -= min(c.Length, maxBytes)
	}
	s.chunks = chunks
}

// sampler is the Collector of a map that samples. It keeps a random sample of each split's
// keys: each key has the same probability.
type sampler struct {
	random     *rand.Rand
	keys       []sampledRecord
	split      int   // number of this split among the sampled ones, from 1
	splitStart int   // index in keys of this split's first
	splitKeys  int64 // keys of this split
	memory     int
	err        error
}

func (s *sampler) startSplit() { s.splitStart, s.splitKeys, s.split = len(s.keys), 0, s.split+1 }

func (s *sampler) Collect(partition int, key, _ []byte) error {
	if partition != 0 && s.err == nil {
		s.err = fmt.Errorf("partition %d while the input is sampled: want 0", partition)
	}
	if s.err != nil {
		return s.err
	}
	s.splitKeys++
	key = key[:min(len(key), sampledKey)]
	at := len(s.keys)
	if at-s.splitStart >= sampledKeys || s.memory < len(key) {
		if i := s.random.Int64N(s.splitKeys); i < int64(at-s.splitStart) {
			at = s.splitStart + int(i)
		} else {
			at = math.MaxInt
		}
	}
	switch {
	case at == len(s.keys):
		s.keys = append(s.keys, sampledRecord{bytes.Clone(key), s.split - 1})
		s.memory -= len(key)
	case at < len(s.keys) && s.memory >= len(key)-len(s.keys[at].key):
		s.memory -= len(key) - len(s.keys[at].key)
		s.keys[at].key = bytes.Clone(key)
	}
	return nil
}
