package history

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

const (
	indexName  = "index" // of the directory beside a day's records
	indexMagic = "qhi1"
)

func (d *day) index() string { return dfs.Join(d.name, indexName) }

// index has the encoded summaries of a day. If the job was not selected, its summary is nil.
type index map[wire.JobID][]byte

// summary returns the part of a record that lists show.
func (r *Record) summary() *Record {
	s := &Record{
		Job: r.Job, Plan: wire.JobPlan{Output: r.Plan.Output}, Owner: r.Owner, Submitted: r.Submitted, Ended: r.Ended,
		Omitted: r.Omitted, View: r.View, HasView: r.HasView,
	}
	s.Job.Counters, s.Job.Troubles = nil, nil
	s.Job.Partitions, s.Job.HotKeys, s.Job.SlotTime = nil, nil, nil
	return s
}

// add adds the summary of a record: first the fields by which lists select, which are fast to decode.
func (x index) add(r *Record) error {
	body, err := wire.Marshal(r.summary())
	if err != nil {
		return err
	}
	var s []byte
	for _, n := range []int64{int64(r.Job.State), r.Submitted, r.Job.Flow.Start, int64(r.Job.Flow.N)} {
		s = binary.AppendUvarint(s, uint64(max(n, 0)))
	}
	for _, text := range []string{r.Owner, r.Job.Settings.Pool, r.Job.Name} {
		s = append(binary.AppendUvarint(s, uint64(len(text))), text...)
	}
	x[r.Job.ID] = append(s, body...)
	return nil
}

// parseHead decodes the fields by which lists select, and returns the rest.
func parseHead(summary []byte, job wire.JobID, into *Record) (body []byte, ok bool) {
	in := planReader{rest: summary}
	into.Job.ID, into.Job.State, into.Submitted = job, wire.State(in.number()), int64(in.number())
	into.Job.Flow = wire.FlowID{Start: int64(in.number()), N: in.number()}
	into.Owner, into.Job.Settings.Pool, into.Job.Name = in.text(), in.text(), in.text()
	return in.rest, !in.invalid
}

// record decodes a summary.
func (x index) record(job wire.JobID) (*Record, error) {
	body, _ := parseHead(x[job], job, new(Record))
	r := new(Record)
	if err := wire.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("%w: the summary of %v: %w", ErrNotHistory, job, err)
	}
	return r, nil
}

// encode encodes an index as a file.
func (x index) encode() ([]byte, error) {
	out := bytes.NewBufferString(indexMagic)
	zip, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	for _, job := range slices.SortedFunc(maps.Keys(x), wire.JobID.Compare) {
		entry := binary.AppendUvarint(nil, uint64(job.Start))
		entry = binary.AppendUvarint(entry, uint64(job.N))
		entry = binary.AppendUvarint(entry, uint64(len(x[job])))
		if _, err := zip.Write(append(entry, x[job]...)); err != nil {
			return nil, err
		}
	}
	err = zip.Close()
	return out.Bytes(), err
}

// decode adds the summaries of a file. It is strict: a damaged file adds none.
func (x index) decode(from io.Reader, selects func(*Record) bool) error {
	data, err := inflate(from, indexMagic)
	if err != nil {
		return err
	}
	in, head, found := planReader{rest: data}, new(Record), make(index)
	for len(in.rest) > 0 {
		job := wire.JobID{Start: int64(in.number()), N: in.number()}
		summary := in.bytes()
		if _, ok := parseHead(summary, job, head); !ok || in.invalid {
			return fmt.Errorf("%w: its summary number %d is damaged", ErrNotHistory, len(found)+1)
		}
		if found[job] = nil; selects == nil || selects(head) {
			found[job] = bytes.Clone(summary) // data has also those that are not selected
		}
	}
	maps.Copy(x, found)
	return nil
}

// readFile adds the summaries of a file.
func (x index) readFile(f dfs.FS, name string, selects func(*Record) bool) error {
	file, err := f.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	in := &reader{from: file}
	if err := x.decode(in, selects); err != nil {
		return fmt.Errorf("read index %s: %w", name, cmp.Or(in.err, err))
	}
	return nil
}

