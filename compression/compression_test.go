package compression

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
)

// packed compresses content with a codec's writer, in pieces.
func packed(c *Codec, contents ...[]byte) []byte {
	var file, ignored bytes.Buffer
	w, err := c.NewWriter(&ignored)
	if err != nil {
		panic(err)
	}
	for _, content := range contents {
		if err := w.Reset(&file); err != nil {
			panic(err)
		}
		for len(content) > 0 {
			n := min(len(content), 10_000)
			if _, err := w.Write(content[:n]); err != nil {
				panic(err)
			}
			content = content[n:]
		}
		if err := w.Close(); err != nil {
			panic(err)
		}
	}
	return file.Bytes()
}

func unpacked(r *Reader, file []byte) ([]byte, error) {
	r.Reset(bytes.NewReader(file), Whole)
	return io.ReadAll(r)
}

// text returns content that compresses, with a seed of its own.
func text(size int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	for b.Len() < size {
		b.WriteString(strings.Repeat(string(rune('a'+r.IntN(26))), r.IntN(9)))
		b.WriteByte(" \n"[r.IntN(2)])
	}
	return b.Bytes()[:size]
}

func noise(size int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 2))
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func forEach(t *testing.T, f func(t *testing.T, c *Codec)) {
	for _, c := range codecs {
		t.Run(c.Name, func(t *testing.T) { f(t, c) })
	}
}

// TestRoundTrip: what a writer writes, a reader reads: of any size, and several files one after the other.
func TestRoundTrip(t *testing.T) {
	forEach(t, func(t *testing.T, c *Codec) {
		r := c.NewReader()
		defer r.Close()
		more := packed(c, []byte("and more"), nil)
		for _, content := range [][]byte{nil, {'x'}, text(1000, 1), text(218_422, 2), text(218_423, 3), text(261_101, 4), text(1_000_000, 5), noise(300_000, 6), make([]byte, 3_000_000)} {
			both := packed(c, content, []byte("and more"), nil)
			file, ok := bytes.CutSuffix(both, more)
			if !ok {
				t.Errorf("%d bytes: Reset does not begin a new file", len(content))
			}
			if got, err := unpacked(r, file); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%d bytes: read %d, %v", len(content), len(got), err)
			}
			twice := append(both, file...)
			want := bytes.Join([][]byte{content, []byte("and more"), content}, nil)
			if got, err := unpacked(r, twice); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes and more in one file: read %d, %v", len(content), len(got), err)
			}
			if !r.First() {
				t.Error("a whole file does not begin with its first byte")
			}
		}
	})
}

// TestEmptyReads: reads of no bytes return, and lose nothing.
func TestEmptyReads(t *testing.T) {
	forEach(t, func(t *testing.T, c *Codec) {
		content := text(100_000, 1)
		r := c.NewReader()
		defer r.Close()
		r.Reset(bytes.NewReader(packed(c, content)), Whole)
		var got []byte
		for part := make([]byte, 999); ; {
			if n, err := r.Read(nil); n != 0 || err != nil && err != io.EOF {
				t.Fatal(n, err)
			}
			n, err := r.Read(part)
			if got = append(got, part[:n]...); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, content) {
			t.Errorf("%d bytes of %d", len(got), len(content))
		}
	})
}

// TestTruncated: a file that ends too early is an error, wherever it ends.
func TestTruncated(t *testing.T) {
	forEach(t, func(t *testing.T, c *Codec) {
		r := c.NewReader()
		defer r.Close()
		file := packed(c, text(300, 1))
		for n := range file {
			_, err := unpacked(r, file[:n])
			if e, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, ErrTruncated) || e.Offset > int64(n) || !strings.Contains(err.Error(), c.Content) {
				t.Errorf("%d of %d bytes: %v", n, len(file), err)
			}
		}
	})
}

// TestForeign: a file of something else, or with something else after it, is an error that says so.
func TestForeign(t *testing.T) {
	forEach(t, func(t *testing.T, c *Codec) {
		r := c.NewReader()
		defer r.Close()
		if _, err := unpacked(r, []byte("a line of text\n")); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), `it begins with "a li`) {
			t.Errorf("a line of text: %v", err)
		}
	})
	for _, name := range []string{"bzip2", "deflate", "gzip", "zstd"} {
		c, _ := Named(name)
		r := c.NewReader()
		for _, other := range []string{"a line of text\n", "\x00\x00\x00\x00\x00\x00"} {
			if _, err := unpacked(r, []byte(other)); !errors.Is(err, ErrFormat) {
				t.Errorf("%s: %q: %v", name, other, err)
			}
			file := append(packed(c, text(100, 1)), other...)
			got, err := unpacked(r, file)
			if !errors.Is(err, ErrFormat) || !bytes.Equal(got, text(100, 1)) {
				t.Errorf("%s: with %q after it: %d bytes, %v", name, other, len(got), err)
			}
		}
		r.Close()
	}
}

