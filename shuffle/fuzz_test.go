package shuffle

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/wire"
)

func FuzzIndex(f *testing.F) {
	f.Add([]byte{})
	f.Add(appendIndex([]byte(magic), &Index{})[len(magic):])
	index := Index{Partitions: []Partition{{Offset: 8, Length: 0}, {Offset: 8, Length: 20, Records: 2, Digest: 1}}}
	f.Add(append(make([]byte, 20), appendIndex(nil, &index)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := append([]byte(magic), data...)
		var index *Index
		var err error
		membound.Bound{Free: 1 << 20, PerByte: 64}.Check(t, len(file), func() {
			index, err = decodeIndex(bytes.NewReader(file), int64(len(file)), tailGuess, true)
		})
		if err != nil {
			return
		}
		// An index that decodes must encode to the same bytes.
		end := int64(len(magic))
		for _, p := range index.Partitions {
			end += p.Length
		}
		if again := appendIndex(file[:end:end], index); !bytes.Equal(again, file) {
			t.Fatalf("index %x decoded to %+v", file, index)
		}
	})
}

// bytesInput is a range of blocks in memory.
type bytesInput struct{ io.ReaderAt }

func (b bytesInput) readAt(p []byte, at int64) error {
	n, err := b.ReadAt(p, at)
	if n < len(p) {
		return err
	}
	return nil
}

func (b bytesInput) close() error { return nil }

func FuzzBlocks(f *testing.F) {
	block := func(payload []byte) []byte {
		b := append(make([]byte, blockHeader), payload...)
		putBlockHeader(b, uint32(len(payload)), checksum(payload))
		return b
	}
	f.Add([]byte{}, false)
	f.Add([]byte("\x01\x02kvw\x00\x00"), true)
	f.Add(block([]byte("\x01\x02kvw\x00\x00")), false)
	f.Add(append([]byte{1, 0x82, 0x80, 4}, make([]byte, blockTarget+3)...), true)
	f.Fuzz(func(t *testing.T, data []byte, wrap bool) {
		if wrap && len(data) > 0 { // with a correct checksum, the records are read
			data = block(data)
		}
		membound.Bound{Free: 8 << 20, PerByte: 64}.Check(t, len(data), func() {
			r := &blockReader{ctx: context.Background(), in: bytesInput{bytes.NewReader(data)}, size: int64(len(data)), seg: wire.Segment{File: "f"}}
			for m := newMerge([]source{r}); m.Next(); {
			}
		})
		r := &blockReader{ctx: context.Background(), in: bytesInput{bytes.NewReader(data)}, size: int64(len(data)), seg: wire.Segment{File: "f"}}
		m := newMerge([]source{r})
		var records []byte
		for m.Next() {
			again := make([]byte, recordSize(len(m.Key()), len(m.Value())))
			putRecord(again, m.Key(), m.Value())
			records = append(records, again...)
		}
		var corrupt *CorruptError
		if m.Err() != nil && !errors.As(m.Err(), &corrupt) {
			t.Fatal(m.Err())
		}
		if m.Err() == nil && len(records) > len(data) {
			t.Fatalf("%d bytes of records from %d bytes", len(records), len(data))
		}
	})
}
