package runtime

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// The partitions of a total order are ranges of keys. Setup finds their boundaries, the
// cuts, in a sample; see sample.go. The cuts file is msgpack of cutsFile, then its xxhash64,
// u64, little-endian.
//
// A key that fills several partitions would have only one of them. If the job allows it, cuts
// divide the records of such a key by their place in the input. Records with equal keys keep
// their order then: those of an earlier map are in the same or an earlier partition.
//
// A join has no cuts. Its file has the keys that its maps spread over all partitions; see spread.go.
const (
	maxCutsFile = 64 << 20

	// A key is divided or spread if it has so many keys of the sample, and a quarter of a mean partition.
	minDivided   = 64
	dividedShare = 4
)

// DivideKeys is the property that allows cuts to divide the records of a key.
const DivideKeys = "quern.totalorder.divide.keys"

type cutsFile struct {
	Cuts   [][]byte `msgpack:"Cuts"`
	Places []uint64 `msgpack:"Places,omitempty"` // see Division; none: no key is divided
	Maps   int      `msgpack:"Maps,omitempty"`   // of the job; 0 without places
	Spread [][]byte `msgpack:"Spread,omitempty"` // see Division; none: a total order, or no key is spread
}

// Division says how the records of a key are divided among partitions.
type Division struct {
	// Places are the places in the input of all [Task.Cuts]: 0 is its beginning, 1<<32 its end. Map m of n reads from
	// m/n to (m+1)/n. Records with the key of a cut are left of it if their place is less.
	Places []uint64
	Maps   int // of the job

	// Spread are keys of a join, sorted, with the byte of a side. Records with such a key may be in any partition. All
	// partitions have the records with this key on the other side.
	Spread [][]byte
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

// dividesInput reports whether the job has a cuts file.
func (a *attempt) dividesInput() bool {
	return a.plan().Reduces > 1 && (a.plan().TotalOrder || a.spreads())
}

// loadCuts reads the job's cuts for a map or reduce.
func (a *attempt) loadCuts() error {
	if !a.dividesInput() {
		return nil
	}
	name := cutsName(a.sub.Staging, a.id().Task.Job)
	data, err := readAll(a.fs, name, maxCutsFile)
	if err != nil {
		return fmt.Errorf("read cuts: %w", err)
	}
	f, err := decodeCuts(data)
	if cuts := a.plan().Reduces - 1; err == nil && len(f.Cuts) != cuts && (a.plan().TotalOrder || len(f.Cuts) > 0) {
		err = fmt.Errorf("%w: %d cuts for %d partitions", ErrCorrupt, len(f.Cuts), cuts+1)
	}
	if err != nil {
		return fmt.Errorf("read cuts %s: %w", name, err)
	}
	a.task.Cuts = f.Cuts
	if f.Places != nil || f.Spread != nil {
		a.task.Division = &Division{Places: f.Places, Maps: f.Maps, Spread: f.Spread}
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
	if len(f.Spread) > 0 && (len(f.Cuts) > 0 || len(f.Spread[0]) == 0 || !slices.IsSortedFunc(f.Spread, bytes.Compare)) {
		return f, fmt.Errorf("%w: keys to spread", ErrCorrupt)
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
func chooseCuts(s *sample, partitions int) [][]byte {
	s.sort()
	cuts := make([][]byte, partitions-1)
	for i := range cuts {
		cuts[i] = []byte{}
		if len(s.keys) > 0 {
			cuts[i] = s.keys[(i+1)*len(s.keys)/partitions].key
		}
	}
	return cuts
}

// placesOf returns the places of the cuts that chooseCuts has chosen from a sample; nil: they divide no key. The
// records of a sampled split stand for all splits up to the next sampled one, evenly.
func placesOf(s *sample, partitions int) []uint64 {
	places, some := make([]uint64, partitions-1), false
	for i := range places {
		if len(s.keys) == 0 {
			return nil
		}
		at := (i + 1) * len(s.keys) / partitions
		key := s.keys[at].key
		first := s.search(key, 0)
		n := s.search(key, len(s.splits)) - first
		if at == first || n < minDivided || n*dividedShare*partitions < len(s.keys) || len(key) == sampledKey {
			continue // a key that was cut is no key of a record
		}
		split := s.keys[at].split
		begin, end := s.search(key, split), s.search(key, split+1)
		from, to := s.standsFor(split)
		place := uint64(from)<<32 + uint64(at-begin)<<32/uint64(end-begin)*uint64(to-from)
		places[i], some = place/uint64(s.maps), true
	}
	if !some {
		return nil
	}
	return places
}
