package shuffle

import (
	"math"
	"strings"
	"testing"

	"github.com/quernmr/quern/internal/golden"
)

// TestGolden pins the bytes of a segment file.
func TestGolden(t *testing.T) {
	type record struct{ Key, Value string }
	golden.Run(t, "testdata/golden/segment.txt", map[string]golden.Record{"one-record": {
		Value: new(record),
		Encode: func(r any) ([]byte, error) {
			return store(t, []rec{{0, r.(*record).Key, r.(*record).Value}}), nil
		},
		Decode: func(data []byte, into any) error {
			recs, err := stored(data, 0, math.MaxInt64, 0)
			if err == nil {
				*into.(*record) = record{recs[0].key, recs[0].value}
			}
			return err
		},
	}})
}

// TestOtherVersion checks that the error for a segment file of another version names it.
func TestOtherVersion(t *testing.T) {
	file := store(t, []rec{{0, "k", "v"}})
	for at, want := range map[int]string{
		len(magic) - 1: `segment f is corrupt at offset 0: begins with "QSEG\x00\x00\x00\x02", not as a segment file`,
		len(file) - 1:  `ends with "QSEG\x00\x00\x00\x02", not as a segment file`,
	} {
		file[at]++
		if _, err := stored(file, 0, math.MaxInt64, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		file[at]--
	}
}
