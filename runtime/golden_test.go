package runtime

import (
	"testing"

	"github.com/quernmr/quern/internal/golden"
	"github.com/quernmr/quern/wire"
)

// TestGolden pins the bytes of files that attempts write for attempts of other builds.
func TestGolden(t *testing.T) {
	golden.Run(t, "testdata/golden/staged.txt", map[string]golden.Record{
		"manifest": {Value: new(manifest), Form: golden.Msgpack, Encode: wire.Marshal, Decode: wire.Unmarshal},
		"cuts":     {Value: new(cutsFile), Form: golden.Msgpack, Encode: encodeHashed, Decode: decodeHashed},
		"splits": {
			Value: new(splitEntry), Form: golden.ByPosition,
			Adjust: func(e any) { e.(*splitEntry).Preferred = 1 }, // there is one node
			Encode: func(e any) ([]byte, error) {
				data, _ := encodeSplits([]splitEntry{*e.(*splitEntry)})
				return data, nil
			},
			Decode: func(data []byte, into any) error {
				_, _, err := decodeSplits(data)
				if err != nil {
					return err
				}
				r, err := openEntry(data[splitsHead+16:len(data)-8], false)
				if err == nil {
					*into.(*splitEntry) = r.entry()
				}
				return err
			},
		},
		"skipped-record": golden.OfJSON(new(SkippedRecord)),
		"side-files":     {Value: new(sideFiles), Form: golden.Msgpack, Encode: encodeHashed, Decode: decodeHashed},
	})
}
