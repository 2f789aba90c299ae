package runtime

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// In a job that skips bad records, an attempt counts the records of its split, or the groups of its
// partition, and notes which one its code is in. The note is in a file, so that the tracker can
// read it if the process dies. The leader decides what later attempts skip: see
// jobtracker/core/skipping.go.

const (
	positionName = "position" // in the attempt's directory
	positionSize = 8          // bytes of its number, in the machine's order
)

// ReadPosition reads the file with an attempt's position: 1 + the number of the record or group that
// its code was in. It returns 0 if there is none, or if the job's code has replaced the file.
func ReadPosition(file string) int64 {
	f, err := openPosition(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	var number [positionSize]byte
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() != positionSize {
		return 0
	}
	if _, err := io.ReadFull(f, number[:]); err != nil {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(number[:]))
}

// skipping counts the records or groups of an attempt and skips some. Only the goroutine of the
// attempt's code uses it. A nil *skipping skips nothing.
type skipping struct {
	ctx    context.Context    // of the attempt
	ranges []wire.RecordRange // sorted; those before next are removed
	next   int64              // number of the next record or group
	in     int64              // 1 + the number of the one that the code is in; 0: none
	memory *positionMemory    // nil: there is no file

	records, groups int64 // skipped
	aside           asideWriter
}

// startSkipping prepares an attempt of a job that skips bad records.
func (a *attempt) startSkipping() error {
	if a.cmd.Skip == nil {
		return nil
	}
	s := &skipping{ctx: a.task.Ctx, ranges: slices.Clone(a.cmd.Skip.Ranges)}
	slices.SortFunc(s.ranges, func(x, y wire.RecordRange) int { return cmp.Compare(x.From, y.From) })
	a.skip = s
	if a.cmd.Dir == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(a.cmd.Dir, positionName))
	if err != nil {
		return fmt.Errorf("note the position of records: %w", err)
	}
	_, err = f.Write(make([]byte, positionSize)) // a hole could not be filled on a full disk
	if err == nil {
		var memory positionMemory
		if memory, err = mapPosition(f); err == nil {
			s.memory = &memory
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("note the position of records: %w", err)
	}
	return nil
}

// begin goes to the next record or group, and reports whether to skip it.
func (s *skipping) begin() (skip bool) {
	n := s.next
	s.next++
	for len(s.ranges) > 0 && s.ranges[0].To <= n {
		s.ranges = s.ranges[1:]
	}
	if len(s.ranges) > 0 && s.ranges[0].From <= n {
		s.note(0)
		return true
	}
	s.note(n + 1)
	return false
}

// end notes that the code has had all records.
func (s *skipping) end() {
	if s != nil {
		s.note(0)
	}
}

// note notes the position. After the end of the attempt it stays where the attempt has ended: the code
// may leave a record that hangs, and go on with others.
func (s *skipping) note(in int64) {
	if s.ctx.Err() != nil {
		return
	}
	s.in = in
	if s.memory != nil {
		s.memory.store(in)
	}
}

func (s *skipping) close() error {
	if s == nil || s.memory == nil {
		return nil
	}
	memory := s.memory
	s.memory = nil
	return memory.close()
}

// watchedCollector keeps the first error of a collector.
type watchedCollector struct {
	Collector
	err error
}

func (c *watchedCollector) Collect(partition int, key, value []byte) error {
	err := c.Collector.Collect(partition, key, value)
	c.err = cmp.Or(c.err, err)
	return err
}

// failedInCode notes that the attempt's code failed by itself: neither its input, its output nor the
// end of the attempt is the cause.
func (a *attempt) failedInCode(err error, others ...error) {
	a.inCode = err != nil && a.task.Ctx.Err() == nil && errors.Join(others...) == nil
}

// died returns where the attempt's code failed, or nil if it failed elsewhere.
func (s *skipping) died() *wire.Position {
	if s == nil || s.in == 0 {
		return nil
	}
	return &wire.Position{Record: s.in - 1}
}

// SkippedRecord is a line of the file with the skipped records of a task, in JSON.
type SkippedRecord struct {
	Number int64  `json:"number"`           // of the record in its split, or of the group in its partition, from 0
	File   string `json:"file,omitempty"`   // with the record, if it is known
	Offset *int64 `json:"offset,omitempty"` // of the record in the content of the file, if it is known
	Text   string `json:"text,omitempty"`   // the record, or key and value
	Bytes  []byte `json:"bytes,omitempty"`  // instead of Text, if the record is not UTF-8, in base64
	Size   int    `json:"size,omitempty"`   // bytes of the record, if Text or Bytes has only the beginning
	More   int64  `json:"more,omitempty"`   // in the last line: how many skipped records have no line
}

// Limits of a file of skipped records.
const (
	maxAsideRecord = 64 << 10
	maxAsideBytes  = 4 << 20
)

// asideWriter collects skipped records.
type asideWriter struct {
	lines []byte
	more  int64
}

func (w *asideWriter) add(r SkippedRecord, record string) {
	if len(w.lines) >= maxAsideBytes {
		w.more++
		return
	}
	if len(record) > maxAsideRecord {
		r.Size, record = len(record), record[:maxAsideRecord]
		for !utf8.ValidString(record) && len(record) > maxAsideRecord-utf8.UTFMax {
			record = record[:len(record)-1]
		}
	}
	if utf8.ValidString(record) {
		r.Text = record
	} else {
		r.Bytes = []byte(record)
	}
	w.append(r)
}

func (w *asideWriter) append(r SkippedRecord) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		panic(fmt.Sprintf("a skipped record cannot be encoded: %v", err)) // strings and numbers can
	}
	w.lines = append(w.lines, line.Bytes()...)
}

