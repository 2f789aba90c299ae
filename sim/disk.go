package sim

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// disk is a model of a task tracker's local files on all its disks.
type disk struct {
	files map[string]*file
	bad   map[string]int // by disk: faults that fail every read and write
}

// file is a segment file if it has pieces, a report, or any other file.
type file struct {
	pieces  []piece
	parts   map[int64][]piece // by offset: of a file of a batch, which has no other pieces
	damaged bool
	report  *wire.Report
}

// disks are a tracker's data directories; the first is its own directory.
func disks() []string { return []string{"D", "E"} }

// diskOf returns the disk of a path.
func diskOf(path string) string {
	name, _, _ := strings.Cut(path, "/")
	return name
}

func (d *disk) works(path string) bool { return d.bad[diskOf(path)] == 0 }

// piece is the output of one map, for all partitions or for one.
type piece struct {
	m      int
	digest uint64
}

const segmentLength = 10 // of every partition in every file

func newDisk() *disk { return &disk{make(map[string]*file), make(map[string]int)} }

// clean removes files that a restarted process cannot use. It returns the reports of finished
// map outputs.
func (d *disk) clean() []string {
	var reports []string
	keep := make(map[string]bool)
	for name, f := range d.files {
		output := path.Join(path.Dir(name), core.OutputFile)
		if f.report != nil && d.files[output] != nil && d.works(name) {
			reports = append(reports, name)
			keep[name], keep[output] = true, true
		}
	}
	for name := range d.files {
		if !keep[name] && !within(name, "D/"+core.LogsDir) {
			delete(d.files, name)
		}
	}
	slices.Sort(reports)
	return reports
}

// restore verifies the reports that clean found, one after the other, and gives them to the
// core.
func (t *taskTracker) restore(reports []string) {
	if len(reports) == 0 {
		t.later(t.w.upTo(10*time.Millisecond), func() { t.step(core.RestoreEnded{}) })
		return
	}
	name := reports[0]
	t.later(t.w.upTo(t.w.verifyTime), func() {
		report, output := t.disk.files[name], t.disk.files[path.Join(path.Dir(name), core.OutputFile)]
		switch {
		case report == nil: // the job has been dropped since
		case output == nil || output.damaged || !t.disk.works(name):
			t.disk.remove(path.Dir(name))
		default:
			t.w.note("%s has kept %v", t.name, report.report.Attempt)
			copied := *report.report
			result, out := *copied.Result, *copied.Result.Output
			copied.Result, result.Output = &result, &out
			t.step(core.Restored{Disk: slices.Index(disks(), diskOf(name)), Report: copied})
		}
		t.restore(reports[1:])
	})
}

// record writes the report of a map output.
func (t *taskTracker) record(c core.Record) {
	t.later(t.w.upTo(10*time.Millisecond), func() {
		ev := core.Recorded{Attempt: c.Report.Attempt}
		if !t.disk.works(c.File) || !t.hasSpace(c.File) || t.w.fault(t.w.rates.disks) {
			ev.Error = errFault.Error()
		} else if t.disk.files[path.Join(path.Dir(c.File), core.OutputFile)] != nil {
			t.disk.files[c.File] = &file{report: c.Report}
		}
		t.step(ev)
	})
}

// probe checks a disk after earlier removals; a fault keeps it bad.
func (t *taskTracker) probe(c core.Probe) {
	t.work.disk.run(t.upTo(0), func() {
		t.later(t.w.upTo(20*time.Millisecond), func() {
			ev := core.DiskProbed{Disk: c.Disk}
			if !t.disk.works(c.Path) {
				ev.Error = "input/output error"
			}
			t.step(ev)
		})
	})
}

// breakDisk makes a disk fail for a while.
func (t *taskTracker) breakDisk(name string, d time.Duration) {
	t.disk.bad[name]++
	healed := false
	heal := func() {
		if !healed {
			healed = true
			t.disk.bad[name]--
		}
	}
	t.w.after(d, heal)
	t.w.heals = append(t.w.heals, heal)
}

func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir) && name[len(dir)] == '/'
}

func (d *disk) remove(dir string) {
	if d.files[dir] != nil {
		delete(d.files, dir)
		return
	}
	for name := range d.files {
		if within(name, dir) {
			delete(d.files, name)
		}
	}
}

