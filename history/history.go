// Package history keeps what is to be known of a job when the job tracker has
// forgotten it: one file for each ended job, below the cluster's staging
// directory, readable without a job tracker.
//
//	<staging>/history/yyyy/mm/dd/<job id>      the UTC day on which the job ended
//
// A file is written once, under another name first, and never changed. The
// leading job tracker writes it when the job's commit or cleanup attempt has
// succeeded and before the end of the job goes to the log: it has the record at
// hand, and no attempt has to be sent it. A new leader that finds the job not
// ended writes it again and finds it there.
//
// Functions may be called from any goroutine and any process at a time.
//
// # A file
//
//	+--------+------------------------------------------------+
//	| "qhs1" | gzip of the msgpack of a Record, by field name |
//	+--------+------------------------------------------------+
//
// A reader ignores fields it does not know. Lengths are bounded before memory is
// taken: [MaxRecord].
package history

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// MaxRecord bounds a Record's bytes in msgpack.
const MaxRecord = 256 << 20

// ErrNotHistory reports a file that is no history of a job, or a damaged one.
var ErrNotHistory = errors.New("not a job's history")

// Record is what is kept of an ended job.
type Record struct {
	Job       wire.JobStatus
	Plan      wire.JobPlan
	Owner     string
	Submitted int64 // Unix milliseconds, as Ended
	Ended     int64
	Attempts  []wire.AttemptStatus // by task, oldest first; of very large jobs not all
	Plans     []Planned            // in force, oldest first; of very long jobs not all
	Token     string               // of the job, for its logs; empty: the record is older than tokens
}

// Planned is what a plan in force had for the job.
type Planned struct {
	At         int64 // Unix milliseconds since when
	Phase      wire.Kind
	Scheduling wire.Scheduling
	Target     int   // slots
	Place, Of  int   // in the order of precedence, from 1
	End        int64 // Unix milliseconds at which the job was to end by then; 0: not known
}

// Same says whether two plans had the same for the job.
func (p *Planned) Same(other *Planned) bool {
	return p.Scheduling == other.Scheduling && p.Target == other.Target && p.Place == other.Place && p.Of == other.Of
}

// Name is the URL of a job's file.
func Name(staging string, ended time.Time, job wire.JobID) string {
	return dfs.Join(root(staging), ended.UTC().Format(dayLayout), job.String())
}

func root(staging string) string { return dfs.Join(staging, wire.StagingHistory) }

// Write writes a job's file. One that is there already stays.
func Write(f dfs.FS, name string, r *Record) error {
	if err := write(f, name, r); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

func write(f dfs.FS, name string, r *Record) error {
	f = dfs.Private(f) // it has the job's token
	if _, err := f.Stat(name); err == nil {
		return nil
	}
	data, err := encode(r)
	if err != nil {
		return err
	}
	if err := f.MkdirAll(dfs.Dir(name)); err != nil {
		return err
	}
	making := dfs.Join(dfs.Dir(name), "."+rand.Text())
	if err := create(f, making, data); err != nil {
		return errors.Join(err, remove(f, making))
	}
	if err := f.RenameFile(making, name); err != nil {
		// Another writer's, or our own rename that was reported as failed.
		if _, there := f.Stat(name); there == nil {
			err = nil
		}
		return errors.Join(err, remove(f, making))
	}
	return nil
}

func create(f dfs.FS, name string, data []byte) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

// remove removes a file that may be gone.
func remove(f dfs.FS, name string) error {
	if err := f.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Read reads a job's file.
func Read(f dfs.FS, name string) (*Record, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	defer file.Close()
	r, err := decode(file)
	if err != nil {
		return nil, fmt.Errorf("read history %s: %w", name, err)
	}
	return r, nil
}

const magic = "qhs1"

func encode(r *Record) ([]byte, error) {
	body, err := wire.Marshal(r)
	if err != nil {
		return nil, err
	}
	if len(body) > MaxRecord {
		return nil, fmt.Errorf("a record of %d bytes is more than %d", len(body), MaxRecord)
	}
	out := bytes.NewBufferString(magic)
	zip := gzip.NewWriter(out)
	if _, err := zip.Write(body); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func decode(from io.Reader) (*Record, error) {
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(from, head); err != nil || string(head) != magic {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrNotHistory, magic)
	}
	zip, err := gzip.NewReader(from)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotHistory, err)
	}
	body, err := io.ReadAll(io.LimitReader(zip, MaxRecord+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotHistory, err)
	case len(body) > MaxRecord:
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrNotHistory, MaxRecord)
	}
	return parse(body)
}

func parse(body []byte) (*Record, error) {
	r := new(Record)
	if err := wire.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotHistory, err)
	}
	return r, nil
}
