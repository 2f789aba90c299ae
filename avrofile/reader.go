package avrofile

import (
	"io"
	"iter"

	"github.com/twmb/avro"

	"github.com/quernmr/quern/avrofile/container"
)

// Error is an error in a file, with the offset of the header or block that has it.
type Error = container.Error

// Limits of what a reader takes. Zero values mean 64 MiB for a record, and no limit of the ratio.
type Limits = container.Limits

// Reader reads the records of a file.
type Reader struct {
	*container.Reader
	Schema *avro.Schema // with which the file was written
}

// NewReader reads the header of a file with a size.
func NewReader(file io.ReaderAt, size int64, l Limits) (*Reader, error) {
	c, err := container.NewReader(file, size, l)
	if err != nil {
		return nil, err
	}
	r := &Reader{Reader: c}
	if r.Schema, err = avro.Parse(string(c.Metadata["avro.schema"])); err != nil {
		c.Close()
		return nil, container.Damaged(0, "schema of the file: %w", err)
	}
	return r, nil
}

// Records returns the records of a piece of a file. If schema is not nil, they are resolved to it. After an error
// there are no more.
func Records[T any](r *Reader, schema *avro.Schema, from, to int64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var record, zero T
		resolved := r.Schema
		if schema != nil {
			var err error
			if resolved, err = avro.Resolve(r.Schema, schema); err != nil {
				yield(zero, container.Damaged(0, "the file's schema does not match the program's: %w", err))
				return
			}
		}
		decode := func(content []byte) ([]byte, error) {
			record = zero
			return resolved.Decode(content, &record)
		}
		for err := range r.Reader.Records(from, to, decode) {
			if err != nil {
				record = zero
			}
			if !yield(record, err) {
				return
			}
		}
	}
}
