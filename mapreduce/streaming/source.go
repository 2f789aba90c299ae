package streaming

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quernmr/quern/mapreduce/internal/property"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/sequencefile"
)

// source is the input of a map.
type source struct {
	classes
	// each passes all records on, until put returns an error. They are valid until the next one.
	each func(put sink) error
}

// inputClasses returns the classes of a job's input. Those of SequenceFiles are known when a map reads them.
func (c *compiled) inputClasses() (of classes, known bool) {
	switch c.InputFormat {
	case sequenceInput, autoInput:
		return classes{}, false
	case keyValueInput, sequenceAsTextInput, streamInput:
		return texts, true
	}
	return classes{longClass, textClass}, true
}

// source returns the input of a map.
func (c *compiled) source(in *runtime.Split) (source, error) {
	switch c.InputFormat {
	case streamInput:
		return c.xmlSource(in)
	case sequenceInput, sequenceAsTextInput:
		return c.sequenceSource(in)
	case autoInput:
		if sequence, err := isSequence(in); err != nil {
			return source{}, err
		} else if sequence {
			return c.sequenceSource(in)
		}
	case keyValueInput:
		return source{texts, func(put sink) error { return c.keyValues(in, put) }}, nil
	}
	return source{classes{longClass, textClass}, func(put sink) error { return c.offsets(in, put) }}, nil
}

// offsets reads lines; the key of a line is its offset.
func (c *compiled) offsets(in *runtime.Split, put sink) error {
	var key, value []byte // used again for each record
	for line, offset := range c.textLines(in) {
		key, value = binary.BigEndian.AppendUint64(key[:0], uint64(offset)), append(value[:0], line...)
		if err := put(key, value); err != nil {
			return err
		}
	}
	return in.Err()
}

// keyValues cuts lines into keys and values.
func (c *compiled) keyValues(in *runtime.Split, put sink) error {
	separator := c.plan.Properties[property.KeyValueSeparator]
	_, size := utf8.DecodeRuneInString(separator)
	separator = separator[:size]
	var key, value []byte
	for line := range c.textLines(in) {
		first, rest, _ := strings.Cut(line, separator)
		key, value = append(key[:0], first...), append(value[:0], rest...)
		if err := put(key, value); err != nil {
			return err
		}
	}
	return in.Err()
}

// textLines cuts lines also at a CR that no LF follows, unless the job has a delimiter of its own.
func (c *compiled) textLines(in *runtime.Split) iter.Seq2[string, int64] {
	whole := c.plan.Properties["textinputformat.record.delimiter"] != ""
	return func(yield func(string, int64) bool) {
		for line := range in.Lines() {
			offset := in.Offset()
			for !whole {
				at := strings.IndexByte(line, '\r')
				if at < 0 {
					break
				}
				if !yield(line[:at], offset) {
					return
				}
				line, offset = line[at+1:], offset+int64(at)+1
				if more, _ := in.CountRecord(); !more {
					return
				}
			}
			if !yield(line, offset) {
				return
			}
		}
	}
}

// counted passes a record on that the package has read itself.
func counted(in *runtime.Split, key, value []byte, put sink) (more bool, err error) {
	more, skip := in.CountRecord()
	if more && !skip {
		err = put(key, value)
	}
	return more && err == nil, err
}

// piece opens the only piece of a file that a split has.
func piece(in *runtime.Split) (runtime.Chunk, runtime.ReadAtCloser, error) {
	chunks := in.Chunks()
	if len(chunks) != 1 {
		return runtime.Chunk{}, nil, runtime.Fatal(fmt.Errorf("the split has %d pieces of files, want 1", len(chunks)))
	}
	file, err := in.Open(chunks[0])
	return chunks[0], file, err
}

// xmlSource reads records of StreamXmlRecordReader. They are keys; values are empty.
func (c *compiled) xmlSource(in *runtime.Split) (source, error) {
	return source{texts, func(put sink) error {
		chunk, file, err := piece(in)
		if err != nil {
			return err
		}
		defer file.Close()
		from := io.NewSectionReader(file, chunk.Offset, chunk.Size-chunk.Offset)
		err = c.XML.read(from, chunk.Length, c.lineMax, func(record []byte) (bool, error) { return counted(in, record, nil, put) })
		return errors.Join(err, in.Err())
	}}, nil
}

// isSequence reports whether a split's file is a SequenceFile, as AutoInputFormat asks.
func isSequence(in *runtime.Split) (bool, error) {
	_, file, err := piece(in)
	if err != nil {
		return false, err
	}
	defer file.Close()
	begin := make([]byte, 3)
	if _, err := file.ReadAt(begin, 0); err != nil && err != io.EOF {
		return false, err
	}
	return bytes.Equal(begin, []byte("SEQ")), nil
}

// sequenceSource reads records of a SequenceFile.
func (c *compiled) sequenceSource(in *runtime.Split) (source, error) {
	chunk, file, err := piece(in)
	if err != nil {
		return source{}, err
	}
	ratio, _ := strconv.ParseInt(c.plan.Properties[runtime.DecompressedMaxRatio], 10, 64)
	r, err := sequencefile.NewReader(file, chunk.Size, sequencefile.Limits{MaxRecord: c.lineMax, MaxRatio: ratio})
	if err != nil {
		return source{}, errors.Join(badSequence(chunk, err), file.Close())
	}
	of := classes{r.Header.KeyClass, r.Header.ValueClass}
	shown := of
	if c.InputFormat == sequenceAsTextInput {
		shown = texts
	}
	return source{shown, func(put sink) error {
		defer file.Close()
		defer r.Close()
		if c.InputFormat == sequenceAsTextInput {
			put = inText(of, put)
		}
		return errors.Join(eachOfSequence(in, chunk, r, put), in.Err())
	}}, nil
}

// inText passes records on as text.
func inText(of classes, put sink) sink {
	showKey, showValue := asText(of.key), asText(of.value)
	var key, value []byte
	return func(k, v []byte) (err error) {
		if key, err = showKey(key[:0], k); err == nil {
			value, err = showValue(value[:0], v)
		}
		if err != nil {
			return runtime.BadInput(err)
		}
		return put(key, value)
	}
}

func eachOfSequence(in *runtime.Split, chunk runtime.Chunk, r *sequencefile.Reader, put sink) error {
	keyOf, valueOf := ofWritable(r.Header.KeyClass), ofWritable(r.Header.ValueClass)
	end := chunk.Offset + chunk.Length
	if end == chunk.Size {
		end = math.MaxInt64
	}
	for record, err := range r.Records(chunk.Offset, end) {
		var key, value []byte
		if err == nil {
			key, err = keyOf(record.Key)
		}
		if err == nil {
			value, err = valueOf(record.Value)
		}
		if err != nil {
			return badSequence(chunk, err)
		}
		if more, err := counted(in, key, value, put); !more {
			return err
		}
	}
	return nil
}

func badSequence(chunk runtime.Chunk, err error) error {
	return runtime.BadInput(fmt.Errorf("read %s: %w", chunk.Path, err))
}