// writeFile writes an index as a new file.
func (x index) writeFile(f dfs.FS, dir string) error {
	data, err := x.encode()
	if err != nil {
		return err
	}
	f = dfs.Private(f)
	if err := f.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := create(f, dfs.Join(dir, rand.Text()), data); err != nil {
		return err
	}
	return f.SyncDir(dir)
}

// indexReads is how often the files of an index are listed: others may merge them meanwhile.
const indexReads = 3

// readIndex reads the index of a day. Damaged and missing files lack, as do the summaries of a writer that died.
func (d *day) readIndex(f dfs.FS, selects func(*Record) bool) index {
	x := make(index)
	for range indexReads {
		merged := false
		files, err := list(f, d.index())
		if err != nil {
			return x
		}
		for i := range files {
			merged = errors.Is(x.readFile(f, files[i].Name, selects), fs.ErrNotExist) || merged
		}
		if !merged {
			break
		}
	}
	return x
}

// A class has files of about equal size. mergeAt files of a class become one. So the index of n jobs has O(log n)
// files, and each summary is rewritten O(log n) times.
const (
	classFactor = 8
	mergeAt     = 8
	maxMerged   = 4 << 20 // bytes of a file that is not merged any more: some 50,000 jobs
)

// addToIndex adds a new record to the index of its day. Writers need not wait for each other, and their files are never
// changed. Sweep restores what a power cut loses.
func (d *day) addToIndex(f dfs.FS, r *Record) error {
	x, dir := make(index), d.index()
	if err := x.add(r); err != nil {
		return err
	}
	if err := x.writeFile(dfs.Volatile(f), dir); err != nil {
		return err
	}
	files, err := list(f, dir)
	if err != nil {
		return err
	}
	classes := make(map[int][]dfs.Info)
	for _, file := range files {
		class := 0
		for size := file.Size; size > 0; size /= classFactor {
			class++
		}
		if classes[class] = append(classes[class], file); len(classes[class]) == mergeAt && file.Size <= maxMerged {
			return mergeFiles(f, dir, make(index), classes[class])
		}
	}
	return nil
}

// mergeFiles writes x and the summaries of some files as one file, and removes those files. If others merge the
// same files, some jobs have two equal summaries. Sweep restores the summaries of damaged files.
func mergeFiles(f dfs.FS, dir string, x index, files []dfs.Info) error {
	for _, file := range files {
		if err := x.readFile(f, file.Name, nil); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrNotHistory) {
			return err
		}
	}
	if err := x.writeFile(f, dir); err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		errs = append(errs, remove(f, file.Name))
	}
	return errors.Join(errs...)
}

// repairIndex adds the records of a day that its index lacks, at most so many, and removes damaged files. Once the
// day is over, the index becomes one file. It returns how many records it read.
func (d *day) repairIndex(f dfs.FS, reads int, over bool) (read int, err error) {
	dir := d.index()
	files, err := list(f, dir)
	if err != nil {
		return 0, err
	}
	x, damaged := make(index), false
	for _, file := range files {
		err := x.readFile(f, file.Name, func(*Record) bool { return false })
		if err != nil && !errors.Is(err, ErrNotHistory) {
			return 0, err
		}
		damaged = damaged || err != nil
	}
	jobs, err := d.jobs(f)
	if err != nil {
		return 0, err
	}
	lacking := make(index)
	for _, job := range jobs {
		if _, known := x[job]; known || read == reads {
			continue
		}
		read++
		r, err := Read(f, dfs.Join(d.name, job.String()))
		if err == nil {
			err = lacking.add(r)
		}
		if err != nil && !errors.Is(err, ErrNotHistory) && !errors.Is(err, fs.ErrNotExist) {
			return read, err
		}
	}
	switch {
	case damaged, over && len(files)+min(len(lacking), 1) > 1:
		return read, mergeFiles(f, dir, lacking, files)
	case len(lacking) > 0:
		return read, lacking.writeFile(f, dir)
	}
	return read, nil
}
