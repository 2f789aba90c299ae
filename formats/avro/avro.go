// Package avro is the input and output format of Avro's object container files for jobs. Records are Go values that
// the library github.com/twmb/avro decodes and encodes; its documentation has the rules for types and struct tags:
//
//	type Count struct {
//		Word string `avro:"word"`
//		N    int64  `avro:"n"`
//	}
//
//	in := avro.Input[Count](nil)                                // records of Count
//	job.Format = avro.Output(nil, func(word string, n int64) Count { return Count{word, n} })
//
// Input decodes records by the schema of each file, or resolves them to a schema of the program: fields that the
// file lacks get their defaults, and others are left out. A file with a schema that does not match is refused.
//
// Maps split a file at its sync marks. Names of output files end in .avro, as part-r-00000.avro. Output is
// compressed by the properties of Hadoop and Avro:
//
//	mapreduce.output.fileoutputformat.compress          true or false
//	avro.output.codec                                   the codec: null, deflate, snappy, zstandard, bzip2
//	mapreduce.output.fileoutputformat.compress.codec    the codec, if avro.output.codec is not set
//	avro.mapred.deflate.level, avro.mapred.zstd.level   the codec's level
//	avro.mapred.sync.interval                           bytes of a block's content
//
// Records, and everything in them, may be kept. Maps are written in the order of their keys, so that each attempt of a task
// writes the same bytes.
package avro

import (
	"bufio"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	lib "github.com/twmb/avro"

	"github.com/quernmr/quern/avrofile"
	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/formats/internal/setting"
	"github.com/quernmr/quern/mapreduce"
)

// Name is the name of both formats in a job's description.
const Name = "avro"

// Properties that this package reads.
const (
	compress      = "mapreduce.output.fileoutputformat.compress"
	compressCodec = "mapreduce.output.fileoutputformat.compress.codec"
	outputCodec   = "avro.output.codec"
	deflateLevel  = "avro.mapred.deflate.level"
	zstdLevel     = "avro.mapred.zstd.level"
	syncInterval  = "avro.mapred.sync.interval"
)

// Schema is a schema of the library.
type Schema = lib.Schema

// MustParse returns the schema with a JSON text, for variables of packages. It panics if there is none.
func MustParse(text string) *Schema { return lib.MustParse(text) }

// Input reads records of type R. If schema is nil, they are decoded by each file's schema, else resolved to this one.
// Paths are as for [mapreduce.Lines].
func Input[R any](schema *Schema, paths ...string) mapreduce.Input[R] {
	return mapreduce.NewInput(Name, func(s mapreduce.Split, file io.ReaderAt) iter.Seq2[R, error] {
		return func(yield func(R, error) bool) {
			r, err := open(s, file)
			if err != nil {
				yield(*new(R), bad(err))
				return
			}
			defer r.Close()
			for record, err := range avrofile.Records[R](r, schema, s.Offset, s.Offset+s.Length) {
				if !yield(record, bad(err)) {
					return
				}
			}
		}
	}, paths...)
}

// bad marks errors of a file's content, but not those of reading it.
func bad(err error) error {
	if _, ok := errors.AsType[*avrofile.Error](err); ok {
		return mapreduce.BadInput(err)
	}
	return err
}

// open opens a file with the job's limits.
func open(s mapreduce.Split, file io.ReaderAt) (*avrofile.Reader, error) {
	record, ratio, err := setting.Limits(s.Property)
	if err != nil {
		return nil, err
	}
	return avrofile.NewReader(file, s.Size, avrofile.Limits{MaxRecord: record, MaxRatio: ratio})
}

// Format writes files of records of type R; see [Output].
type Format[K, V, R any] struct {
	Metadata map[string]string // of each file

	schema *Schema
	record func(K, V) R
	err    error
}

// Output returns the format of files with a schema. The function makes the record of a key and a value. If schema is
// nil, the library derives it from R, which must be a struct.
func Output[K, V, R any](schema *Schema, record func(K, V) R) *Format[K, V, R] {
	f := &Format[K, V, R]{schema: schema, record: record}
	if schema == nil {
		f.schema, f.err = lib.SchemaFor[R]()
	}
	return f
}

func (*Format[K, V, R]) Name() string { return Name }

// Suffix is that of the files' names.
func (*Format[K, V, R]) Suffix() string { return avrofile.Suffix }

// Create begins a file. Its sync marker follows from the task, so that each attempt writes the same bytes.
func (f *Format[K, V, R]) Create(t *mapreduce.Task, file io.Writer) (mapreduce.FileWriter[K, V], error) {
	if f.err != nil {
		return nil, fmt.Errorf("derive the schema of the output: %w", f.err)
	}
	o, err := options(t.Property)
	if err != nil {
		return nil, err
	}
	o.Metadata, o.Sync = f.Metadata, md5.Sum([]byte(t.ID))
	buffer := bufio.NewWriterSize(file, 256<<10)
	w, err := avrofile.NewWriter(buffer, f.schema, o)
	return &writer[K, V, R]{Format: f, file: w, buffer: buffer}, err
}

// options returns the options of a file by the job's properties, as Avro's output formats choose them.
func options(property func(name string) string) (o avrofile.Options, err error) {
	block, err := setting.Number(property, syncInterval)
	if err != nil {
		return o, err
	}
	o.BlockSize, o.Level = int(block), avrofile.DefaultLevel
	if property(compress) != "true" {
		return o, nil
	}
	if o.Codec = property(outputCodec); o.Codec == "" {
		if o.Codec, err = codecOf(property(compressCodec)); err != nil {
			return o, err
		}
	}
	if name := levels[o.Codec]; name != "" {
		level, err := setting.Number(property, name)
		o.Level = int(level)
		return o, err
	}
	return o, nil
}

// levels are the properties with the levels of codecs.
var levels = map[string]string{"deflate": deflateLevel, "zstandard": zstdLevel}

// codecOf returns Avro's codec for one of Hadoop's.
func codecOf(class string) (string, error) {
	codec, err := compression.Named(class)
	if err != nil {
		return "", err
	}
	switch codec.Name {
	case "deflate", "gzip":
		return "deflate", nil
	case "zstd":
		return "zstandard", nil
	case "bzip2", "snappy":
		return codec.Name, nil
	}
	return "", fmt.Errorf("property %s=%s: Avro files have no codec %s; set %s to one of %s", compressCodec, class, codec.Name, outputCodec, strings.Join(avrofile.Codecs(), ", "))
}

type writer[K, V, R any] struct {
	*Format[K, V, R]
	file   *avrofile.Writer
	buffer *bufio.Writer
}

func (w *writer[K, V, R]) Write(k K, v V) error {
	record := w.record(k, v)
	return w.file.Encode(&record)
}

func (w *writer[K, V, R]) Close() error { return errors.Join(w.file.Close(), w.buffer.Flush()) }
