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
)

// Setup samples the map output of a job: it runs the job's own maps over pieces of the input. The pieces are at places
// with the same distance in the bytes of the input, so that each part of it counts by its size, however its splits differ.
const (
	sampledBytes  = 1 << 20  // bytes of records for each split of the job, up to sampledSplits
	sampledSplits = 10       // also the places if the format of an input has no pieces
	sampledPlaces = 80       // at least; see placesFor
	placesEach    = 4        // at least, for each partition
	manyPlaces    = 2000     // each may be in another file
	sampledKeys   = 10_000   // keys for each of these splits
	sampleMemory  = 32 << 20 // bytes of all sampled keys
	sampledKey    = 1 << 10  // bytes of a key: its beginning is enough, and a job may have many cuts
)

// placesFor returns the number of places, the same for each partition. If the input is sorted, a partition may have the
// bytes between two places more than its share: a quarter of it, up to 500 reduces.
func placesFor(reduces int) int {
	each := max(placesEach, (sampledPlaces+reduces-1)/reduces)
	return reduces * max(min(each, manyPlaces/reduces), 1)
}

// sample is the keys of a job's map output from places in its input.
type sample struct {
	maps   int            // splits of the job
	splits []sampledSplit // those with places, ascending
	length int64          // bytes at each place
	bytes  int64          // of the job's input
	staged []byte         // the splits file

	keys   []sampledRecord
	random *rand.Rand
	memory int // bytes that keys may still take
}

// sampledSplit is a split with places in the sample.
type sampledSplit struct {
	n      int
	places []int64 // offsets in the bytes of its chunks, ascending
	begin  int     // its first key in the sample
	most   int     // keys
	seen   int64   // keys of its pieces
}

// sampledRecord is the key of a record of the sample, and the number of its split among the sampled ones.
type sampledRecord struct {
	key    []byte
	split  int
	prefix uint64 // of the key, while the sample is sorted
}

// planSample chooses places in the staged splits.
func (a *attempt) planSample(places int) (*sample, error) {
	name := splitsName(a.sub.Staging, a.id().Task.Job)
	data, err := readAll(a.fs, name, maxSplitsFile)
	if err != nil {
		return nil, err
	}
	infos, _, err := decodeSplits(data)
	if err != nil {
		return nil, fmt.Errorf("read splits %s: %w", name, err)
	}
	lengths := make([]int64, len(infos))
	for i := range infos {
		lengths[i] = infos[i].Length
	}
	s := placeSample(lengths, places, len(a.job.Formats) == 0)
	s.staged = data
	return s, nil
}

// placeSample distributes places over splits of these lengths. If they have no bytes, or pieces is not set, few splits
// have places, as reading from the beginning of each may take long.
func placeSample(lengths []int64, places int, pieces bool) *sample {
	s := &sample{maps: len(lengths), random: rand.New(rand.NewPCG(1, 2)), memory: sampleMemory}
	for _, n := range lengths {
		s.bytes += n
	}
	if s.maps == 0 {
		return s
	}
	if s.bytes == 0 || !pieces {
		places = min(places, sampledSplits)
	}
	total := s.bytes
	if total == 0 { // of Generate: all splits are alike
		lengths, total = slices.Repeat([]int64{1 << 20}, len(lengths)), int64(len(lengths))<<20
	}
	share := min(s.maps, sampledSplits)
	s.length = max(int64(share)*sampledBytes/int64(places), 1)
	split, before := 0, int64(0)
	for i := range places {
		distance := float64(total) / float64(places)
		at := min(int64((float64(i)+s.random.Float64())*distance), total-1)
		for at-before >= lengths[split] {
			before += lengths[split]
			split++
		}
		if n := len(s.splits); n == 0 || s.splits[n-1].n != split {
			s.splits = append(s.splits, sampledSplit{n: split})
		}
		of := &s.splits[len(s.splits)-1]
		of.places = append(of.places, at-before)
		of.most = share * sampledKeys * len(of.places) / places
	}
	return s
}

