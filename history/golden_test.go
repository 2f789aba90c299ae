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

// TestGolden pins the bytes without compression: of a record as in files, and as older builds wrote it, with Plans
// instead of a PlanLog; and of an index.
func TestGolden(t *testing.T) {
	golden.Run(t, "testdata/golden/record.txt", map[string]golden.Record{
		"index": {
			Value: new(Record), Form: golden.ByPosition,
			Adjust: func(r any) {
				*r.(*Record) = *r.(*Record).summary()
				j := &r.(*Record).Job
				j.Submitted, j.Prediction, j.Access = 0, wire.Prediction{}, wire.Access{} // not encoded
			},
			Encode: func(r any) ([]byte, error) {
				x := make(index)
				err := x.add(r.(*Record))
				data, encodeErr := x.encode()
				if err = errors.Join(err, encodeErr); err != nil {
					return nil, err
				}
				unpacked, err := inflate(bytes.NewReader(data), indexMagic)
				return append([]byte(indexMagic), unpacked...), err
			},
			Decode: func(data []byte, into any) error {
				x := make(index)
				if err := x.decode(bytes.NewReader(packed(data[len(indexMagic):])), nil); err != nil {
					return err
				}
				for job := range x {
					r, err := x.record(job)
					if err != nil {
						return err
					}
					*into.(*Record) = *r
				}
				return nil
			},
		},
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
