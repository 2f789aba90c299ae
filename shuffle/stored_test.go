package shuffle

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

// store writes records with a Writer into memory.
func store(t tester, recs []rec) []byte {
	t.Helper()
	var file bytes.Buffer
	w := NewWriter(&file)
	var buf []byte
	for _, r := range recs {
		buf = AppendRecord(buf[:0], []byte(r.key), []byte(r.value))
		if err := w.Write(buf); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// stored reads a range with a Reader. It returns the records before an
// error.
func stored(file []byte, from, to int64, maxRecord int) (recs []rec, err error) {
	r, err := NewReader(context.Background(), Range{Name: "f", File: bytes.NewReader(file), Size: int64(len(file)), From: from, To: to, MaxRecord: maxRecord})
	if err != nil {
		return nil, err
	}
	for r.Next() {
		recs = append(recs, rec{0, string(r.Key()), string(r.Value())})
	}
	return recs, r.Err()
}

// TestStored checks that random adjacent ranges give each record once and in order, and
// that the file is a valid segment file.
func TestStored(t *testing.T) {
	sizes := []int{0, 1, 10, 127, 128, 1000, blockTarget - 9, blockTarget - 4, blockTarget, blockTarget + 1, 3 * blockTarget}
	rapid.Check(t, func(t *rapid.T) {
		source := rand.NewChaCha8([32]byte(binary.LittleEndian.AppendUint64(make([]byte, 24), rapid.Uint64().Draw(t, "seed"))))
		random := rand.New(source)
		var want []rec
		for range rapid.IntRange(0, 15).Draw(t, "records") {
			data := make([]byte, rapid.SampledFrom(sizes).Draw(t, "size"))
			source.Read(data)
			n := random.IntN(len(data) + 1)
			want = append(want, rec{0, string(data[:n]), string(data[n:])})
		}
		file := store(t, want)
		var got []rec
		for from := int64(0); from < int64(len(file)); {
			to := min(from+1+random.Int64N(2*blockTarget), int64(len(file)))
			some, err := stored(file, from, to, 0)
			if err != nil {
				t.Fatal(err)
			}
			got, from = append(got, some...), to
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %d records, want %d, or wrong ones", len(got), len(want))
		}
		index, err := decodeIndex(bytes.NewReader(file), int64(len(file)), tailGuess, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range index.Partitions {
			if p.Records == 0 || p.Records > 1 && p.Length > blockHeader+blockTarget {
				t.Fatalf("partition %+v is empty or more than a block", p)
			}
		}
	})
}

// TestStoredCuts checks cuts exactly at the beginnings and ends of blocks, and beside them.
func TestStoredCuts(t *testing.T) {
	value := string(make([]byte, 2*blockTarget/3))
	want := []rec{{0, "a", value}, {0, "b", value}, {0, "c", ""}, {0, "d", value + value}, {0, "e", value}}
	file := store(t, want)
	index, err := decodeIndex(bytes.NewReader(file), int64(len(file)), tailGuess, true)
	if err != nil || len(index.Partitions) < 4 {
		t.Fatalf("%+v: %v", index, err)
	}
	for _, p := range index.Partitions {
		for _, cut := range []int64{p.Offset - 1, p.Offset, p.Offset + 1, p.Offset + p.Length - 1, p.Offset + p.Length} {
			before, errBefore := stored(file, 0, cut, 0)
			after, errAfter := stored(file, cut, int64(len(file)), 0)
			if got := slices.Concat(before, after); errBefore != nil || errAfter != nil || !slices.Equal(got, want) {
				t.Errorf("cut at %d: %d and %d records, want %d in all: %v, %v", cut, len(before), len(after), len(want), errBefore, errAfter)
			}
		}
	}
}

// TestManyStored reads an index that is longer than the first read.
func TestManyStored(t *testing.T) {
	value := string(make([]byte, blockTarget+1))
	var want []rec
	for i := range tailGuess/entryBytes + 1 {
		want = append(want, rec{0, fmt.Sprint(i), value}, rec{0, "small", ""})
	}
	file := store(t, want)
	if got, err := stored(file, 0, int64(len(file)), 0); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %d records, want %d, or wrong ones: %v", len(got), len(want), err)
	}
	if _, err := decodeIndex(bytes.NewReader(file), int64(len(file)), tailGuess, true); err != nil {
		t.Error(err)
	}
}

// TestStoredDamage checks that a changed byte or a missing end never gives wrong records.
func TestStoredDamage(t *testing.T) {
	want := []rec{{0, "key", string(make([]byte, 100))}, {0, "", string(make([]byte, 2*blockTarget))}, {0, "k", "v"}}
	good := store(t, want)
	refused := func(change string, at int, file []byte) {
		t.Helper()
		got, err := stored(file, 0, int64(len(file)), 0)
		if _, corrupt := errors.AsType[*CorruptError](err); !corrupt || !slices.Equal(got, want[:len(got)]) {
			t.Fatalf("%s at %d: %d records, %v", change, at, len(got), err)
		}
	}
	for at := range good {
		if at > 500 && at < len(good)-500 && at%97 != 0 {
			continue // the bytes of the large value are equal
		}
		bad := slices.Clone(good)
		bad[at] ^= 1
		refused("changed", at, bad)
		refused("cut", at, good[:at])
	}
	large := &TooLargeError{Offset: 137, Size: 2*blockTarget + 4, Limit: 103}
	if got, err := stored(good, 0, int64(len(good)), 103); !errors.Is(err, ErrRecordTooLarge) || err.Error() != large.Error() || len(got) != 1 {
		t.Errorf("a large record above the limit: %d records, %v", len(got), err)
	}
	if got, err := stored(good, 0, int64(len(good)), 102); !errors.Is(err, ErrRecordTooLarge) || len(got) != 0 {
		t.Errorf("a record above the limit: %d records, %v", len(got), err)
	}
}

// recordingReader records the offsets of reads.
type recordingReader struct {
	*bytes.Reader
	at []int64
}

func (a *recordingReader) ReadAt(p []byte, off int64) (int, error) {
	a.at = append(a.at, off)
	return a.Reader.ReadAt(p, off)
}

// TestStoredPlaces checks the number of separate reads, because each costs a connection to a
// remote file. A range within the file needs two: for the index and for its blocks.
func TestStoredPlaces(t *testing.T) {
	file := store(t, slices.Repeat([]rec{{0, "k", string(make([]byte, blockTarget-100))}}, 4))
	size := int64(len(file))
	for _, from := range []int64{0, size / 2} {
		in := &recordingReader{Reader: bytes.NewReader(file)}
		r, err := NewReader(t.Context(), Range{Name: "f", File: in, Size: size, From: from, To: size})
		if err != nil {
			t.Fatal(err)
		}
		for r.Next() {
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		if len(in.at) < 2 || in.at[0] <= size-tailGuess || from == 0 && in.at[1] != 0 || !slices.IsSorted(in.at[1:]) || in.at[1] < from {
			t.Errorf("from %d of %d: reads at %d", from, size, in.at)
		}
	}
}

// failing is a file or writer that fails.
type failing struct{}

func (failing) ReadAt([]byte, int64) (int, error) { return 0, fs.ErrPermission }
func (failing) Write([]byte) (int, error)         { return 0, fs.ErrPermission }

func TestStoredFails(t *testing.T) {
	_, err := NewReader(t.Context(), Range{Name: "f", File: failing{}, Size: 1000})
	if unread, ok := errors.AsType[*UnreadableError](err); !ok || unread.Segment.File != "f" || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("read: %v", err)
	}
	w := NewWriter(failing{})
	if err := errors.Join(w.Write(AppendRecord(nil, nil, nil)), w.Close()); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("write: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	file := store(t, []rec{{0, "k", "v"}})
	r, err := NewReader(ctx, Range{Name: "f", File: bytes.NewReader(file), Size: int64(len(file)), To: 100})
	if err != nil {
		t.Fatal(err)
	}
	if cancel(); r.Next() || !errors.Is(r.Err(), context.Canceled) {
		t.Errorf("canceled: %v", r.Err())
	}
}

// FuzzStored reads arbitrary blocks with correct checksums and a correct index. The result
// must be records or an error.
func FuzzStored(f *testing.F) {
	f.Add([]byte{}, uint8(1))
	f.Add([]byte("\x01\x02kvw\x00\x00"), uint8(1))
	f.Add([]byte("\x01\x02kvw\x00\x00"), uint8(3))
	f.Add(append([]byte{1, 0x82, 0x80, 4}, make([]byte, blockTarget+3)...), uint8(1))
	f.Fuzz(func(t *testing.T, payload []byte, blocks uint8) {
		file, index := []byte(magic), new(Index)
		for i := range int(blocks) {
			part := payload[i*len(payload)/int(blocks) : (i+1)*len(payload)/int(blocks)]
			if len(part) == 0 {
				continue
			}
			start := len(file)
			file = append(append(file, make([]byte, blockHeader)...), part...)
			putBlockHeader(file[start:], uint32(len(part)), checksum(part))
			index.Partitions = append(index.Partitions, Partition{Offset: int64(start), Length: int64(len(file) - start), Records: 1})
		}
		file = appendIndex(file, index)
		var got []rec
		var err error
		membound.Bound{Free: 8 << 20, PerByte: 64}.Check(t, len(file), func() { got, err = stored(file, 0, int64(len(file)), 1<<20) })
		if _, corrupt := errors.AsType[*CorruptError](err); err != nil && !corrupt && !errors.Is(err, ErrRecordTooLarge) {
			t.Fatal(err)
		}
		total := 0
		for _, r := range got {
			total += len(r.key) + len(r.value)
		}
		if total > len(payload) {
			t.Fatalf("%d bytes of records from %d", total, len(payload))
		}
		if err != nil {
			return
		}
		again := store(t, got)
		if same, err := stored(again, 0, int64(len(again)), 1<<20); err != nil || !slices.Equal(same, got) {
			t.Fatalf("stored a second time: %v", err)
		}
	})
}