// jobFiles lists the files of jobs except logs, which may stay.
func (d *disk) jobFiles() []string {
	var left []string
	for name := range d.files {
		if !within(name, "D/"+core.LogsDir) {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left
}

// segments lists the segment files.
func (d *disk) segments() []string {
	var names []string
	for name, f := range d.files {
		if f.pieces != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// gather starts and cancels fetches and merges.
func (t *taskTracker) gather(c core.Command) {
	switch c := c.(type) {
	case core.Fetch:
		x := &transfer{}
		t.fetches[c.Fetch] = x
		if c.InPlace {
			t.work.lookUps.run(t.upTo(5*time.Millisecond), func() { t.do(func() { t.fetched(x, c) }) })
			return
		}
		t.later(t.fetchTime(c), func() { t.fetched(x, c) })
	case core.FetchBatch:
		x := &transfer{batch: true}
		t.fetches[c.Fetch] = x
		t.later(t.fetchTime(core.Fetch{Output: c.Outputs[0]}), func() { t.batchFetched(x, c) })
	case core.CancelFetch:
		if x := t.fetches[c.Fetch]; x != nil {
			t.later(t.w.upTo(5*time.Millisecond), func() {
				if x.batch {
					t.endFetch(x, c.Fetch, core.BatchDone{Fetch: c.Fetch, Error: "cancelled"})
					return
				}
				t.fetchDone(x, core.FetchDone{Fetch: c.Fetch, Error: "cancelled"})
			})
		}
	case core.Merge:
		x := &transfer{}
		t.merges[c.Merge] = x
		for _, r := range c.Runs {
			if t.disk.files[r.File] == nil && !t.w.book.lostFiles[t.name+r.File] {
				t.w.fail("V8: %s merges %s, which was removed", t.name, r.File)
			}
		}
		t.later(slowed(t.w.upTo(100*time.Millisecond), max(t.machine.disk, t.machine.processor)), func() { t.merged(x, c) })
	case core.CancelMerge:
		if x := t.merges[c.Merge]; x != nil {
			t.later(t.w.upTo(5*time.Millisecond), func() {
				t.mergeDone(x, core.MergeDone{Merge: c.Merge, Error: "cancelled"})
			})
		}
	default:
		t.w.fail("%s has a command %T that the simulation does not know", t.name, c)
	}
}

func (t *taskTracker) fetchTime(c core.Fetch) time.Duration {
	if t.w.fault(t.w.rates.slowNet) {
		return t.w.upTo(10 * time.Second)
	}
	d := t.w.upTo(100 * time.Millisecond)
	if from := t.w.trackerOf(c); from != nil {
		d = slowed(d, max(t.machine.network, from.machine.network, t.machine.disk, from.machine.disk))
	}
	return d
}

// trackerOf returns the tracker from which a fetch reads; nil: it does not run.
func (w *world) trackerOf(c core.Fetch) *taskTracker {
	t, _ := w.nodes[c.Output.Tracker].(*taskTracker)
	return t
}

// fetched ends a fetch, successfully if the other tracker is reachable and has the output.
func (t *taskTracker) fetched(x *transfer, c core.Fetch) {
	w := t.w
	from := cmp.Or(w.trackerOf(c), t)
	switch {
	case x.done:
		return
	case !from.up || !w.connected(t.name, from.name) || !c.InPlace && w.fault(w.rates.fetches):
		t.fetchDone(x, core.FetchDone{Fetch: c.Fetch, Error: "no answer from " + from.name})
		return
	case from.machine.refusesFetches && !c.InPlace:
		t.fetchDone(x, core.FetchDone{Fetch: c.Fetch, Error: "status 503 from " + from.name})
		return
	case from.stops > 0, from.machine.stallsFetches && !c.InPlace:
		t.later(3*time.Second, func() {
			t.fetchDone(x, core.FetchDone{Fetch: c.Fetch, Error: "no progress from " + from.name, Stalled: true})
		})
		return
	}
	name, f := from.output(c)
	switch {
	case f != nil && !from.disk.works(name):
		t.fetchDone(x, core.FetchDone{Fetch: c.Fetch, Error: "input/output error at " + from.name, DiskFailed: c.InPlace})
		return
	case !c.InPlace && !t.hasSpace(c.File):
		t.fetchDone(x, core.FetchDone{Fetch: c.Fetch, Error: "no space left on device", DiskFailed: true})
		return
	case !c.InPlace && !t.disk.works(c.File):
		t.fetchDone(x, core.FetchDone{Fetch: c.Fetch, Error: "input/output error", DiskFailed: true})
		return
	case f == nil:
		t.fetchDone(x, core.FetchDone{Fetch: c.Fetch, Error: "no such output", Missing: true})
		return
	case f.damaged && w.sabotage != skipChecksums:
		t.fetchDone(x, core.FetchDone{Fetch: c.Fetch, Error: "bad checksum", Corrupt: true})
		return
	}
	done := core.FetchDone{Fetch: c.Fetch, Segment: wire.Segment{File: c.File, Length: segmentLength}}
	if records(c.Job, c.Output.Map, c.Partition) {
		done.Records = 1
	}
	if c.InPlace {
		done.Segment.Offset = int64(c.Partition) * segmentLength
	} else {
		t.disk.files[c.File] = &file{pieces: f.read(0)}
	}
	t.fetchDone(x, done)
}

// output finds the map output of a fetch.
func (t *taskTracker) output(c core.Fetch) (string, *file) {
	for _, disk := range disks() {
		name := core.MapOutputPath(disk, c.Job, c.Output.Map, c.Output.Attempt)
		if f := t.disk.files[name]; f != nil {
			return name, f
		}
	}
	return "", nil
}

// read returns the content of a segment of a file, which differs if the file is damaged.
func (f *file) read(offset int64) []piece {
	pieces := slices.Clone(f.pieces)
	if f.parts != nil {
		pieces = slices.Clone(f.parts[offset])
	}
	if f.damaged {
		for i := range pieces {
			pieces[i].digest ^= 1 << 63
		}
	}
	return pieces
}

func (t *taskTracker) fetchDone(x *transfer, ev core.FetchDone) { t.endFetch(x, ev.Fetch, ev) }

// endFetch ends a fetch or a batch with its event, unless it has ended.
func (t *taskTracker) endFetch(x *transfer, fetch int, ev core.Event) {
	if x.done {
		return
	}
	x.done = true
	delete(t.fetches, fetch)
	t.step(ev)
}

func (t *taskTracker) merged(x *transfer, c core.Merge) {
	if x.done {
		return
	}
	out := &file{pieces: []piece{}}
	ev := core.MergeDone{Merge: c.Merge, Segment: wire.Segment{File: c.File, Length: segmentLength}}
	for i, r := range c.Runs {
		f := t.disk.files[r.File]
		switch {
		case !t.disk.works(r.File) || !t.disk.works(c.File):
			ev = core.MergeDone{Merge: c.Merge, Error: "input/output error", DiskFailed: true}
		case f == nil || f.damaged && t.w.sabotage != skipChecksums:
			ev = core.MergeDone{Merge: c.Merge, Error: "bad checksum", Corrupt: &c.Runs[i]}
		default:
			out.pieces = append(out.pieces, f.read(r.Offset)...)
		}
	}
	if ev.Error == "" && !t.hasSpace(c.File) {
		ev = core.MergeDone{Merge: c.Merge, Error: "no space left on device", DiskFailed: true}
	}
	if ev.Error == "" && t.w.fault(t.w.rates.merges) {
		ev = core.MergeDone{Merge: c.Merge, Error: "disk full", DiskFailed: t.w.chance(0.5)}
	}
	if ev.Error == "" {
		t.disk.files[c.File] = out
	}
	t.mergeDone(x, ev)
}

func (t *taskTracker) mergeDone(x *transfer, ev core.MergeDone) {
	if x.done {
		return
	}
	x.done = true
	delete(t.merges, ev.Merge)
	t.step(ev)
}

// spoil loses or damages some of the segment files.
func (t *taskTracker) spoil(damage bool) {
	for _, name := range t.disk.segments() {
		if !t.w.chance(0.4) && t.w.sabotage != skipChecksums {
			continue
		}
		t.w.note("the disk of %s spoils %s", t.name, name)
		if damage {
			t.disk.files[name].damaged = true
		} else {
			delete(t.disk.files, name)
			t.w.book.lostFiles[t.name+name] = true
		}
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func sortedAttempts[V any](m map[wire.AttemptID]V) []wire.AttemptID {
	return slices.SortedFunc(maps.Keys(m), wire.AttemptID.Compare)
}
