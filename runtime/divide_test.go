package runtime

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPlacesOf partitions a sample by its own cuts and places: a key with any part of the sample leaves no
// partition more than its share. A twin finds the partitions.
func TestPlacesOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		splits := rapid.IntRange(1, sampledSplits).Draw(t, "splits")
		s := &sample{maps: rapid.IntRange(splits, 2*splits).Draw(t, "maps")}
		for _, n := range slices.Sorted(slices.Values(rapid.SliceOfNDistinct(rapid.IntRange(0, s.maps-1), splits, splits, rapid.ID).Draw(t, "sampled splits"))) {
			s.splits = append(s.splits, sampledSplit{n: n})
		}
		partitions := rapid.IntRange(2, 12).Draw(t, "partitions")
		hot := rapid.SliceOfN(rapid.IntRange(0, 200), splits, splits).Draw(t, "records of the hot key in each split")
		for split := range splits {
			for range hot[split] {
				s.keys = append(s.keys, sampledRecord{key: []byte("k"), split: split})
			}
			for i := range rapid.IntRange(0, 100).Draw(t, "other keys") {
				s.keys = append(s.keys, sampledRecord{key: fmt.Appendf(nil, "%c%d/%d", "az"[i%2], i, split), split: split})
			}
		}
		cuts := chooseCuts(s, partitions)
		places := placesOf(s, partitions)
		sizes := make([]int, partitions)
		for i, x := range s.keys {
			before, of := 0, 0 // records of the same key and split
			for j, y := range s.keys {
				if y.split == x.split && bytes.Equal(y.key, x.key) {
					of++
					if j < i {
						before++
					}
				}
			}
			from, to := s.standsFor(x.split)
			place := (uint64(from)<<32 + uint64(before)<<32/uint64(of)*uint64(to-from)) / uint64(s.maps)
			p := 0
			for i, cut := range cuts {
				if c := bytes.Compare(cut, x.key); c < 0 || c == 0 && (places == nil || places[i] <= place) {
					p++
				}
			}
			sizes[p]++
		}
		n := 0
		for _, x := range hot {
			n += x
		}
		most, want := slices.Max(sizes), len(s.keys)/partitions+1
		if n < minDivided || n*dividedShare*partitions < len(s.keys) {
			want += n
		}
		if len(s.keys) > 0 && most > want {
			t.Fatalf("%d of %d records are in one partition, want %d: %v, cuts %q, places %v", most, len(s.keys), want, sizes, cuts, places)
		}
		if n < minDivided && places != nil {
			t.Fatalf("places %v of %d records", places, n)
		}
	})
}

// TestDamagedPlaces: cuts with places that do not belong to them are refused.
func TestDamagedPlaces(t *testing.T) {
	k := [][]byte{[]byte("k"), []byte("k")}
	for name, c := range map[string]struct {
		file cutsFile
		good bool
	}{
		"no places":    {cutsFile{Cuts: k}, true},
		"places":       {cutsFile{Cuts: k, Places: []uint64{1, 2}, Maps: 3}, true},
		"too few":      {cutsFile{Cuts: k, Places: []uint64{1}, Maps: 3}, false},
		"descending":   {cutsFile{Cuts: k, Places: []uint64{2, 1}, Maps: 3}, false},
		"without maps": {cutsFile{Cuts: k, Places: []uint64{1, 2}}, false},
	} {
		data, err := encodeHashed(&c.file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeCuts(data); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSampledEvenly: for splits of any lengths, and sorted input, a partition has at most the bytes between two places
// more than its share. The key of a record is its place in the input.
func TestSampledEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 1<<10), rapid.Int64Range(0, 1<<30)), 1, 300).Draw(t, "lengths")
		partitions := rapid.IntRange(2, 600).Draw(t, "partitions")
		s := placeSample(lengths, placesFor(partitions), true)
		var total int64
		starts := make([]int64, len(lengths))
		for i, n := range lengths {
			starts[i], total = total, total+n
		}
		if total == 0 {
			return
		}
		for i, of := range s.splits {
			for _, place := range of.places {
				if place < 0 || place >= lengths[of.n] {
					t.Fatalf("place %d of split %d, which has %d bytes", place, of.n, lengths[of.n])
				}
				for n := range uint8(16) { // the records of a piece
					key := append(binary.BigEndian.AppendUint64(nil, uint64(starts[of.n]+place)), n)
					s.keys = append(s.keys, sampledRecord{key: key, split: i})
				}
			}
		}
		last, most := int64(0), int64(0)
		for _, cut := range append(chooseCuts(s, partitions), binary.BigEndian.AppendUint64(nil, uint64(total))) {
			at := int64(binary.BigEndian.Uint64(cut))
			last, most = at, max(most, at-last)
		}
		if limit := float64(total)*(1/float64(partitions)+1/float64(placesFor(partitions))) + 2; float64(most) > limit {
			t.Fatalf("a partition has %d of %d bytes, want %.0f at most", most, total, limit)
		}
	})
}

// TestChooseSpread compares with a twin that counts the records of each key and side.
func TestChooseSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, partitions := &sample{}, rapid.IntRange(2, 20).Draw(t, "partitions")
		counts := make(map[string][2]int)
		for key := range rapid.IntRange(0, 6).Draw(t, "keys") {
			var of [2]int
			for i, side := range []byte{0, 2} {
				of[i] = rapid.OneOf(rapid.IntRange(0, 2), rapid.IntRange(0, 400)).Draw(t, "records")
				for n := range of[i] {
					s.keys = append(s.keys, sampledRecord{key: []byte{byte(key), side}, split: n % 3})
				}
			}
			counts[string(byte(key))] = of
		}
		var want [][]byte
		for _, key := range slices.Sorted(maps.Keys(counts)) {
			many, few, side := counts[key][0], counts[key][1], byte(0)
			if few > many {
				many, few, side = few, many, 2
			}
			if many >= minDivided && 4*many >= len(s.keys)/partitions && (few+1)*partitions <= many && 4*many*partitions >= len(s.keys) {
				want = append(want, []byte{key[0], side})
			}
		}
		if got := chooseSpread(s, partitions); !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("spread %q, want %q of %v", got, want, counts)
		}
	})
}
