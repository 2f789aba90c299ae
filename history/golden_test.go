package history

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"

	"github.com/quernmr/quern/internal/golden"
	"github.com/quernmr/quern/wire"
)

// TestGolden pins the bytes of a record without compression: as in files, and as older
// builds wrote it, with Plans instead of a PlanLog.
func TestGolden(t *testing.T) {
	golden.Run(t, "testdata/golden/record.txt", map[string]golden.Record{
		"older": {
			Value: new(Record), Form: golden.Msgpack, Encode: wire.Marshal, Decode: wire.Unmarshal,
		},
		"file": {
			Value: new(Record), Form: golden.Msgpack, Head: len(magic),
			Adjust: func(r any) {
				p := &r.(*Record).Plans[0]
				p.Phase, p.Share, r.(*Record).PlanLog = wire.Reduce, 0.25, nil
			},
			Encode: func(r any) ([]byte, error) {
				data, err := encode(r.(*Record))
				if err != nil {
					return nil, err
				}
				body, err := gzip.NewReader(bytes.NewReader(data[len(magic):]))
				if err != nil {
					return nil, err
				}
				unpacked, err := io.ReadAll(body)
				return append([]byte(data[:len(magic)]), unpacked...), err
			},
			Decode: func(data []byte, into any) error {
				file := bytes.NewBuffer(data[:len(magic):len(magic)])
				zip := gzip.NewWriter(file)
				_, err := zip.Write(data[len(magic):])
				if err = errors.Join(err, zip.Close()); err != nil {
					return err
				}
				r, err := decode(file)
				if err == nil {
					*into.(*Record) = *r
				}
				return err
			},
		},
	})
}
