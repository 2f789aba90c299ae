package avrofile

import (
	"io"

	"github.com/twmb/avro"
	"github.com/twmb/avro/ocf"
)

// Options of a file.
type Options struct {
	Codec     string            // one of [Codecs]; empty: null
	Level     int               // of deflate and zstandard; see [DefaultLevel]
	BlockSize int               // bytes of content with which a block ends; 0: 64 KiB
	Metadata  map[string]string // names that begin with "avro." are refused
	Sync      [syncSize]byte    // zero: random
}

// NewWriter begins a file of records of a schema. Close completes it and leaves w open.
func NewWriter(w io.Writer, schema *avro.Schema, o Options) (*ocf.Writer, error) {
	if o.Codec == "" {
		o.Codec = "null"
	}
	codec, err := compressor(o.Codec, o.Level)
	if err != nil {
		return nil, err
	}
	metadata := make(map[string][]byte)
	for name, value := range o.Metadata {
		metadata[name] = []byte(value)
	}
	options := []ocf.WriterOpt{ocf.WithCodec(codec), ocf.WithBlockBytes(o.BlockSize), ocf.WithMetadata(metadata)}
	if o.Sync != [syncSize]byte{} {
		options = append(options, ocf.WithSyncMarker(o.Sync))
	}
	return ocf.NewWriter(w, schema, options...)
}
