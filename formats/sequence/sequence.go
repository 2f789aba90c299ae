// Package sequence is the input and output format of Hadoop's SequenceFiles for jobs. Records have the classes that
// the program names, and Go's types follow from them:
//
//	in := sequence.Input(writable.Text, writable.Long)             // records of Pair[string, int64]
//	job.Format = sequence.Output(writable.Text, writable.Long)     // for a result of string and int64
//
// A file with other classes is refused, and the error names both. A class without name, as writable.Raw(""),
// takes files of any class.
//
// Maps split a file at its sync marks. Output is compressed by Hadoop's properties:
//
//	mapreduce.output.fileoutputformat.compress          true or false
//	mapreduce.output.fileoutputformat.compress.type     RECORD, or BLOCK for many records together
//	mapreduce.output.fileoutputformat.compress.codec    the codec
//	io.seqfile.compress.blocksize                       bytes of a block
//
// Names of output files have no suffix, as in Hadoop. A key or value of type []byte is valid until the next record,
// and strings may be kept.
package sequence

import (
	"bufio"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/quernmr/quern/formats/internal/setting"
	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/sequencefile"
	"github.com/quernmr/quern/sequencefile/writable"
)

// Name is the name of both formats in a job's description.
const Name = "sequencefile"

// Input reads SequenceFiles with keys and values of two classes. Paths are as for [mapreduce.Lines].
func Input[K, V any](key writable.Class[K], value writable.Class[V], paths ...string) mapreduce.Input[mapreduce.Pair[K, V]] {
	return mapreduce.NewInput(Name, func(s mapreduce.Split, file io.ReaderAt) iter.Seq2[mapreduce.Pair[K, V], error] {
		return func(yield func(mapreduce.Pair[K, V], error) bool) {
			for record, err := range records(s, file, key.Name, value.Name) {
				var p mapreduce.Pair[K, V]
				if err == nil {
					s.At(record.Offset, 0)
					p, err = decode(key, value, record)
				}
				if !yield(p, err) || err != nil {
					return
				}
			}
		}
	}, paths...)
}

func decode[K, V any](key writable.Class[K], value writable.Class[V], r sequencefile.Record) (p mapreduce.Pair[K, V], err error) {
	if p.A, err = key.Value(r.Key); err != nil {
		return p, mapreduce.BadInput(fmt.Errorf("the key at offset %d: %w", r.Offset, err))
	}
	if p.B, err = value.Value(r.Value); err != nil {
		return p, mapreduce.BadInput(fmt.Errorf("the value at offset %d: %w", r.Offset, err))
	}
	return p, nil
}

// records yields the encoded records of a split.
func records(s mapreduce.Split, file io.ReaderAt, keyClass, valueClass string) iter.Seq2[sequencefile.Record, error] {
	return func(yield func(sequencefile.Record, error) bool) {
		r, err := open(s, file)
		if err != nil {
			yield(sequencefile.Record{}, bad(err))
			return
		}
		defer r.Close()
		if h := r.Header; keyClass != "" && h.KeyClass != keyClass || valueClass != "" && h.ValueClass != valueClass {
			yield(sequencefile.Record{}, mapreduce.BadInput(fmt.Errorf("its keys are %s and its values %s, but the job reads %s and %s", h.KeyClass, h.ValueClass, keyClass, valueClass)))
			return
		}
		for record, err := range r.Records(s.Offset, s.Offset+s.Length) {
			if !yield(record, bad(err)) {
				return
			}
		}
	}
}

// bad marks errors of a file's content, but not those of reading it.
func bad(err error) error {
	if _, ok := errors.AsType[*sequencefile.Error](err); ok {
		return mapreduce.BadInput(err)
	}
	return err
}

// open opens a file with the job's limits.
func open(s mapreduce.Split, file io.ReaderAt) (*sequencefile.Reader, error) {
	record, ratio, err := setting.Limits(s.Property)
	if err != nil {
		return nil, err
	}
	return sequencefile.NewReader(file, s.Size, sequencefile.Limits{MaxRecord: record, MaxRatio: ratio})
}

// Format writes SequenceFiles; see [Output].
type Format[K, V any] struct {
	Metadata map[string]string // of each file

	key   writable.Class[K]
	value writable.Class[V]
}

// Output returns the format of SequenceFiles with keys and values of two classes.
func Output[K, V any](key writable.Class[K], value writable.Class[V]) *Format[K, V] {
	return &Format[K, V]{key: key, value: value}
}

func (*Format[K, V]) Name() string { return Name }

// Create begins a file. Its sync marker follows from the task, so that each attempt writes the same bytes.
func (f *Format[K, V]) Create(t *mapreduce.Task, file io.Writer) (mapreduce.FileWriter[K, V], error) {
	if f.key.Name == "" || f.value.Name == "" {
		return nil, errors.New("a class of a SequenceFile has no name")
	}
	o, err := sequencefile.OptionsOf(t.Property)
	if err != nil {
		return nil, err
	}
	o.KeyClass, o.ValueClass, o.Metadata, o.Sync = f.key.Name, f.value.Name, f.Metadata, md5.Sum([]byte(t.ID))
	buffer := bufio.NewWriterSize(file, 256<<10)
	w, err := sequencefile.NewWriter(buffer, o)
	return &writer[K, V]{Format: f, file: w, buffer: buffer}, err
}

type writer[K, V any] struct {
	*Format[K, V]
	file       *sequencefile.Writer
	buffer     *bufio.Writer
	kbuf, vbuf []byte
}

func (w *writer[K, V]) Write(k K, v V) (err error) {
	if w.kbuf, err = w.key.Append(w.kbuf[:0], k); err != nil {
		return fmt.Errorf("key as %s: %w", w.key.Name, err)
	}
	if w.vbuf, err = w.value.Append(w.vbuf[:0], v); err != nil {
		return fmt.Errorf("value as %s: %w", w.value.Name, err)
	}
	return w.file.Append(w.kbuf, w.vbuf)
}

func (w *writer[K, V]) Close() error {
	return errors.Join(w.file.Close(), w.buffer.Flush())
}
