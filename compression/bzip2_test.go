package compression

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	dsnet "github.com/dsnet/compress/bzip2"
	"pgregory.net/rapid"
)

// bzipped compresses contents, each in a stream with blocks of 100,000 bytes.
func bzipped(contents ...[]byte) []byte {
	var file bytes.Buffer
	for _, content := range contents {
		w, err := dsnet.NewWriter(&file, &dsnet.WriterConfig{Level: 1})
		if err != nil {
			panic(err)
		}
		if _, err := w.Write(content); err != nil {
			panic(err)
		}
		if err := w.Close(); err != nil {
			panic(err)
		}
	}
	return file.Bytes()
}

// pieceOf returns the content of a piece and what follows it in the file, as far as it is read.
func pieceOf(r *Reader, file []byte, p Piece) (content, after []byte, err error) {
	r.Reset(bytes.NewReader(file[p.From:]), p)
	all := []byte{}
	for buf := make([]byte, 1000); ; {
		n, err := r.Read(buf)
		all = append(all, buf[:n]...)
		end := min(r.End(), int64(len(all)))
		if err == io.EOF || err == nil && r.End() < int64(len(all)) {
			return all[:end], all[end:], nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// TestPieces: for every size of pieces, the contents of the pieces are the content of the file, in order.
// The content after a piece's end is that of the next piece.
func TestPieces(t *testing.T) {
	content := text(250_000, 1)
	c, _ := Named("bzip2")
	r := c.NewReader()
	for name, file := range map[string][]byte{
		"one stream":        bzipped(content),
		"several streams":   bzipped(content[:120_000], content[120_000:120_001], nil, content[120_001:]),
		"an empty stream":   bzipped(nil, content[:100], nil),
		"only an empty one": bzipped(nil),
	} {
		whole, err := unpacked(r, file)
		if err != nil {
			t.Fatal(err)
		}
		sizes := []int64{1, 2, 3, 4, 5, 37, 1000, int64(len(file)) / 3, int64(len(file)) - 1, int64(len(file)), math.MaxInt64 / 2}
		if len(file) > 500 {
			sizes = sizes[5:]
		}
		for _, size := range sizes {
			var got []byte
			first := -1
			for from := int64(0); from < int64(len(file)); from += size {
				part, after, err := pieceOf(r, file, Piece{from, from + size})
				if err != nil {
					t.Fatalf("%s, pieces of %d at %d: %v", name, size, from, err)
				}
				if r.First() && (len(part) > 0 || len(after) > 0) {
					if first >= 0 && len(got) > 0 {
						t.Errorf("%s, pieces of %d: two begin with the first byte", name, size)
					}
					first = len(got)
				}
				got = append(got, part...)
				if !bytes.HasPrefix(whole[len(got):], after) {
					t.Fatalf("%s, pieces of %d at %d: wrong content after it", name, size, from)
				}
			}
			if !bytes.Equal(got, whole) || first > 0 {
				t.Errorf("%s, pieces of %d: %d bytes of %d, first at %d", name, size, len(got), len(whole), first)
			}
		}
	}
}

// falseMark returns content with a mark in its compressed block, at bit 121: the bits there say which
// bytes occur in the block.
func falseMark(mark uint64) []byte {
	var content []byte
	for i := range markBits {
		if mark>>(markBits-1-i)&1 == 1 {
			content = append(content, byte(i))
		}
	}
	return bytes.Repeat(content, 40)
}

// TestFalseMarks: the bits of a mark within a block do not end it.
func TestFalseMarks(t *testing.T) {
	c, _ := Named("bzip2")
	r := c.NewReader()
	for _, mark := range []uint64{blockMark, endMark} {
		odd := falseMark(mark)
		file := bzipped(odd, text(1000, 1), odd)
		s := &markScanner{source: bytes.NewReader(file)}
		var marks []int64
		for at, ok := s.find(0, math.MaxInt64); ok; at, ok = s.find(at+1, math.MaxInt64) {
			marks = append(marks, at)
		}
		if len(marks) != 8 || marks[1] != firstMark+121 {
			t.Fatalf("marks at %v: want a false one at %d", marks, firstMark+121)
		}
		want := slices.Concat(odd, text(1000, 1), odd)
		if got, err := unpacked(r, file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%x: %d bytes of %d, %v", mark, len(got), len(want), err)
		}
		if _, _, err := pieceOf(r, file, Piece{marks[1] / 8, math.MaxInt64}); err == nil {
			t.Error("a piece that begins at a false mark is read without an error")
		}
	}
}

// TestStreamChecksum: a stream that lacks a block is an error, although each of its blocks is right.
func TestStreamChecksum(t *testing.T) {
	file := bzipped(text(250_000, 1))
	s := &markScanner{source: bytes.NewReader(file)}
	first, _ := s.find(0, math.MaxInt64)
	second, _ := s.find(first+1, math.MaxInt64)
	third, _ := s.find(second+1, math.MaxInt64)
	short := appendBits(s.bits(0, second), second, s.bits(third, s.end()))
	c, _ := Named("bzip2")
	if _, err := unpacked(c.NewReader(), short); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// appendBits appends whole bytes after the first n bits of dst. The rest of the byte with the last
// of these bits is zero.
func appendBits(dst []byte, n int64, more []byte) []byte {
	shift := uint(n % 8)
	for _, b := range more {
		if shift > 0 {
			dst[len(dst)-1] |= b >> shift
		}
		dst = append(dst, b<<((8-shift)%8))
	}
	return dst
}

func bigEndian(value uint64, bits int) []byte {
	return binary.BigEndian.AppendUint64(nil, value<<(64-bits))[:bits/8]
}

// TestLikeLibrary: the standard library reads the same content, and refuses the same damaged files, except for tables that
// cannot be right.
func TestLikeLibrary(t *testing.T) {
	c, _ := Named("bzip2")
	r := c.NewReader()
	check := func(t *rapid.T, file, content []byte, damaged bool) {
		want, wantErr := io.ReadAll(bzip2.NewReader(bytes.NewReader(file)))
		if wantErr != nil && strings.Contains(wantErr.Error(), "randomized") {
			return // the bit that says so
		}
		got, err := unpacked(r, file)
		// The library guesses if a table has too many or too few codes, see TestSuperfluousLevel.
		if damaged && (errors.Is(err, errCodes) || lacksCodes(file) && (errors.Is(err, errBlock) || bytes.Equal(got, content))) {
			return
		}
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, %v; the library reads %d, %v", len(got), err, len(want), wantErr)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		var content []byte
		for range rapid.IntRange(1, 20).Draw(t, "parts") {
			part := rapid.SliceOfN(rapid.Byte(), 1, 30).Draw(t, "part")
			if rapid.Bool().Draw(t, "noise") {
				part = noise(rapid.IntRange(1, 3000).Draw(t, "size"), rapid.Uint64().Draw(t, "seed"))
			}
			content = append(content, bytes.Repeat(part, rapid.IntRange(1, 300/len(part)+1).Draw(t, "times"))...)
		}
		file := bzipped(content)
		check(t, file, content, false)
		file[rapid.IntRange(14, len(file)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		check(t, file, content, true)
	})
}

// TestManyBlocks: blocks of all sizes, which are decoded together, keep their order. If one is damaged, the content before
// it is read, and the error has its position.
func TestManyBlocks(t *testing.T) {
	c, _ := Named("bzip2")
	r := c.NewReader()
	rapid.Check(t, func(t *rapid.T) {
		var file, want []byte
		blocks := rapid.IntRange(1, 3*maxAhead).Draw(t, "blocks")
		damaged := rapid.IntRange(0, 2*blocks).Draw(t, "damaged") // often none
		from, to, sound := 0, 0, 0
		for i := range blocks {
			content := text(rapid.IntRange(1, 3000).Draw(t, "size"), uint64(i))
			stream := bzipped(content)
			if i == damaged {
				stream[len(header)+markBits/8] ^= 1 // of the block's checksum
				from, to, sound = len(file), len(file)+len(stream), len(want)
			}
			file, want = append(file, stream...), append(want, content...)
		}
		got, err := unpacked(r, file)
		if damaged >= blocks {
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%d bytes of %d, %v", len(got), len(want), err)
			}
			return
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Offset < int64(from) || e.Offset >= int64(to) || !bytes.Equal(got, want[:sound]) {
			t.Fatalf("%d bytes of %d before the damage at %d, %v", len(got), sound, from, err)
		}
	})
}

// TestDamagedPieces: if a file of several blocks is damaged, a piece of it is an error, or all pieces together have the
// right content.
func TestDamagedPieces(t *testing.T) {
	contents := [][]byte{text(101_000, 2)} // two blocks
	for i := range uint64(8) {
		contents = append(contents, text(2000, i))
	}
	content, file := bytes.Join(contents, nil), bzipped(contents...)
	c, _ := Named("bzip2")
	r := c.NewReader()
	random := rand.New(rand.NewPCG(5, 6))
	s, marks := &markScanner{source: bytes.NewReader(file)}, []int64{}
	for at, ok := s.find(0, math.MaxInt64); ok; at, ok = s.find(at+1, math.MaxInt64) {
		marks = append(marks, at/8)
	}
	for i := range 200 {
		bad := bytes.Clone(file)
		at := random.Int64N(int64(len(bad)))
		if i%2 == 0 { // near a mark
			at = min(marks[random.IntN(len(marks))]+random.Int64N(24), int64(len(bad))-1)
		}
		switch random.IntN(3) {
		case 0:
			bad[at] ^= 1 << random.IntN(8)
		case 1:
			bad = append(bad[:at], bad[min(at+1+random.Int64N(30), int64(len(bad))):]...)
		case 2:
			copy(bad[at:], make([]byte, 8))
		}
		var got []byte
		var failed error
		size := random.Int64N(int64(len(bad))) + int64(len(bad))/4
		for from := int64(0); from < int64(len(bad)) && failed == nil; from += size {
			var part []byte
			part, _, failed = pieceOf(r, bad, Piece{from, from + size})
			got = append(got, part...)
		}
		if e, ok := errors.AsType[*Error](failed); failed == nil && !bytes.Equal(got, content) || failed != nil && (!ok || e.Offset < 0 || e.Offset > int64(len(bad))) {
			t.Errorf("damage %d at %d of %d, pieces of %d: %d bytes, %v", i, at, len(bad), size, len(got), failed)
		}
	}
}

// lacksCodes reports whether some bits are no code of a table that the first block uses.
func lacksCodes(file []byte) bool {
	d := &blockDecoder{in: bitReader{data: append(slices.Clone(file[4:]), make([]byte, bitPadding)...)}}
	for _, n := range []uint{32, 16, 32, 1, 24} {
		d.in.read(n)
	}
	if _, err := d.readHead(); err != nil {
		return false
	}
	return slices.ContainsFunc(d.selectors, func(table byte) bool {
		c, coded := &d.codes[table], 0
		for n := 1; n <= maxCodeLength; n++ {
			coded += int(c.end[n]-c.first[n]) << (maxCodeLength - n)
		}
		return coded < 1<<maxCodeLength
	})
}

// TestSuperfluousLevel: in a damaged file, some bits of a table are no code. The library reads the file as if the level of
// these bits were not there. bzip2 refuses it, and so does this package.
func TestSuperfluousLevel(t *testing.T) {
	c, _ := Named("bzip2")
	file := bzipped(append([]byte{0}, noise(2, 0)...))
	file[27] ^= 1
	if _, err := io.ReadAll(bzip2.NewReader(bytes.NewReader(file))); err != nil {
		t.Fatalf("the library: %v", err)
	}
	if got, err := unpacked(c.NewReader(), file); !errors.Is(err, errBlock) || !lacksCodes(file) {
		t.Errorf("the damaged file: %q, %v", got, err)
	}
}

func BenchmarkBzip2(b *testing.B) {
	content := text(4_000_000, 1)
	c, _ := Named("bzip2")
	file := packed(c, content)
	r := c.NewReader()
	for name, read := range map[string]func() (int64, error){
		"ours": func() (int64, error) {
			r.Reset(bytes.NewReader(file), Whole)
			return io.Copy(io.Discard, r)
		},
		"library": func() (int64, error) { return io.Copy(io.Discard, bzip2.NewReader(bytes.NewReader(file))) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				if n, err := read(); n != int64(len(content)) || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// TestBits: bits that are cut out and joined are the same.
func TestBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "data")
		s := &markScanner{source: bytes.NewReader(data)}
		s.peek(0, len(data))
		bit := func(b []byte, i int64) byte { return b[i/8] >> (7 - i%8) & 1 }
		from := rapid.Int64Range(0, s.end()-1).Draw(t, "from")
		to := rapid.Int64Range(from+1, s.end()).Draw(t, "to")
		cut := s.bits(from, to)
		joined := appendBits(bytes.Clone(cut), to-from, data)
		for i := range to - from {
			if bit(cut, i) != bit(data, from+i) || bit(joined, i) != bit(data, from+i) {
				t.Fatalf("bit %d of %x from %d to %d: %x", i, data, from, to, cut)
			}
		}
		for i := range s.end() {
			if bit(joined, to-from+i) != bit(data, i) {
				t.Fatalf("bit %d after %d bits of %x: %x", i, to-from, cut, joined)
			}
		}
	})
}

// TestMarkPositions: the scanner finds a mark at every bit.
func TestMarkPositions(t *testing.T) {
	for shift := range int64(70) {
		data := append(appendBits(make([]byte, (shift+7)/8), shift, bigEndian(blockMark, markBits)), 0xff, 0xff)
		for from := range shift + 2 {
			s := &markScanner{source: bytes.NewReader(data)}
			at, ok := s.find(from, math.MaxInt64)
			if ok != (from <= shift) || ok && (at != shift || s.mark(at) != blockMark) {
				t.Fatalf("mark at %d, looked for from %d: found at %d, %v", shift, from, at, ok)
			}
		}
	}
}
