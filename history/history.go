// Package history keeps a record of each ended job, because job trackers forget old jobs.
// Each job has one file below the cluster's staging directory.
//
//	<staging>/history/yyyy/mm/dd/<job id>      the UTC day of the job's end
//	<staging>/history/yyyy/mm/dd/index/<text>  summaries of these jobs
//
// A file is first written under another name, then renamed, and never changed. The leader
// writes it after the job's commit or cleanup attempt, before it writes the job's end to the
// log. If leadership changes in between, the new leader writes the file unless it exists.
//
// Only the job tracker's account can read a file: it has the mode 0600, in directories with 0700. So users
// ask the job tracker, which checks the view ACL, see [Record.ViewACL].
//
// Functions are safe for concurrent use, also by several processes.
//
// # A file
//
//	+--------+------------------------------------------------+
//	| "qhs1" | gzip of a Record in msgpack, named by struct tags |
//	+--------+------------------------------------------------+
//
// A reader ignores unknown fields. It checks lengths before allocating memory: [MaxRecord],
// [MaxPlanLog].
//
// # The index
//
// Lists read no records, but the index of each day: a few files with a summary of each job. The writer of a record adds a
// file with one summary, and merges files of about equal size. No file is changed, so several job trackers may
// write at a time: two equal summaries do no harm.
//
//	+--------+-------------------------------------------------------------------------+
//	| "qhi1" | gzip of entries: job, length of the rest | head | a Record in msgpack      |
//	+--------+-------------------------------------------------------------------------+
//	job    start, number
//	head   state | time of submission | flow: start, number | owner, pool, name
//
// Numbers and the lengths of texts are unsigned varints. The Record lacks the parts that lists do not show. Filters need
// only the head.
//
// The records decide which jobs there are: a list reads the record of a job that has no summary, because its writer
// died, because an older build wrote it, or because a file of the index is damaged. [Sweep] then adds the
// summary. It also makes one file of the index of a day that is over. A day expires with its index.
//
// # Replay
//
// The histories of all jobs of a period suffice to replay the job tracker's decisions. An
// attempt held a slot of its tracker from Launched to Began+Took. [Planned] has the job's
// slots, place and queues in the current plan. A Record lacks two things: why maps were
// deferred, which depends on measurements of the moment, and the plans of earlier leaders.
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

// MaxRecord limits a Record's bytes in msgpack.
const MaxRecord = 256 << 20

// ErrNotHistory reports a file that is not a job's history, or is damaged.
var ErrNotHistory = errors.New("not a job's history")

// Record is the history of an ended job.
type Record struct {
	Job       wire.JobStatus       `msgpack:"Job"`
	Plan      wire.JobPlan         `msgpack:"Plan"`
	Owner     string               `msgpack:"Owner"`
	Submitted int64                `msgpack:"Submitted"` // Unix milliseconds, like Ended
	Ended     int64                `msgpack:"Ended"`
	Attempts  []wire.AttemptStatus `msgpack:"Attempts"` // by task, oldest first
	Omitted   int                  `msgpack:"Unkept"`   // number of attempts missing in Attempts, for very large jobs
	Usual     [2]Usual             `msgpack:"Usual"`    // of the runs of its name, by phase: maps, reduces
	Plans     []Planned            `msgpack:"Plans"`    // the job's part of each plan, oldest first
	Token     string               `msgpack:"Token"`    // the job's token, for its logs; empty: written by a build without tokens

	// View is the job's view ACL; empty: it has none. Without HasView, an older build has written the
	// record, which did not keep the ACL.
	View    string `msgpack:"View,omitempty"`
	HasView bool   `msgpack:"HasView,omitempty"`

	Modify  string        `msgpack:"Modify,omitempty"`  // the job's modify ACL; empty: it has none
	Program *wire.Program `msgpack:"Program,omitempty"` // nil: an older build has written the record

	Curve []wire.CurvePoint `msgpack:"Curve,omitempty"` // bytes over time, oldest first; none: an older build has written the record

	PlanLog          []byte `msgpack:"PlanLog"`    // Plans as encoded in files, see [Record.Unpack]
	PlansSince       int64  `msgpack:"PlansSince"` // Unix milliseconds; plans before this time are not known; 0: all are known
	PlansSinceReason string `msgpack:"PlansLack"`  // why earlier plans are not known
}

// ViewACL returns the ACL of those who may see the job, in Hadoop's syntax; empty: the job has none. It is
// a blank, no user, if the record does not keep it.
func (r *Record) ViewACL() string {
	if !r.HasView {
		return " "
	}
	return r.View
}

// Name returns the URL of a job's file.
func Name(staging string, ended time.Time, job wire.JobID) string {
	return dfs.Join(root(staging), ended.UTC().Format(dayLayout), job.String())
}

func root(staging string) string { return dfs.Join(staging, wire.StagingHistory) }

// Write writes a job's file durably. An existing file stays.
func Write(f dfs.FS, name string, r *Record) error {
	if err := write(f, name, r); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

func write(f dfs.FS, name string, r *Record) error {
	f = dfs.Private(f) // the record has the job's token
	if _, err := f.Stat(name); err == nil {
		return f.SyncDir(dfs.Dir(name)) // its writer may have died before its sync
	}
	data, err := encode(r)
	if err != nil {
		return err
	}
	if err := f.MkdirAll(dfs.Dir(name)); err != nil {
		return err
	}
	temporary := dfs.Join(dfs.Dir(name), "."+rand.Text())
	if err := create(f, temporary, data); err != nil {
		return errors.Join(err, remove(f, temporary))
	}
	renamed := f.RenameFile(temporary, name)
	if err := renamed; err != nil {
		// Another writer was first, or this rename succeeded but reported an error.
		if _, statErr := f.Stat(name); statErr == nil {
			err = nil
		}
		if err = errors.Join(err, remove(f, temporary)); err != nil {
			return err
		}
	}
	if err := f.SyncDir(dfs.Dir(name)); err != nil || renamed != nil {
		return err
	}
	d := day{name: dfs.Dir(name)}
	_ = d.addToIndex(f, r) // else readers read the record, until Sweep adds it
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

// remove removes a file, which may be missing.
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

// reader keeps a read error, because a read error must not be reported as damage.
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
	body, err := inflate(from, magic)
	if err != nil {
		return nil, err
	}
	return parse(body)
}

// inflate unpacks a file that begins with a magic number.
func inflate(from io.Reader, magic string) ([]byte, error) {
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(from, head); err != nil || string(head) != magic {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrNotHistory, magic)
	}
	file := &counted{in: from}
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotHistory, err)
	}
	body, err := io.ReadAll(io.LimitReader(&inflated{zip: zip, file: file}, MaxRecord+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotHistory, err)
	case len(body) > MaxRecord:
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrNotHistory, MaxRecord)
	}
	return body, nil
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

// Unpack decodes PlanLog to Plans. Old records have no PlanLog.
func (r *Record) Unpack() (err error) {
	if len(r.PlanLog) > 0 {
		r.Plans, err = ParsePlans(r.PlanLog)
		r.PlanLog = nil
	}
	return err
}
