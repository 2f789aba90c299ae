package avrofile

import (
	"io"
	"maps"
	"slices"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"

	"github.com/quernmr/quern/avrofile/container"
)

// Options of a file.
type Options struct {
	Codec     string                   // one of [Codecs]; empty: null
	Level     int                      // of deflate and zstandard; see [DefaultLevel]
	BlockSize int                      // bytes of content with which a block ends; 0: 64 KiB
	Metadata  map[string]string        // names that begin with "avro." are refused
	Sync      [container.SyncSize]byte // zero: random
}

// Writer writes a file. Entries of maps are in the order of their keys, so that equal records have equal bytes.
type Writer struct {
	*ocf.Writer
	schema  *avro.Schema
	maps    *container.MapSorter // nil: there are none
	encoded []byte
}

// Encode writes a record.
func (w *Writer) Encode(record any) (err error) {
	if w.maps == nil {
		return w.Writer.Encode(record)
	}
	if w.encoded, err = w.schema.AppendEncode(w.encoded[:0], record); err != nil {
		return err
	}
	sorted, err := w.maps.Sorted(w.encoded)
	if err != nil {
		return err
	}
	_, err = w.Write(sorted)
	return err
}

// NewWriter begins a file of records of a schema. Close completes it and leaves w open.
func NewWriter(w io.Writer, schema *avro.Schema, o Options) (*Writer, error) {
	if o.Codec == "" {
		o.Codec = "null"
	}
	codec, err := compressor(o.Codec, o.Level)
	if err != nil {
		return nil, err
	}
	options := []ocf.WriterOpt{ocf.WithCodec(codec), ocf.WithBlockBytes(o.BlockSize)}
	for _, name := range slices.Sorted(maps.Keys(o.Metadata)) { // one by one, for the same order in each file
		options = append(options, ocf.WithMetadata(map[string][]byte{name: []byte(o.Metadata[name])}))
	}
	if o.Sync != [container.SyncSize]byte{} {
		options = append(options, ocf.WithSyncMarker(o.Sync))
	}
	maps, err := container.NewMapSorter(schema.String())
	if err != nil {
		return nil, err
	}
	file, err := ocf.NewWriter(w, schema, options...)
	return &Writer{Writer: file, schema: schema, maps: maps}, err
}
