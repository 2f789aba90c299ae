package mapreduce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/runtime/search"
	"github.com/quernmr/quern/wire"
)

// Task is the attempt that runs a function of the job. It is also the attempt's
// context, which is cancelled when the attempt must stop. Its code then has a short time to
// return; what it emitted is discarded. So a Task has the methods Done, Err, Deadline and Value
// of context.Context.
type Task struct {
	context.Context

	ID        string // the task's id: task_1700000000000_0001_m_000003
	Attempt   int    // number of the attempt, from 0; again from 0 if another job tracker becomes leader
	Partition int    // a reduce's partition or a map's number

	host     host
	job      *jobSpec
	err      error // the first one
	open     bool  // emit and Write are allowed: the author's function runs, without error so far
	returned bool  // the attempt's code has returned
	combines bool  // it is the task of a combiner
	small    bool  // it reads the small side of a join

	locate func(error) error // adds the current record or key to an error; nil in a combiner

	splits  []Split
	in      splitReader             // of a map
	writers map[string]*namedOutput // by output, or by file of WriteBy
	byName  namedFiles
}

// Counter is a sum over the job's successful attempts. Several goroutines may add to it.
type Counter = mrruntime.Counter

// Split is a piece of a file that a map reads.
type Split struct {
	Path           string // URL
	Offset, Length int64
	Size           int64 // of the whole file

	task *Task
}

// Property returns a property of the job, as [Task.Property]: for input formats. A Split that you make has none.
func (s Split) Property(name string) string {
	if s.task == nil {
		return ""
	}
	return s.task.Property(name)
}

// At says where the next record begins, for [Task.Position], [Task.Line] and errors: input formats call it before
// they return a record. The offset is in the content of the file. Lines count from 1; 0: the format has none.
func (s Split) At(offset, line int64) {
	if s.task != nil {
		s.task.in.At(offset, line)
	}
}

// BadInput marks an error of an input format that every attempt would have, as for a damaged file. The job
// fails without further attempts, unless it accepts failed tasks.
func BadInput(err error) error { return mrruntime.BadInput(err) }

func splitOf(c mrruntime.Chunk) Split {
	return Split{Path: c.Path, Offset: c.Offset, Length: c.Length, Size: c.Size}
}

// host is the runtime's side of an attempt.
type host interface {
	Counter(group, name string) *Counter
	Status(text string)
	Property(name string) string
	File(name string) (string, error)
	Parts(name string) ([]SidePart, error)
	Directory(name string) (string, error)
	Dir() string // for temporary files
	sideInput(names []string, in *wire.InputPlan, format mrruntime.Format) (splitReader, error)
	CloseOutput(name string) error
	open(name string) (recordWriter, error)
	container(name, suffix string, begin func(io.Writer) (end func() error, err error)) (recordCounter, error)
}

// recordCounter is an output file with a format that writes the records itself; see mrruntime.Output.
type recordCounter interface{ Counted(err error) error }

// recordWriter is an output file.
type recordWriter interface{ Write(record []byte) error }

// splitReader is the input of one map; see mrruntime.Split.
type splitReader interface {
	recordSource
	Only(search.Predicate)
	CountRecord() (more, skip bool)
	EndRecords()
	Chunks() []mrruntime.Chunk
	Open(c mrruntime.Chunk) (mrruntime.ReadAtCloser, error)
	Stream(c mrruntime.Chunk) (io.ReadCloser, error)
	Where() string
	Place() (file string, offset int64)
	Line() (int64, error)
	At(offset, line int64)
	Err() error
}

// attemptHost is the host of a real attempt.
type attemptHost struct{ *mrruntime.Task }

func (h attemptHost) open(name string) (recordWriter, error) { return h.Output(name) }

func (h attemptHost) container(name, suffix string, begin func(io.Writer) (func() error, error)) (recordCounter, error) {
	return h.Container(name, suffix, begin)
}

func (h attemptHost) sideInput(names []string, in *wire.InputPlan, format mrruntime.Format) (splitReader, error) {
	return h.SideInput(names, in, format)
}

