package compression

import (
	"bytes"
	"io"
	"testing"

	"github.com/quernmr/quern/internal/membound"
)

// FuzzReader: no file makes a reader panic, or take memory for what it only claims to have. A block of bzip2
// takes 4 MB while it is decoded, however small it is, and a zstd frame its window.
func FuzzReader(f *testing.F) {
	for i, c := range codecs {
		f.Add(byte(i), packed(c, []byte("some text, some text, some text\n"), nil))
		f.Add(byte(i), []byte("\x7f\xff\xff\xff\x7f\xff\xff\xff"))
	}
	f.Add(byte(0), bzipped(falseMark(blockMark), falseMark(endMark)))
	f.Fuzz(func(t *testing.T, codec byte, file []byte) {
		c := codecs[int(codec)%len(codecs)]
		membound.Bound{Free: 2*MaxBlock + 64<<20, PerByte: 128 << 10}.Check(t, len(file), func() {
			r := c.NewReader()
			defer r.Close()
			r.Reset(bytes.NewReader(file), Whole)
			_, err := io.CopyN(io.Discard, r, 16<<20)
			if _, inFile := err.(*Error); err != nil && err != io.EOF && !inFile {
				t.Errorf("an error without position: %v", err)
			}
		})
	})
}
