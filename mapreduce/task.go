package mapreduce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quernmr/quern/mapreduce/internal/property"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Task is the attempt that a function of the job runs in. It is also the
// attempt's context, which ends when the attempt is to end.
type Task struct {
	context.Context

	ID        string // of the task: task_1700000000000_0001_m_000003
	Attempt   int    // which try at the task this is, from 0
	Partition int    // a reduce's partition, a map's number

	host host
	job  *jobSpec
	err  error // the first thing that went wrong
	open bool  // the author's function runs, and nothing has gone wrong
	over bool  // the attempt's code has returned

	splits  []Split
	writers map[string]*namedOutput
}

// Counter is a sum over the job's attempts that count. It may be added to from
// several goroutines.
type Counter = mrruntime.Counter

// Split is a piece of a file that a map reads.
type Split struct {
	Path           string // URL
	Offset, Length int64
	Size           int64 // of the whole file
}

func splitOf(c mrruntime.Chunk) Split {
	return Split{Path: c.Path, Offset: c.Offset, Length: c.Length, Size: c.Size}
}

// host is what this package asks of the attempt it runs in.
type host interface {
	Counter(group, name string) *Counter
	Status(text string)
	Property(name string) string
	File(name string) (string, error)
	Parts(name string) ([]SidePart, error)
	open(name string) (recordWriter, error)
}

// recordWriter is an output file.
type recordWriter interface{ Write(record []byte) error }

// splitReader is the input of one map; see mrruntime.Split.
type splitReader interface {
	recordSource
	CountRecord() bool
	Chunks() []mrruntime.Chunk
	Open(c mrruntime.Chunk) (mrruntime.ReadAtCloser, error)
	Where() string
	Err() error
}

// attemptHost is the host of a real attempt.
type attemptHost struct{ *mrruntime.Task }

func (h attemptHost) open(name string) (recordWriter, error) { return h.Output(name) }

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

// Counter gives the counter of a group and name, made at first use. Ask for it
// once, before the loop over records. A job that makes more than
// mapreduce.job.counters.max, or gives one too long a name, fails.
func (t *Task) Counter(group, name string) *Counter { return t.host.Counter(group, name) }

// Status says what the attempt is doing. It is also a sign of life, which a
// record that takes long should give: see mapreduce.task.timeout.
func (t *Task) Status(text string) { t.host.Status(text) }

// Property is the value of a property of the job: of -D, of Job.Properties, or
// the default. It is "" when there is none. An old name of Hadoop's is the present one.
func (t *Task) Property(name string) string { return t.host.Property(property.PresentName(name)) }

// File gives the local path of a side file named in Job.Files. Of a directory or
// glob it holds the contents of the files, one after the other. A side file that is
// not what it was when the job started fails the job. A local one must have the same
// size and modification time on every machine.
func (t *Task) File(name string) (path string, err error) { return t.host.File(name) }

// SidePart is one of the files that a path of Job.Files stands for: its URL, and the
// local path to read it by.
type SidePart = mrruntime.SidePart

// Parts gives the files of a side file named in Job.Files one by one: of a directory or
// glob several, by name.
func (t *Task) Parts(name string) ([]SidePart, error) { return t.host.Parts(name) }

// Splits are the pieces of files that this map reads, one in most cases; several
// when files are small. A reduce has none.
func (t *Task) Splits() []Split { return t.splits }

// fail keeps the first error and turns off emit and Write.
func (t *Task) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.open = false
}

// misuse makes an error of the author's code, which no other attempt can mend: it
// ends the job at once.
func misuse(text string) error { return mrruntime.Fatal(errors.New(text)) }

// misused fails the attempt for what the author's code does out of time. When the
// attempt has ended, its goroutine is stopped by a panic.
func (t *Task) misused(err error) {
	if t.over {
		panic(err)
	}
	t.fail(err)
}

// blame makes a panic that follows an error of the task that error. It is deferred
// around the author's functions.
func (t *Task) blame(err *error) {
	if t.err == nil {
		return
	}
	if recover() != nil {
		t.over = true
		*err = t.err
	}
}

// call runs a function of the author's, during which emit and Write work.
func (t *Task) call(f func() error) error {
	t.open = t.err == nil
	err := f()
	t.open = false
	return err
}

var errLateEmit = misuse("emit was called after the function it was given to had returned")

// refuse is what emit and Write do while the task is not open: after an error
// nothing, because the error is going to fail the attempt. When nobody is left to
// tell, a goroutine that goes on emitting is stopped by a panic.
func (t *Task) refuse(late error) {
	if t.err == nil || t.over {
		t.misused(late)
	}
}

// end is how a phase ended: err is the author's. What the author's function was
// fed comes first, because its error may be the consequence.
func (t *Task) end(read func() error, err error) error {
	t.over = true
	switch {
	case read() != nil:
		return read()
	case t.err != nil:
		return t.err
	}
	return err
}

// namedOutput is an output of Job.Outputs that has been written to.
type namedOutput struct {
	write any    // func(K, V) of the types it was first written with
	types string // those types
}

var errLateWrite = misuse("Write was called after the function its task was given to had returned")

// Write writes a record to an output named in Job.Outputs: to the files
// <output>-m-00000 and so on of a map-only job, <output>-r-00000 of one with
// reduces. They are in the job's Format and appear together with the main ones.
// Like emit, it keeps the first error, which fails the attempt.
func Write[K, V any](t *Task, output string, k K, v V) {
	if !t.open {
		t.refuse(errLateWrite)
		return
	}
	named := t.writers[output]
	if named == nil {
		made, err := openNamed[K, V](t, output)
		if err != nil {
			t.fail(err)
			return
		}
		named = made
	}
	write, ok := named.write.(func(K, V))
	if !ok {
		var k K
		var v V
		t.fail(misuse(fmt.Sprintf("output %q holds records of %s, Write was given %T and %T", output, named.types, k, v)))
		return
	}
	write(k, v)
}

func openNamed[K, V any](t *Task, output string) (*namedOutput, error) {
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
	write, err := newWriter(t, output, key, value)
	if err != nil {
		return nil, err
	}
	if t.writers == nil {
		t.writers = make(map[string]*namedOutput)
	}
	named := &namedOutput{write: write, types: key.name + " and " + value.name}
	t.writers[output] = named
	return named, nil
}