func newTask(t *mrruntime.Task, job *jobSpec) *Task {
	return &Task{
		Context:   t.Ctx,
		ID:        t.ID.Task.String(),
		Attempt:   t.ID.N % wire.EpochAttempts,
		Partition: t.ID.Task.N,
		host:      job.host(t),
		job:       job,
	}
}

// Counter returns the counter of a group and name, and creates it at first use. Call
// it once, before the loop over records. A job fails if it has more than
// mapreduce.job.counters.max counters, or if a name is too long.
func (t *Task) Counter(group, name string) *Counter { return t.host.Counter(group, name) }

// Status sets the status text of the attempt. It also counts as progress: call it from
// time to time if one record takes long, see mapreduce.task.timeout.
func (t *Task) Status(text string) { t.host.Status(text) }

// Property returns a property of the job: its value from -D, from Job.Properties, or
// the default. It returns "" if there is none. Hadoop's old names work too.
func (t *Task) Property(name string) string { return t.host.Property(property.CurrentName(name)) }

// File returns the local path of a side file named in Job.Files. For a directory or
// glob, it is one file with the contents of all, one after the other.
//
// The job fails if a side file changes after the job has started. A file on local disks
// must have the same size and modification time on every machine.
func (t *Task) File(name string) (path string, err error) { return t.host.File(name) }

// SidePart is one of the files that a path in Job.Files matches: its URL, and a local
// path for reading it.
type SidePart = mrruntime.SidePart

// Parts returns the files of a side file named in Job.Files, sorted by name. A
// directory or glob can have several.
func (t *Task) Parts(name string) ([]SidePart, error) { return t.host.Parts(name) }

// Directory returns the local path of a directory with the content of an archive or directory named in
// Job.Archives. Archives are unpacked: .zip, .jar, .tar, .tgz, and .tar with the suffix of a codec such as .tar.gz.
// The jobs of an owner on a task tracker share one copy: do not change its files. A local directory is used in place.
//
// The job fails if the archive has a member that leads out of the directory, also by a link, or that is a device, or if
// it is larger than quern.archive.max.bytes.
func (t *Task) Directory(name string) (path string, err error) { return t.host.Directory(name) }

// Splits returns the pieces of files that this map reads: usually one, several if
// files are small. A reduce has none, nor has a map of [Generate].
func (t *Task) Splits() []Split { return t.splits }

// Position is the place of a record.
type Position struct {
	File   string // URL; "": not known
	Offset int64  // of the record's first byte in the file's content; -1: not known
}

// Position returns the place of the map's current record. It takes no time worth mention, and costs nothing if it
// is not called. Not known are the offsets of records of [From] and [Stored], of whole files, of records in the later
// parts of a .bz2 file, and of records of your own format that does not call [Split.At]. A reduce has no position.
func (t *Task) Position() Position {
	t.askPlace()
	if t.in == nil {
		return Position{Offset: -1}
	}
	file, offset := t.in.Place()
	return Position{File: file, Offset: offset}
}

// Line returns the number of the current record's first line in its file, from 1, for inputs of lines, CSV and
// JSON lines. The first call in a split that does not begin its file reads the file up to the split. Other calls
// read nothing.
func (t *Task) Line() (int64, error) {
	t.askPlace()
	if t.in == nil {
		return 0, errors.New("a reduce has no current line: its input is records of many maps")
	}
	return t.in.Line()
}

// askPlace tells package mrtest that the job depends on places.
func (t *Task) askPlace() {
	if t.job != nil && t.job.places != nil {
		t.job.places.Store(true)
	}
}

// fail keeps the first error and turns off emit and Write.
func (t *Task) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.open = false
}

// failHere fails the task because of its current record or key.
func (t *Task) failHere(err error) {
	if t.locate != nil {
		err = t.locate(err)
	}
	t.fail(err)
}

// misuse returns an error about the author's code. It fails the job at once, because
// every other attempt would fail too.
func misuse(text string) error { return mrruntime.Fatal(errors.New(text)) }

