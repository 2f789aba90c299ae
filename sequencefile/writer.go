package sequencefile

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/sequencefile/writable"
)

// Options of a file that is written. Zero values mean Hadoop's defaults.
type Options struct {
	Header
	SyncInterval int            // bytes
	BlockSize    int            // bytes of keys and values, with Block
	Sync         [syncSize]byte // zero: random
}

// OptionsOf returns the compression and the size of a block that properties of a job ask for.
func OptionsOf(property func(name string) string) (o Options, err error) {
	if text := property("io.seqfile.compress.blocksize"); text != "" {
		if o.BlockSize, err = strconv.Atoi(text); err != nil {
			return o, fmt.Errorf("property io.seqfile.compress.blocksize=%q: must be a whole number", text)
		}
	}
	const compress = "mapreduce.output.fileoutputformat.compress"
	if property(compress) != "true" {
		return o, nil
	}
	if o.Compression, err = ParseCompression(property(compress + ".type")); err != nil || o.Compression == None {
		return o, err
	}
	o.Codec, err = compression.Named(property(compress + ".codec"))
	return o, err
}

// Writer writes a file. Its first error is final.
type Writer struct {
	o        Options
	w        io.Writer
	at       int64 // bytes written
	lastSync int64 // offset after the last sync mark; 0: none
	buf      []byte
	packer   packer
	block    block
	err      error
}

// block is the records that wait for the end of their block.
type block struct {
	records                                int64
	keyLengths, keys, valueLengths, values []byte
}

// NewWriter writes the header of a file.
func NewWriter(w io.Writer, o Options) (*Writer, error) {
	if o.SyncInterval == 0 {
		o.SyncInterval = DefaultSyncInterval
	}
	if o.BlockSize == 0 {
		o.BlockSize = DefaultBlockSize
	}
	if (o.Compression == None) != (o.Codec == nil) {
		return nil, fmt.Errorf("compression %v with codec %v: want both or none", o.Compression, o.Codec)
	}
	if o.Sync == [syncSize]byte{} {
		if _, err := rand.Read(o.Sync[:]); err != nil {
			return nil, err
		}
	}
	f := &Writer{o: o, w: w, packer: packer{codec: o.Codec}}
	f.put(f.header())
	return f, f.err
}

func (f *Writer) header() []byte {
	b := append([]byte(magic), version)
	b = appendText(appendText(b, f.o.KeyClass), f.o.ValueClass)
	b = append(b, flag(f.o.Compression != None), flag(f.o.Compression == Block))
	if f.o.Codec != nil {
		b = appendText(b, f.o.Codec.Class())
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.o.Metadata)))
	for _, name := range slices.Sorted(maps.Keys(f.o.Metadata)) {
		b = appendText(appendText(b, name), f.o.Metadata[name])
	}
	return append(b, f.o.Sync[:]...)
}

func appendText(dst []byte, s string) []byte {
	return append(writable.AppendVLong(dst, int64(len(s))), s...)
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func (f *Writer) put(b []byte) {
	if f.err == nil {
		_, f.err = f.w.Write(b)
		f.at += int64(len(b))
	}
}

// Append writes a record: a key and a value, encoded by their classes.
func (f *Writer) Append(key, value []byte) error {
	if len(key) > math.MaxInt32-len(value) && f.err == nil {
		f.err = fmt.Errorf("%w: a key of %d bytes and a value of %d bytes", ErrTooLarge, len(key), len(value))
	}
	if f.err != nil {
		return f.err
	}
	if f.o.Compression == Block {
		b := &f.block
		b.records++
		b.keyLengths, b.keys = writable.AppendVLong(b.keyLengths, int64(len(key))), append(b.keys, key...)
		b.valueLengths, b.values = writable.AppendVLong(b.valueLengths, int64(len(value))), append(b.values, value...)
		if len(b.keys)+len(b.values) >= f.o.BlockSize {
			f.endBlock()
		}
		return f.err
	}
	if f.o.Compression == PerRecord {
		if value, f.err = f.packer.pack(value); f.err != nil {
			return f.err
		}
	}
	if f.at >= f.lastSync+int64(f.o.SyncInterval) {
		f.mark()
	}
	f.buf = binary.BigEndian.AppendUint32(f.buf[:0], uint32(len(key)+len(value)))
	f.buf = binary.BigEndian.AppendUint32(f.buf, uint32(len(key)))
	f.buf = append(append(f.buf, key...), value...)
	f.put(f.buf)
	return f.err
}

// mark writes a sync mark, unless one was just written.
func (f *Writer) mark() {
	if f.at == f.lastSync {
		return
	}
	f.put(append(binary.BigEndian.AppendUint32(nil, math.MaxUint32), f.o.Sync[:]...))
	f.lastSync = f.at
}

// Sync ends the open block, or writes a sync mark. A piece of the file can begin there.
func (f *Writer) Sync() error {
	if f.o.Compression == Block {
		f.endBlock()
	} else {
		f.mark()
	}
	return f.err
}

func (f *Writer) endBlock() {
	b := &f.block
	if b.records == 0 {
		return
	}
	f.mark()
	f.put(writable.AppendVLong(nil, b.records))
	for _, content := range [][]byte{b.keyLengths, b.keys, b.valueLengths, b.values} {
		packed, err := f.packer.pack(content)
		if err != nil && f.err == nil {
			f.err = err
		}
		f.put(writable.AppendVLong(nil, int64(len(packed))))
		f.put(packed)
	}
	*b = block{0, b.keyLengths[:0], b.keys[:0], b.valueLengths[:0], b.values[:0]}
}

// Close ends the last block. It does not close the file below.
func (f *Writer) Close() error {
	f.endBlock()
	err := f.err
	if f.err == nil {
		f.err = errors.New("a record after the end of the file")
	}
	return err
}
