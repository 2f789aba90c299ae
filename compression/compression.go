// Package compression reads and writes compressed files as Hadoop does: a codec is found by a
// file's suffix, by Hadoop's class or by its name.
//
//	deflate  .deflate  zlib streams
//	gzip     .gz       gzip members
//	bzip2    .bz2      bzip2 streams; can be read from the middle, see bzip2.go
//	lz4      .lz4      Hadoop's blocks, see blocks.go
//	snappy   .snappy   Hadoop's blocks, see blocks.go
//	zstd     .zst      Zstandard frames, also skippable ones
//
// Hadoop's own lz4 and snappy files are not those of the programs lz4 and snzip.
//
// Streams, members, frames and blocks may follow each other in one file: all are read. Other bytes
// after them are an error. All but lz4, snappy and some zstd frames have checksums.
//
// A [Reader] takes memory in proportion to a codec's window or block, never to a length that a
// file claims. Of a window or block it reads at most [MaxBlock] bytes. [Reader.MaxRatio] ends
// the reading of files that become too large.
//
// A Reader or Writer is for one goroutine at a time.
package compression

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// MaxBlock limits the bytes of a zstd window, and of a compressed block of lz4 or snappy. It is the
// window of zstd --long.
const MaxBlock = 128 << 20

// Codec is a format of compressed files.
type Codec struct {
	Name    string   // gzip
	Suffix  string   // .gz
	Classes []string // Hadoop's, without package
	Content string   // for messages: gzip data
	Splits  bool     // reading can begin in the middle of a file

	decoder func() decoder
	encoder func(io.Writer) (io.WriteCloser, error)
}

// codecs lists all codecs.
var codecs = []*Codec{
	{Name: "bzip2", Suffix: ".bz2", Classes: []string{"BZip2Codec"}, Content: "bzip2 data", Splits: true, decoder: newBzip2Decoder, encoder: newBzip2Writer},
	{Name: "deflate", Suffix: ".deflate", Classes: []string{"DefaultCodec", "DeflateCodec"}, Content: "zlib data", decoder: newZlibDecoder, encoder: newZlibWriter},
	{Name: "gzip", Suffix: ".gz", Classes: []string{"GzipCodec"}, Content: "gzip data", decoder: newGzipDecoder, encoder: newGzipWriter},
	{Name: "lz4", Suffix: ".lz4", Classes: []string{"Lz4Codec"}, Content: "LZ4 data in Hadoop's blocks", decoder: newLZ4Decoder, encoder: newLZ4Writer},
	{Name: "snappy", Suffix: ".snappy", Classes: []string{"SnappyCodec"}, Content: "Snappy data in Hadoop's blocks", decoder: newSnappyDecoder, encoder: newSnappyWriter},
	{Name: "zstd", Suffix: ".zst", Classes: []string{"ZStandardCodec"}, Content: "zstd data", decoder: newZstdDecoder, encoder: newZstdWriter},
}

// Codecs returns all codecs, sorted by name.
func Codecs() []*Codec { return slices.Clone(codecs) }

// hadoopPackage has Hadoop's codecs.
const hadoopPackage = "org.apache.hadoop.io.compress."

// Class returns the name of Hadoop's class.
func (c *Codec) Class() string { return hadoopPackage + c.Classes[0] }

// ErrUnknown reports a codec that this package does not have.
var ErrUnknown = errors.New("unknown codec")

// Named returns the codec with a name: one of Hadoop's class names, with or without package, or
// the codec's own name in any case.
func Named(name string) (*Codec, error) {
	class := strings.TrimPrefix(name, hadoopPackage)
	var known []string
	for _, c := range codecs {
		if slices.Contains(c.Classes, class) || strings.EqualFold(name, c.Name) {
			return c, nil
		}
		known = append(known, c.Classes[0])
	}
	reason := ""
	if strings.Contains(strings.ToLower(class), "lzo") {
		reason = ": LZO's library is under the GPL"
	}
	return nil, fmt.Errorf("%w %q%s; there are %s", ErrUnknown, name, reason, strings.Join(known, ", "))
}

// OfFile returns the codec of a file by its name's suffix, in any case; nil if it has none.
func OfFile(name string) *Codec {
	base := path.Base(name)
	for _, c := range codecs {
		if len(base) > len(c.Suffix) && strings.EqualFold(base[len(base)-len(c.Suffix):], c.Suffix) {
			return c
		}
	}
	return nil
}

// Writer compresses one file after another.
type Writer struct{ io.WriteCloser }

// NewWriter returns a writer of a compressed file. Close completes the data and leaves w open.
func (c *Codec) NewWriter(w io.Writer) (*Writer, error) {
	encoder, err := c.encoder(w)
	return &Writer{encoder}, err
}

// Reset begins another file, after Close.
func (w *Writer) Reset(to io.Writer) error {
	switch encoder := w.WriteCloser.(type) {
	case interface{ Reset(io.Writer) error }:
		return encoder.Reset(to)
	case interface{ Reset(io.Writer) }:
		encoder.Reset(to)
	}
	return nil
}
