package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// mainOutput is the base name of the main output's files: part-r-00000.
const mainOutput = "part"

const outputBuffer = 256 << 10

// Output is one file that an attempt writes. Its first error is final.
type Output struct {
	name    string // of the file
	file    *countedFile
	binary  bool
	segment *shuffle.Writer // for the binary format; nil until the first record: a file without records is empty
	pulse   *pulse
	buf     []byte       // of other records
	to      io.Writer    // for buf: the file, or what compresses it
	end     func() error // completes the content after the last record; nil: nothing does
	records int64
	open    bool // the file is open
	err     error
}

// countedFile counts the bytes written to a file.
type countedFile struct {
	dfs.Writer
	size int64
	sum  *xxhash.Digest // of the bytes, if other attempts must write the same ones; nil: not computed
}

func (f *countedFile) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	f.size += int64(n)
	if f.sum != nil {
		_, _ = f.sum.Write(p[:n]) // it never fails
	}
	return n, err
}

// Write appends the bytes of one record and counts it.
func (o *Output) Write(record []byte) error {
	if o.err != nil {
		return o.err
	}
	o.records++
	o.pulse.beat()
	if o.binary {
		return o.store(record)
	}
	if len(record) > cap(o.buf)-len(o.buf) {
		if err := o.flush(); err != nil {
			return err
		}
	}
	if len(record) > cap(o.buf) {
		return o.put(record)
	}
	o.buf = append(o.buf, record...)
	return nil
}

// Counted counts a record that the content of [Task.Container] has taken, or keeps its error.
func (o *Output) Counted(err error) error {
	if o.err != nil {
		return o.err
	}
	o.records++
	o.pulse.beat()
	return o.failed(err)
}

// store writes a record in the binary format.
func (o *Output) store(record []byte) error {
	if o.segment == nil {
		o.segment = shuffle.NewWriter(o.file)
	}
	return o.failed(o.segment.Write(record))
}

// finish completes the content of the file.
func (o *Output) finish() error {
	switch {
	case o.err != nil:
	case o.segment != nil:
		return o.failed(o.segment.Close())
	case o.flush() == nil && o.end != nil:
		return o.failed(o.end())
	}
	return o.err
}

func (o *Output) flush() error {
	if len(o.buf) == 0 || o.err != nil {
		return o.err
	}
	err := o.put(o.buf)
	o.buf = o.buf[:0]
	return err
}

func (o *Output) put(p []byte) error {
	_, err := o.to.Write(p)
	return o.failed(err)
}

func (o *Output) failed(err error) error {
	if err != nil {
		o.err = fmt.Errorf("write output: %w", err)
	}
	return o.err
}

// outputs are the files of one attempt, in its directory.
type outputs struct {
	fs     dfs.FS
	dir    string // URL
	made   bool   // the directory exists
	task   wire.TaskID
	binary bool               // the job's format is binary
	mapred bool               // files have the names of [FormatMapred]
	ofMap  bool               // of a map of a job with reduces: there is no main file
	lazy   bool               // files without records are left out
	codec  *compression.Codec // of outputs that are bytes; nil: none
	pulse  *pulse
	files  map[string]*Output
	kept   []manifestFile // see [Task.KeepFiles]
}

// err returns the errors of all files so far.
func (o *outputs) err() error {
	var errs []error
	for _, f := range o.files {
		errs = append(errs, f.err)
	}
	return errors.Join(errs...)
}

// makeDir makes the directory, unless that has been done.
func (o *outputs) makeDir() error {
	if o.made {
		return nil
	}
	if err := o.fs.Mkdir(o.dir); err != nil {
		return fmt.Errorf("make attempt's output: %w", err)
	}
	o.made = true
	return nil
}

// open returns an output that takes its records as bytes.
func (o *outputs) open(name string) (*Output, error) {
	suffix := ""
	if o.codec != nil && !o.binary {
		suffix = o.codec.Suffix
	}
	return o.begin(name, suffix, func(out *Output) (err error) {
		if out.binary = o.binary; out.binary {
			return nil
		}
		out.buf, out.to = make([]byte, 0, outputBuffer), out.file
		if o.codec != nil {
			var w *compression.Writer
			if w, err = o.codec.NewWriter(out.file); err == nil {
				out.to, out.end = w, w.Close
			}
		}
		return err
	})
}

// begin creates an output's file, unless it is open, and begins its content.
func (o *outputs) begin(name, suffix string, content func(*Output) error) (*Output, error) {
	if name == "" {
		name = mainOutput
	}
	if out := o.files[name]; out != nil {
		return out, nil
	}
	out := &Output{name: outputName(name, o.task.Kind, o.task.N) + suffix, pulse: o.pulse}
	if o.mapred {
		out.name = fmt.Sprintf("%s-%05d", name, o.task.N) + suffix
	}
	if err := o.makeDir(); err != nil {
		return nil, err
	}
	file, err := o.fs.Create(dfs.Join(o.dir, out.name))
	if err != nil {
		return nil, fmt.Errorf("create output: %w", err)
	}
	out.file, out.open = &countedFile{Writer: file}, true
	if o.ofMap {
		out.file.sum = xxhash.New()
	}
	o.files[name] = out
	return out, out.failed(content(out))
}

// outputName returns the file name of a task's part of an output, as in Hadoop, without a suffix.
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

// close completes all files. Unless outputs are lazy, it makes the main file, if there is one, even if there are no records.
func (o *outputs) close() error {
	if o.lazy {
		if err := o.dropEmpty(); err != nil {
			return err
		}
	} else if !o.ofMap {
		if _, err := o.open(""); err != nil {
			return err
		}
	}
	for _, out := range o.sorted() {
		if err := out.close(); err != nil {
			return err
		}
	}
	return nil
}

// manifest describes the files, which are complete.
func (o *outputs) manifest(id wire.AttemptID, counters wire.Counters) *manifest {
	return &manifest{Attempt: id.String(), Files: o.manifestFiles(), Counters: counters}
}

// close completes a file, unless that has been done.
func (o *Output) close() error {
	if !o.open {
		return nil
	}
	if err := o.finish(); err != nil {
		return err
	}
	err := o.file.Close()
	o.open, o.buf, o.to, o.end, o.segment = false, nil, nil, nil, nil
	if err != nil {
		return o.failed(fmt.Errorf("close: %w", err))
	}
	return nil
}

// dropEmpty removes the files without records.
func (o *outputs) dropEmpty() error {
	for name, out := range o.files {
		if out.records > 0 || out.err != nil {
			continue
		}
		out.open = false
		if err := errors.Join(out.file.Abort(), o.fs.RemoveAll(dfs.Join(o.dir, out.name))); err != nil {
			return fmt.Errorf("remove an output without records: %w", err)
		}
		delete(o.files, name)
	}
	return nil
}

// abort aborts the files that are still open.
func (o *outputs) abort() error {
	var errs []error
	for _, out := range o.sorted() {
		if out.open {
			errs = append(errs, out.file.Abort())
			out.open = false
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
			c.Add(wire.TaskCounters, records, out.records)
		}
		c.Add(wire.OutputCounters, wire.BytesWritten, out.file.size)
		countBytes(c, o.dir, wire.BytesWritten, out.file.size)
	}
}
