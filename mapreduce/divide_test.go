package mapreduce

import (
	"bytes"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// placedInput is an input with the offset of its current record.
type placedInput struct {
	splitReader
	chunk  mrruntime.Chunk
	offset int64
}

func (in *placedInput) Chunks() []mrruntime.Chunk          { return []mrruntime.Chunk{in.chunk} }
func (in *placedInput) Place() (file string, offset int64) { return "f", in.offset }

// TestDividingRouter compares the partitions of records with those that a twin finds, which compares each record with
// each cut. Also, the records of a key in the order of the input have partitions in this order.
func TestDividingRouter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom([]string{"", "a", "b", "c", "d"})
		cuts := make([][]byte, rapid.IntRange(1, 8).Draw(t, "cuts"))
		d := &mrruntime.Division{Places: make([]uint64, len(cuts)), Maps: rapid.IntRange(1, 4).Draw(t, "maps")}
		for i := range cuts {
			cuts[i] = []byte(key.Draw(t, "cut"))
			d.Places[i] = rapid.OneOf(rapid.Just(uint64(0)), rapid.Uint64Range(0, 1<<32-1)).Draw(t, "place")
		}
		slices.SortFunc(cuts, bytes.Compare)
		for first, last := 0, 0; first < len(cuts); first = last {
			for last = first; last < len(cuts) && bytes.Equal(cuts[first], cuts[last]); last++ {
			}
			slices.Sort(d.Places[first:last])
		}
		latest := make(map[string]int)
		for m := range d.Maps {
			in := &placedInput{chunk: mrruntime.Chunk{Offset: rapid.Int64Range(0, 1<<40).Draw(t, "offset"), Length: rapid.Int64Range(1, 1<<40).Draw(t, "length")}}
			task := &mrruntime.Task{ID: wire.AttemptID{Task: wire.TaskID{N: m}}, Cuts: cuts, Division: d}
			route := dividingRouter[string](task, in)
			offsets := rapid.SliceOf(rapid.Int64Range(0, in.chunk.Length-1)).Draw(t, "records")
			for _, at := range slices.Sorted(slices.Values(offsets)) {
				k := key.Draw(t, "key")
				in.offset = in.chunk.Offset + at
				want := 0
				for i, cut := range cuts {
					if c := bytes.Compare(cut, []byte(k)); c < 0 || c == 0 && notBefore(at, m, in.chunk.Length, d.Places[i], d.Maps) {
						want++
					}
				}
				p := route(k, []byte(k))
				if p != want || p < latest[k] {
					t.Fatalf("record of %q at %d in map %d is in partition %d, want %d; the last was in %d", k, at, m, p, want, latest[k])
				}
				latest[k] = p
			}
		}
	})
}

// notBefore reports whether a record at an offset in a map is not before a place of the input, in whole bytes.
func notBefore(at int64, m int, length int64, place uint64, maps int) bool {
	end := new(big.Int).Mul(big.NewInt(int64(place)), big.NewInt(int64(maps)))
	end.Sub(end, new(big.Int).Lsh(big.NewInt(int64(m)), 32))
	if end.Sign() <= 0 {
		return true
	}
	end.Mul(end, big.NewInt(length)).Rsh(end, 32)
	return end.Cmp(big.NewInt(at)) <= 0
}

// TestDividedFiles: a map with several files has all records of a key on the nearer side of a cut.
func TestDividedFiles(t *testing.T) {
	d := &mrruntime.Division{Places: []uint64{1 << 29, 7 << 29}, Maps: 1} // at an eighth, and at seven
	cuts := [][]byte{[]byte("k"), []byte("k")}
	if k := dividedKeys(cuts, d, 0, make([]mrruntime.Chunk, 2))[1]; k.next != 1 || k.ends != nil {
		t.Errorf("partition %d, ends %d; want 1 and none", k.next, k.ends)
	}
}

// TestDividedAtOffset: the record exactly at a cut's place is the first one beyond it.
func TestDividedAtOffset(t *testing.T) {
	in := &placedInput{chunk: mrruntime.Chunk{Offset: 10, Length: 8}}
	k := dividedKeys([][]byte{[]byte("k")}, &mrruntime.Division{Places: []uint64{1 << 31}, Maps: 1}, 0, in.Chunks())[0]
	for at, want := range map[int64]int{13: 0, 14: 1} {
		next := *k
		if in.offset = at; next.partition(in) != want {
			t.Errorf("the record at %d is not in partition %d", at, want)
		}
	}
}
