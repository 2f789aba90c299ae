package runtime

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestPlacesOf partitions a sample by its own cuts and places: a key with any part of the sample leaves no
// partition more than its share. A twin finds the partitions.
func TestPlacesOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		splits := rapid.IntRange(1, sampledSplits).Draw(t, "splits")
		partitions := rapid.IntRange(2, 12).Draw(t, "partitions")
		hot := rapid.SliceOfN(rapid.IntRange(0, 200), splits, splits).Draw(t, "records of the hot key in each split")
		var sample []sampledRecord
		for split := range splits {
			for range hot[split] {
				sample = append(sample, sampledRecord{[]byte("k"), split})
			}
			for i := range rapid.IntRange(0, 100).Draw(t, "other keys") {
				sample = append(sample, sampledRecord{fmt.Appendf(nil, "%c%d/%d", "az"[i%2], i, split), split})
			}
		}
		cuts := chooseCuts(sample, partitions)
		places := placesOf(sample, partitions, splits)
		sizes := make([]int, partitions)
		for i, x := range sample {
			before, of := 0, 0 // records of the same key and split
			for j, y := range sample {
				if y.split == x.split && bytes.Equal(y.key, x.key) {
					of++
					if j < i {
						before++
					}
				}
			}
			place := (uint64(x.split)<<32 + uint64(before)<<32/uint64(of)) / uint64(splits)
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
		most, want := slices.Max(sizes), len(sample)/partitions+1
		if n < minDivided || n*dividedShare*partitions < len(sample) {
			want += n
		}
		if len(sample) > 0 && most > want {
			t.Fatalf("%d of %d records are in one partition, want %d: %v, cuts %q, places %v", most, len(sample), want, sizes, cuts, places)
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