// standsFor returns the splits that a sampled split represents.
func (s *sample) standsFor(split int) (from, to int) {
	if split > 0 {
		from = s.splits[split].n
	}
	if split+1 < len(s.splits) {
		return from, s.splits[split+1].n
	}
	return from, s.maps
}

// sampleKeys runs the maps over the pieces.
func (a *attempt) sampleKeys(s *sample) error {
	for i := range s.splits {
		entry, err := readEntryFrom(bytes.NewReader(s.staged), s.splits[i].n)
		if err != nil {
			return err
		}
		split, err := a.newSplit(s.splits[i].n, entry)
		if err != nil {
			return err
		}
		split.limit(a.job.format(split.Input, &a.plan().Inputs[split.Input]), s.splits[i].places, s.length)
		s.splits[i].begin = len(s.keys)
		run := func() error { return a.job.Maps[split.Input](a.task, split, &sampler{s, i}) }
		if a.writesMapFiles() {
			err = a.scratchFiles(fmt.Sprintf("sample%d", i), run, func(string, string) error { return nil })
		} else {
			err = run()
		}
		split.close()
		if err := errors.Join(err, split.err); err != nil {
			return err
		}
	}
	return nil
}

// limit restricts the split to pieces of about length bytes at places in its bytes.
func (s *Split) limit(format Format, places []int64, length int64) {
	s.sample = int64(len(places)) * length
	var chunks []Chunk
	for before := int64(0); len(s.chunks) > 0; s.chunks = s.chunks[1:] {
		c, n := s.chunks[0], 0
		var within []int64
		for ; n < len(places) && (places[n]-before < c.Length || len(s.chunks) == 1); n++ {
			within = append(within, places[n]-before)
		}
		places, before = places[n:], before+c.Length
		if n == 0 {
			continue
		}
		pieces := format.Sample(s.in, c, within, length)
		if pieces == nil {
			pieces, s.stopAtSample = []Chunk{c}, true // reading ends at s.sample
		}
		chunks = append(chunks, pieces...)
	}
	s.chunks = chunks
}

// sampler is the Collector of a map that samples. It keeps a random sample of the split's keys: each key has the same
// probability.
type sampler struct {
	*sample
	split int
}

func (s *sampler) Collect(_ int, key, _ []byte) error {
	of := &s.splits[s.split]
	of.seen++
	key = key[:min(len(key), sampledKey)]
	at := len(s.keys)
	if at-of.begin >= of.most || s.memory < len(key) {
		if i := s.random.Int64N(of.seen); i < int64(at-of.begin) {
			at = of.begin + int(i)
		} else {
			at = math.MaxInt
		}
	}
	switch {
	case at == len(s.keys):
		s.keys = append(s.keys, sampledRecord{key: bytes.Clone(key), split: s.split})
		s.memory -= len(key)
	case at < len(s.keys) && s.memory >= len(key)-len(s.keys[at].key):
		s.memory -= len(key) - len(s.keys[at].key)
		s.keys[at].key = bytes.Clone(key)
	}
	return nil
}

// sort compares most keys by their prefixes, so that it seldom reads the keys, which are all over the memory.
func (s *sample) sort() {
	for i := range s.keys {
		var first [8]byte
		copy(first[:], s.keys[i].key)
		s.keys[i].prefix = binary.BigEndian.Uint64(first[:])
	}
	slices.SortFunc(s.keys, func(a, b sampledRecord) int {
		if a.prefix != b.prefix {
			return cmp.Compare(a.prefix, b.prefix)
		}
		return compareSampled(a, b)
	})
}

func compareSampled(a, b sampledRecord) int {
	if c := bytes.Compare(a.key, b.key); c != 0 {
		return c
	}
	return cmp.Compare(a.split, b.split)
}

// search returns the index of the first record of a sorted sample that is not less than a key of a split.
func (s *sample) search(key []byte, split int) int {
	at, _ := slices.BinarySearchFunc(s.keys, sampledRecord{key: key, split: split}, compareSampled)
	return at
}
