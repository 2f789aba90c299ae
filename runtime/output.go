package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// mainOutput is the name of the files of the main output: part-r-00000.
const mainOutput = "part"

const outputBuffer = 256 << 10

// Output is one file that an attempt writes. Its first error is final.
type Output struct {
	name    string // of the file
	file    dfs.Writer
	pulse   *pulse
	buf     []byte
	head    int // bytes reserved at the beginning of buf, for a block's header
	first   int // where in the block's payload the first record begins, noRecord before one does
	records int64
	size    int64 // bytes given to the file
	err     error
}

// Write appends the bytes of one record and counts it.
func (o *Output) Write(record []byte) error {
	if o.err != nil {
		return o.err
	}
	o.records++
	o.pulse.beat()
	if len(record) == 0 {
		return nil
	}
	if o.first == noRecord {
		o.first = len(o.buf) - o.head
	}
	if len(record) <= cap(o.buf)-len(o.buf) {
		o.buf = append(o.buf, record...)
		return nil
	}
	return o.writeOver(record)
}

// writeOver writes a record that the buffer cannot take whole.
func (o *Output) writeOver(record []byte) error {
	if len(o.buf) == cap(o.buf) { // the record begins in the next block
		if o.first == len(o.buf)-o.head {
			o.first = noRecord
		}
		if err := o.flush(); err != nil {
			return err
		}
		o.first = 0
	}
	for len(record) > 0 {
		if len(o.buf) == cap(o.buf) {
			if err := o.flush(); err != nil {
				return err
			}
		}
		n := min(len(record), cap(o.buf)-len(o.buf))
		o.buf = append(o.buf, record[:n]...)
		record = record[n:]
	}
	return nil
}

func (o *Output) flush() error {
	if len(o.buf) == o.head || o.err != nil {
		return o.err
	}
	if o.head > 0 {
		sealBlock(o.buf, o.first)
		o.first = noRecord
	}
	if _, err := o.file.Write(o.buf); err != nil {
		o.err = fmt.Errorf("write output: %w", err)
		return o.err
	}
	o.size += int64(len(o.buf))
	o.buf = o.buf[:o.head]
	return nil
}

// outputs are the files of one attempt, in its directory.
type outputs struct {
	fs    dfs.FS
	dir   string // URL
	task  wire.TaskID
	bin   bool // the job's format is binary
	pulse *pulse
	files map[string]*Output
}

func (o *outputs) open(name string) (*Output, error) {
	if name == "" {
		name = mainOutput
	}
	if out := o.files[name]; out != nil {
		return out, nil
	}
	out := &Output{name: outputName(name, o.task.Kind, o.task.N), pulse: o.pulse}
	if o.bin {
		out.buf = make([]byte, binaryHead, binaryBlock)
		out.head, out.first = binaryHead, noRecord
	} else {
		out.buf = make([]byte, 0, outputBuffer)
	}
	var err error
	if out.file, err = o.fs.Create(dfs.Join(o.dir, out.name)); err != nil {
		return nil, fmt.Errorf("create output: %w", err)
	}
	o.files[name] = out
	return out, nil
}

// outputName is the name of a task's file of an output, as Hadoop has it.
func outputName(output string, k wire.Kind, n int) string {
	letter := 'r'
	if k == wire.Map {
		letter = 'm'
	}
	return fmt.Sprintf("%s-%c-%05d", output, letter, n)
}

// sorted lists the files by name.
func (o *outputs) sorted() []*Output {
	all := make([]*Output, 0, len(o.files))
	for _, out := range o.files {
		all = append(all, out)
	}
	slices.SortFunc(all, func(a, b *Output) int { return cmp.Compare(a.name, b.name) })
	return all
}

// close completes all files, the main one even when nothing was written to it.
func (o *outputs) close() error {
	if _, err := o.open(""); err != nil {
		return err
	}
	for _, out := range o.sorted() {
		err := out.flush()
		if err == nil {
			if err = out.file.Close(); err != nil {
				err = fmt.Errorf("close output: %w", err)
			}
			out.file = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// abort gives up what is still open.
func (o *outputs) abort() error {
	var errs []error
	for _, out := range o.sorted() {
		if out.file != nil {
			errs = append(errs, out.file.Abort())
			out.file = nil
		}
		out.err = cmp.Or(out.err, errClosed)
	}
	return errors.Join(errs...)
}

var errClosed = errors.New("output written to after the attempt's end")

// count adds the outputs to an attempt's counters.
func (o *outputs) count(c wire.Counters, records string) {
	for name, out := range o.files {
		if name == mainOutput {
			c.Add(TaskCounters, records, out.records)
		}
		c.Add(OutputCounters, "BYTES_WRITTEN", out.size)
		countBytes(c, o.dir, "BYTES_WRITTEN", out.size)
	}
}
