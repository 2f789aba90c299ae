package runtime

import (
	"bytes"
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
const (
	sampledSplits = 10
	sampledBytes  = 1 << 20  // bytes of records from each sampled split
	sampledPlaces = 8        // these bytes come from this many places of the split
	sampledKeys   = 10_000   // keys from each sampled split
	sampleMemory  = 32 << 20 // bytes of all sampled keys
	sampledKey    = 1 << 10  // bytes of a key: its beginning is enough, and a job may have many cuts
	maxCutsFile   = 64 << 20
)

type cutsFile struct {
	Cuts [][]byte `msgpack:"Cuts"`
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
	data, err := encodeHashed(&cutsFile{cuts})
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
	cuts, err := decodeCuts(data)
	if err == nil && len(cuts) != a.plan().Reduces-1 {
		err = fmt.Errorf("%w: %d cuts for %d partitions", ErrCorrupt, len(cuts), a.plan().Reduces)
	}
	if err != nil {
		return fmt.Errorf("read cuts %s: %w", name, err)
	}
	a.task.Cuts = cuts
	return nil
}

func decodeCuts(data []byte) ([][]byte, error) {
	var f cutsFile
	if err := decodeHashed(data, &f); err != nil {
		return nil, err
	}
	if !slices.IsSortedFunc(f.Cuts, bytes.Compare) {
		return nil, fmt.Errorf("%w: cuts are not sorted", ErrCorrupt)
	}
	return f.Cuts, nil
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

// chooseCuts divides sampled keys into equal partitions. If one key fills several
// partitions, only one of them gets records. Without a sample, the last one gets all keys.
func chooseCuts(keys [][]byte, partitions int) [][]byte {
	slices.SortFunc(keys, bytes.Compare)
	cuts := make([][]byte, partitions-1)
	for i := range cuts {
		cuts[i] = []byte{}
		if len(keys) > 0 {
			cuts[i] = keys[(i+1)*len(keys)/partitions]
		}
	}
	return cuts
}

func (a *attempt) sampleKeys(splits int) ([][]byte, error) {
	sampled := min(splits, sampledSplits)
	all := &sampler{random: rand.New(rand.NewPCG(1, 2)), memory: sampleMemory}
	for i := range sampled {
		split, err := a.openSplit(i * splits / sampled)
		if err != nil {
			return nil, err
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
			return nil, err
		}
	}
	return all.keys, nil
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
	keys       [][]byte
	splitStart int   // index in keys of this split's first
	splitKeys  int64 // keys of this split
	memory     int
	err        error
}

func (s *sampler) startSplit() { s.splitStart, s.splitKeys = len(s.keys), 0 }

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
		s.keys = append(s.keys, bytes.Clone(key))
		s.memory -= len(key)
	case at < len(s.keys) && s.memory >= len(key)-len(s.keys[at]):
		s.memory -= len(key) - len(s.keys[at])
		s.keys[at] = bytes.Clone(key)
	}
	return nil
}