// TestForeignFrames: files of the commands lz4 and snzip are no blocks of Hadoop.
func TestForeignFrames(t *testing.T) {
	for name, file := range map[string]string{
		"lz4":    "\x04\x22\x4d\x18\x64\x40\xa7\x05\x00\x00\x80text\n",
		"snappy": "\xff\x06\x00\x00sNaPpY\x01\x09\x00\x00\x00\x00\x00\x00text\n",
	} {
		c, _ := Named(name)
		r := c.NewReader()
		if _, err := unpacked(r, []byte(file)); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "own frames") {
			t.Errorf("%s: %v", name, err)
		}
		r.Close()
	}
}

// TestReadError: an error of reading the file is returned as it is.
func TestReadError(t *testing.T) {
	broken := errors.New("disk")
	forEach(t, func(t *testing.T, c *Codec) {
		r := c.NewReader()
		file := packed(c, noise(400_000, 1))
		for _, n := range []int{0, 1, 5, len(file) / 2} {
			r.Reset(io.MultiReader(bytes.NewReader(file[:n]), failing{broken}), Whole)
			if _, err := io.ReadAll(r); err != broken {
				t.Errorf("after %d bytes: %v", n, err)
			}
			r.Reset(io.MultiReader(bytes.NewReader(file[:n]), failing{io.ErrUnexpectedEOF}), Whole)
			if _, err := io.ReadFull(r, make([]byte, 1<<20)); err == io.ErrUnexpectedEOF || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("after %d bytes, io.ReadFull cannot tell the error from the end: %v", n, err)
			}
		}
		r.Close()
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// TestDamage: codecs with checksums never return wrong content without an error.
func TestDamage(t *testing.T) {
	forEach(t, func(t *testing.T, c *Codec) {
		r := c.NewReader()
		defer r.Close()
		content := text(2000, 7)
		file := packed(c, content[:1200], content[1200:])
		random := rand.New(rand.NewPCG(3, 4))
		failed := 0
		for range 200 {
			bad := bytes.Clone(file)
			switch at := random.IntN(len(bad)); random.IntN(4) {
			case 0:
				bad[at] ^= 1 << random.IntN(8)
			case 1:
				bad = append(bad[:at], bad[min(at+1+random.IntN(8), len(bad)):]...)
			case 2:
				bad = append(bad[:at:at], append(noise(4, random.Uint64()), bad[at:]...)...)
			case 3:
				copy(bad[at:], make([]byte, 8))
			}
			got, err := unpacked(r, bad)
			if e, ok := errors.AsType[*Error](err); err != nil && (!ok || e.Offset < 0 || e.Offset > int64(len(bad))) {
				t.Fatalf("error without an offset in the file: %v", err)
			}
			if err != nil {
				failed++
				continue
			}
			if !bytes.Equal(got, content) && c.Name != "lz4" && c.Name != "snappy" {
				t.Fatalf("wrong content without an error: %d bytes", len(got))
			}
		}
		if failed < 100 {
			t.Errorf("only %d of 200 damaged files gave errors", failed)
		}
	})
}

// TestClaims: a few bytes that claim large blocks, chunks or contents take no memory for them.
func TestClaims(t *testing.T) {
	for name, file := range map[string]string{
		"snappy": "\x7f\xff\xff\xff\x00\x00\x00\x07\xff\xff\xff\x3f\xfe\x61\x61", "lz4": "\x7f\xff\xff\xff\x00\x00\x00\x04\x1fa\x01\x00",
	} {
		c, _ := Named(name)
		for i, file := range []string{file, file[:4] + "\x07\xff\xff\xff" + file[8:], file[:4] + "\x7f\xff\xff\xff" + file[8:]} {
			membound.Bound{Free: 2 << 20}.Check(t, len(file), func() {
				_, err := unpacked(c.NewReader(), []byte(file))
				if tooLarge := i == 2; errors.Is(err, ErrFormat) != tooLarge || !tooLarge && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrTruncated) {
					t.Errorf("%s: %q: %v", name, file, err)
				}
			})
		}
	}
}

// TestRatio: reading ends when content grows beyond the ratio, and never below the free size. It takes no memory for the
// content.
func TestRatio(t *testing.T) {
	forEach(t, func(t *testing.T, c *Codec) {
		const part = 1 << 20
		file := bytes.Repeat(packed(c, make([]byte, part)), freeContent/part+1)
		r := c.NewReader()
		defer r.Close()
		read := func(file []byte, ratio int64, want error) {
			membound.Bound{Free: 64 << 20}.Check(t, 0, func() {
				r.MaxRatio = ratio
				r.Reset(bytes.NewReader(file), Whole)
				n, err := io.Copy(io.Discard, r)
				if !errors.Is(err, want) || n < freeContent || want != nil && n > freeContent+part/4 {
					t.Errorf("ratio %d: %d bytes, %v", ratio, n, err)
				}
			})
		}
		read(file, 10, ErrRatio)
		read(file[:len(file)/(freeContent/part+1)*(freeContent/part)], 1, nil)
		if c.Name == "zstd" {
			read(file, 0, nil)
			read(file, 1_000_000, nil)
		}
	})
}

// TestZstdFrames: frames and skippable frames may follow each other in any order.
func TestZstdFrames(t *testing.T) {
	c, _ := Named("zstd")
	r := c.NewReader()
	defer r.Close()
	skippable := "\x5f\x2a\x4d\x18\x05\x00\x00\x00other"
	a, b := string(packed(c, []byte("some"))), string(packed(c, []byte(" text")))
	for file, want := range map[string]string{
		a: "some", a + b: "some text", skippable: "", skippable + a: "some", a + skippable: "some", a + skippable + b: "some text",
		skippable + skippable + a + skippable + skippable + b: "some text",
	} {
		if got, err := unpacked(r, []byte(file)); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", file, got, err)
		}
		for n := len(file) - min(len(b), len(skippable)) + 1; n < len(file); n++ {
			if got, err := unpacked(r, []byte(file[:n])); !errors.Is(err, ErrTruncated) {
				t.Errorf("%q: %q, %v", file[:n], got, err)
			}
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"org.apache.hadoop.io.compress.GzipCodec": "gzip", "GzipCodec": "gzip", "gzip": "gzip", "GZIP": "gzip",
		"org.apache.hadoop.io.compress.DefaultCodec": "deflate", "DeflateCodec": "deflate", "BZip2Codec": "bzip2", "Lz4Codec": "lz4",
		"SnappyCodec": "snappy", "ZStandardCodec": "zstd",
	} {
		if c, err := Named(name); err != nil || c.Name != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"", "gzipcodec", "com.hadoop.compression.lzo.LzoCodec", "my.Codec", "other.GzipCodec"} {
		_, err := Named(name)
		if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "ZStandardCodec") || strings.Contains(name, "lzo") != strings.Contains(err.Error(), "GPL") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for file, want := range map[string]string{"hdfs://nn/a.b/x.gz": "gzip", "x.GZ": "gzip", "x.Bz2": "bzip2", "x.deflate": "deflate", "x.lz4": "lz4", "x.snappy": "snappy",
		"x.zst": "zstd", "x": "", ".gz": "", "dir/.gz": "", "gz": "", "x.gz/y": "", "x.gzip": "", "x.gz ": ""} {
		got := ""
		if c := OfFile(file); c != nil {
			got = c.Name
		}
		if got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	for file, archive := range map[string]bool{"x.lzo": false, "x.XZ": false, "x.tar": true, "x.zip": true} {
		if f, ok := ForeignFile(file); !ok || f.Archive != archive {
			t.Errorf("%s: %+v, %v", file, f, ok)
		}
	}
}

// TestAnyContent: readers return any content in any form of the file, read by any sizes.
func TestAnyContent(t *testing.T) {
	forEach(t, func(t *testing.T, c *Codec) {
		r := c.NewReader()
		defer r.Close()
		rapid.Check(t, func(t *rapid.T) {
			var parts [][]byte
			for range rapid.IntRange(1, 3).Draw(t, "parts") {
				part := rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n\x00\xff")), 0, 300).Draw(t, "content")
				parts = append(parts, bytes.Repeat(part, rapid.IntRange(1, 5).Draw(t, "times")))
			}
			want := bytes.Join(parts, nil)
			r.Reset(bytes.NewReader(packed(c, parts...)), Whole)
			step := rapid.IntRange(1, 500).Draw(t, "step")
			var got []byte
			for buf := make([]byte, step); ; {
				n, err := r.Read(buf)
				got = append(got, buf[:n]...)
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
		})
	})
}