// content returns the lines of the file.
func (w *asideWriter) content() []byte {
	if w.more > 0 {
		w.append(SkippedRecord{More: w.more})
		w.more = 0
	}
	return w.lines
}

// skipRecord skips a record of a split.
func (s *Split) skipRecord(record string) {
	s.pulse.beat()
	x := SkippedRecord{Number: s.skip.next - 1, File: s.path}
	if s.path != "" && s.recordAt >= 0 && s.pieceAt == 0 {
		at := s.recordAt
		x.Offset = &at
	}
	s.skip.records++
	s.skip.aside.add(x, record)
}

// EndRecords notes the end of the records of an author's own format.
func (s *Split) EndRecords() { s.skip.end() }

// groupRecords is the records of a reduce that skips bad groups.
type groupRecords struct {
	*countedRecords
	skip *skipping
}

// BeginGroup says that the current record begins a group, and reports whether to skip it.
func (r *groupRecords) BeginGroup() (skip bool) {
	if skip = r.skip.begin(); skip {
		r.skip.groups++
	}
	return skip
}

// SkipRecord skips a record of the group, given as text.
func (r *groupRecords) SkipRecord(text string) {
	r.records--
	r.skip.records++
	r.skip.aside.add(SkippedRecord{Number: r.skip.next - 1}, text)
}

// EndGroups notes that the code has had all groups.
func (r *groupRecords) EndGroups() { r.skip.end() }

// keepSkipped counts the skipped records of an attempt, and writes them aside, before the attempt
// commits. The job's commit moves the file to [SkipOutdir].
func (a *attempt) keepSkipped() error {
	s := a.skip
	if s == nil || s.records == 0 {
		return nil
	}
	if a.id().Task.Kind == wire.Map {
		a.counters.Add(wire.TaskCounters, wire.MapSkippedRecords, s.records)
	} else {
		a.counters.Add(wire.TaskCounters, wire.ReduceSkippedGroups, s.groups)
		a.counters.Add(wire.TaskCounters, wire.ReduceSkippedRecords, s.records)
	}
	if dir, err := skipOutdir(a.plan().Properties, a.tree.out); err != nil || dir == "" {
		return err
	}
	dir := a.tree.skipped()
	if err := mkdir(a.tree.fs, dir); err != nil {
		return fmt.Errorf("write skipped records: %w", err)
	}
	name := dfs.Join(dir, fmt.Sprintf("%v.%d", a.id().Task, a.cmd.Skip.Changes))
	if err := writeOnce(a.tree.fs, name, dfs.Join(dir, a.id().String()), s.aside.content()); err != nil {
		return fmt.Errorf("write skipped records: %w", err)
	}
	return a.tree.fs.SyncDir(dir)
}

// skipOutdir returns the directory for the skipped records of a job, or "" if it keeps none.
func skipOutdir(properties map[string]string, output string) (string, error) {
	defaultFS, err := dfs.CleanDefault(properties[DefaultFS])
	if err != nil {
		return "", Fatal(fmt.Errorf("property %s: %w", DefaultFS, err))
	}
	switch dir := strings.TrimSpace(properties[SkipOutdir]); {
	case dir == "":
		return dfs.Join(output, skipLogs, "skip"), nil
	case dir == "none":
		return "", nil
	case strings.Contains(dir, "://"):
		return strings.TrimRight(dir, "/"), nil
	case filepath.IsAbs(dir):
		return dfs.CleanOn(defaultFS, dir)
	default:
		return "", Fatal(fmt.Errorf("property %s=%q: want a URL, an absolute path, or none", SkipOutdir, dir))
	}
}

// skipLogs is the directory of the job's output that has the directory with skipped records.
const skipLogs = "_logs"

// skipped is the directory with skipped records, one file for each task and each change of what it
// skips.
func (t *tree) skipped() string { return t.below("s") }

// publishSkipped is the part of the job's commit that publishes skipped records.
func (a *attempt) publishSkipped() error {
	outdir, err := skipOutdir(a.plan().Properties, a.tree.out)
	if err == nil && outdir != "" {
		err = a.tree.publishSkipped(outdir, a.id().String(), a.alive)
	}
	if err != nil {
		return fmt.Errorf("commit job: skipped records: %w", err)
	}
	return nil
}

// publishSkipped copies the skipped records to a directory: of each task the file of the last
// change.
func (t *tree) publishSkipped(outdir, attempt string, beforeStep func() error) error {
	files, err := t.fs.List(t.skipped())
	if missing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	latest := make(map[string]int)
	for _, f := range files {
		name, changes, _ := strings.Cut(dfs.Base(f.Name), ".")
		var n int
		if _, err := fmt.Sscan(changes, &n); err != nil {
			continue // of an attempt that did not finish it
		}
		latest[name] = max(latest[name], n)
	}
	if len(latest) > 0 {
		if err := t.fs.MkdirAll(outdir); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(latest)) {
		if err := beforeStep(); err != nil {
			return err
		}
		content, err := readAll(t.fs, dfs.Join(t.skipped(), fmt.Sprintf("%s.%d", name, latest[name])), math.MaxInt32)
		if err != nil {
			return err
		}
		if err := writeOnce(t.fs, dfs.Join(outdir, name), dfs.Join(outdir, "."+name+"."+attempt), content); err != nil {
			return err
		}
	}
	return nil
}
