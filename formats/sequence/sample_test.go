package sequence_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/formats/sequence"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
	"github.com/quernmr/quern/sequencefile"
	"github.com/quernmr/quern/sequencefile/writable"
)

// inBlocks is a file with 200 records in compressed blocks of about a size.
func inBlocks(t *testing.T, blockSize int) string {
	t.Helper()
	codec, err := compression.Named("DefaultCodec")
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	w, err := sequencefile.NewWriter(&file, sequencefile.Options{BlockSize: blockSize,
		Header: sequencefile.Header{KeyClass: writable.Text.Name, ValueClass: writable.Null.Name, Compression: sequencefile.Block, Codec: codec}})
	for i := 0; i < 200 && err == nil; i++ {
		err = w.Append(fmt.Appendf(nil, "\x03%03d", i), nil)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return file.String()
}

type line = mapreduce.Pair[string, struct{}]

// TestSampleOfBlocks: the records of a compressed block have one offset. Each is drawn by itself, and the same ones for every splits
// (mrtest cuts the files in other ways).
func TestSampleOfBlocks(t *testing.T) {
	for _, blockSize := range []int{100, 1 << 20} {
		files := map[string]string{"blocks": inBlocks(t, blockSize)}
		in := func() mapreduce.Input[line] { return sequence.Input(writable.Text, writable.Null) }
		half := mapreduce.Map(mapreduce.Sample(in(), 0.5, 1), func(_ *mapreduce.Task, r line, emit func(string, struct{})) error {
			emit(r.A, struct{}{})
			return nil
		})
		if n := len(strings.Fields(mrtest.RunFiles(t, mapreduce.Sort(half).Job("sample"), files).Text())); n < 60 || n > 140 {
			t.Errorf("%d of 200 records in blocks of %d bytes, want about a half", n, blockSize)
		}
		drawn, early := strings.Fields(mrtest.RunFiles(t, mapreduce.Reservoir(in(), 40, 1).Job("reservoir"), files).Text()), 0
		for _, text := range drawn {
			if text < "100" {
				early++
			}
		}
		if len(drawn) != 40 || early < 8 || early > 32 {
			t.Errorf("%d records were drawn, %d of the first half, in blocks of %d bytes: %q", len(drawn), early, blockSize, drawn)
		}
	}
}
