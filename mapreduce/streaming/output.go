package streaming

import (
	"bufio"
	"crypto/md5"
	"errors"
	"fmt"
	"io"

	"github.com/quernmr/quern/mapreduce/internal/property"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/sequencefile"
	"github.com/quernmr/quern/wire"
)

// outputSink writes records to the attempt's output.
func (c *compiled) outputSink(t *runtime.Task, of classes) (sink, error) {
	if c.OutputFormat == nullOutput {
		return c.nullSink(t), nil
	}
	open := func() (sink, error) { return c.textSink(t, of) }
	if c.OutputFormat == sequenceOutput {
		if of != c.declared {
			return nil, runtime.Fatal(fmt.Errorf("the classes of the output are %v, but the job declares %v: set %s and %s", of, c.declared, outKeyClass, outValueClass))
		}
		open = func() (sink, error) { return c.sequenceSink(t, of) }
	}
	if !c.lazy {
		return open()
	}
	var put sink
	return func(key, value []byte) (err error) {
		if put == nil {
			if put, err = open(); err != nil {
				return err
			}
		}
		return put(key, value)
	}, nil
}

// nullSink counts records and drops them.
func (c *compiled) nullSink(t *runtime.Task) sink {
	name := wire.ReduceOutputRecords
	if c.MapOnly {
		name = wire.MapOutputRecords
	}
	counter := t.Counter(wire.TaskCounters, name)
	return func(_, _ []byte) error {
		counter.Add(1)
		return nil
	}
}

// textSink writes lines. A NullWritable has no separator before it.
func (c *compiled) textSink(t *runtime.Task, of classes) (sink, error) {
	out, err := t.Output("")
	if err != nil {
		return nil, err
	}
	separator, showKey, showValue := []byte(c.get(property.TextSeparator, "\t")), asText(of.key), asText(of.value)
	if of.value == nullClass {
		separator, showValue = nil, plain
	}
	var line []byte
	return func(key, value []byte) (err error) {
		if line, err = showKey(line[:0], key); err == nil {
			line, err = showValue(append(line, separator...), value)
		}
		if err != nil {
			return fmt.Errorf("write %v as text: %w", of, err)
		}
		line = append(line, '\n')
		return out.Write(line)
	}, nil
}

// sequenceSink writes a SequenceFile. Its sync marker follows from the attempt's id.
func (c *compiled) sequenceSink(t *runtime.Task, of classes) (sink, error) {
	o, err := sequencefile.OptionsOf(func(name string) string { return c.plan.Properties[name] })
	if err != nil {
		return nil, err
	}
	o.KeyClass, o.ValueClass, o.Sync = of.key, of.value, md5.Sum([]byte(t.ID.String()))
	var file *sequencefile.Writer
	out, err := t.Container("", "", func(w io.Writer) (end func() error, err error) {
		buffer := bufio.NewWriterSize(w, 256<<10)
		file, err = sequencefile.NewWriter(buffer, o)
		return func() error { return errors.Join(file.Close(), buffer.Flush()) }, err
	})
	if err != nil {
		return nil, err
	}
	encodeKey, encodeValue := asWritable(of.key), asWritable(of.value)
	var k, v []byte
	return func(key, value []byte) (err error) {
		if k, err = encodeKey(k[:0], key); err == nil {
			v, err = encodeValue(v[:0], value)
		}
		if err == nil {
			err = file.Append(k, v)
		}
		return out.Counted(err)
	}, nil
}