// misused fails the attempt for a call at a wrong time. If the attempt has already
// returned, only a panic can stop the goroutine that calls.
func (t *Task) misused(err error) {
	if t.returned {
		panic(err)
	}
	t.fail(err)
}

// replacePanic recovers from a panic that follows an error of the task, and reports
// that error instead. It must be deferred around calls of the author's functions.
func (t *Task) replacePanic(err *error) {
	if t.err == nil {
		return
	}
	if recover() != nil {
		t.returned = true
		*err = t.err
	}
}

// call runs the author's function, and allows emit and Write meanwhile.
func (t *Task) call(f func() error) error {
	t.open = t.err == nil
	err := f()
	t.open = false
	return err
}

var errLateEmit = misuse("emit was called after the function that received it had returned")

// rejectLate handles emit and Write while the task is not open. After an error it does
// nothing, because that error fails the attempt anyway.
func (t *Task) rejectLate(lateErr error) {
	if t.err == nil || t.returned {
		t.misused(lateErr)
	}
}

// end returns the attempt's error. err is from the author's function. An error of read
// comes first, because it may have caused err.
func (t *Task) end(read func() error, err error) error {
	t.returned = true
	switch {
	case read() != nil:
		return read()
	case t.err != nil:
		return t.err
	}
	return err
}

// namedOutput is an open output of Job.Outputs.
type namedOutput struct {
	write any    // func(K, V), with the types of the first Write
	types string // of write's key and value, for errors
}

var errLateWrite = misuse("Write was called after the function that received the task had returned")

// Write writes a record to an output named in Job.Outputs. A map writes files
// <output>-m-00000 and so on, a reduce <output>-r-00000. They have the job's
// Format and appear together with the main files. As with emit, the first error is
// kept and fails the attempt.
//
// If the job has reduces, a map may run again after it succeeded. It must then write the same
// files: an attempt that writes other ones than an earlier one fails.
func Write[K, V any](t *Task, output string, k K, v V) {
	if !t.open {
		t.rejectLate(errLateWrite)
		return
	}
	writeTo(t, output, output, k, v)
}

// writeTo writes a record to a file of an output.
func writeTo[K, V any](t *Task, output, file string, k K, v V) {
	named := t.writers[file]
	if named == nil {
		opened, err := openNamed[K, V](t, output, file)
		if err != nil {
			t.failHere(err)
			return
		}
		named = opened
	}
	write, ok := named.write.(func(K, V))
	if !ok {
		var k K
		var v V
		t.failHere(misuse(fmt.Sprintf("output %q holds records of %s, but Write was called with %T and %T", output, named.types, k, v)))
		return
	}
	write(k, v)
}

func openNamed[K, V any](t *Task, output, file string) (*namedOutput, error) {
	if t.combines {
		return nil, misuse(fmt.Sprintf("output %q: a combiner cannot write to it, because it may get a record several times: write in the map or reduce", output))
	}
	if t.small {
		return nil, misuse(fmt.Sprintf("output %q: the small side of a BroadcastJoin cannot write to it, because each worker reads that side: write in the join's function", output))
	}
	if !slices.Contains(t.job.outputs, output) {
		return nil, misuse(fmt.Sprintf("output %q is not in Job.Outputs (which has: %s)", output, strings.Join(t.job.outputs, ", ")))
	}
	key, err := derive[K]()
	if err != nil {
		return nil, mrruntime.Fatal(fmt.Errorf("key of output %q: %w", output, err))
	}
	value, err := derive[V]()
	if err != nil {
		return nil, mrruntime.Fatal(fmt.Errorf("value of output %q: %w", output, err))
	}
	write, err := newWriter(t, file, key, value)
	if err != nil {
		return nil, err
	}
	if t.writers == nil {
		t.writers = make(map[string]*namedOutput)
	}
	named := &namedOutput{write: write, types: key.name + " and " + value.name}
	t.writers[file] = named
	return named, nil
}
