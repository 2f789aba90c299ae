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
//	| "qhs1" | gzip of the msgpack of a Record, by names of tags |
//	+--------+------------------------------------------------+
//
// A reader ignores fields it does not know. Lengths are bounded before memory is
// taken: [MaxRecord], [MaxPlanLog].
//
// # A run again
//
// With the histories of the jobs of a time it can be played again what the job tracker
// did. An attempt had a slot of its tracker from Launched to Began and Took together; the
// plan in force says how many slots, in which order, from which queues its job was to
// have ([Planned]). What History does not have: why a slot near no input was refused,
// which depends on measurements of that moment, and what earlier leaders planned.
package history

import (
	"bytes"
	"cmp"
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
	Job       wire.JobStatus       `msgpack:"Job"`
	Plan      wire.JobPlan         `msgpack:"Plan"`
	Owner     string               `msgpack:"Owner"`
	Submitted int64                `msgpack:"Submitted"` // Unix milliseconds, as Ended
	Ended     int64                `msgpack:"Ended"`
	Attempts  []wire.AttemptStatus `msgpack:"Attempts"` // by task, oldest first
	Unkept    int                  `msgpack:"Unkept"`   // attempts beside those, of very large jobs
	Plans     []Planned            `msgpack:"Plans"`    // what was in force whenever that changed, oldest first
	Token     string               `msgpack:"Token"`    // of the job, for its logs; empty: the record is older than tokens

	PlanLog    []byte `msgpack:"PlanLog"`    // Plans in few bytes, instead of them: what files have, see [Record.Unpack]
	PlansSince int64  `msgpack:"PlansSince"` // Unix milliseconds: what was in force before is not known; 0: all is
	PlansLack  string `msgpack:"PlansLack"`  // why it is not
}

// Name is the URL of a job's file.
func Name(staging string, ended time.Time, job wire.JobID) string {
	return dfs.Join(root(staging), ended.UTC().Format(dayLayout), job.String())
}

func root(staging string) string { return dfs.Join(staging, wire.StagingHistory) }

// Write writes a job's file, durably. One that is there already stays.
func Write(f dfs.FS, name string, r *Record) error {
	if err := write(f, name, r); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

func write(f dfs.FS, name string, r *Record) error {
	f = dfs.Private(f) // it has the job's token
	if _, err := f.Stat(name); err == nil {
		return f.SyncDir(dfs.Dir(name)) // its writer may have died before this
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
		if err = errors.Join(err, remove(f, making)); err != nil {
			return err
		}
	}
	return f.SyncDir(dfs.Dir(name))
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
	in := &reader{from: file}
	r, err := decode(in)
	if err != nil {
		return nil, fmt.Errorf("read history %s: %w", name, cmp.Or(in.err, err))
	}
	return r, nil
}

// reader remembers why a file could not be read on: that tells nothing of what it holds.
type reader struct {
	from io.Reader
	err  error
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

const magic = "qhs1"

func encode(r *Record) ([]byte, error) {
	packed := *r
	if len(r.Plans) > 0 {
		var log PlanLog
		for _, p := range r.Plans {
			log.Add(p)
		}
		packed.Plans, packed.PlanLog = nil, log.Bytes()
	}
	body, err := wire.Marshal(&packed)
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
	if err := r.Unpack(); err != nil {
		return nil, err
	}
	return r, nil
}

// Unpack makes Plans of a PlanLog. Records that are older than that have none.
func (r *Record) Unpack() (err error) {
	if len(r.PlanLog) > 0 {
		r.Plans, err = ParsePlans(r.PlanLog)
		r.PlanLog = nil
	}
	return err
}
