package core

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// world simulates everything around a core at random: a leader, workers, a disk and other
// trackers. It checks the core's commands.
type world struct {
	t        *rapid.T
	core     *Core
	now      time.Duration
	noFaults bool

	unacked bool // a heartbeat has no Ack yet

	// The leader.
	up, registered bool
	epoch          uint64
	incarnation    uint64
	next           int
	generation     int
	jobs           []wire.JobID
	dropped        map[wire.JobID]bool
	launched       map[wire.AttemptID]wire.AttemptState // 0: no final report yet
	ready          map[wire.AttemptID]bool
	homes          map[homeName]*wire.SetHome
	complete       map[homeName]bool
	chosen         map[wire.JobID]map[int]wire.MapOutput

	// The machine.
	workers map[int]*simWorker
	fetches map[int]simFetch
	merges  map[int]Merge
	logs    map[wire.AttemptID]bool
	records map[wire.AttemptID]Record
	probes  map[int]string
	files   map[string]bool
	staged  map[string]bool // submissions that workers were started for, until they end

	noSlots bool // all disks are bad
}

// simFetch is a fetch, a look-up, or a batch.
type simFetch struct {
	Fetch
	batch *FetchBatch
}

type homeName struct {
	job       wire.JobID
	partition int
}

type simWorker struct {
	staging string

	sentHello, killed, sentReady, granted bool
	run                                   *wire.Run
}

const (
	simMaps       = 5
	simPartitions = 2
)

func newWorld(t *rapid.T) *world {
	w := &world{
		t: t, epoch: 1, incarnation: 1,
		dropped: make(map[wire.JobID]bool), launched: make(map[wire.AttemptID]wire.AttemptState),
		ready: make(map[wire.AttemptID]bool), homes: make(map[homeName]*wire.SetHome), complete: make(map[homeName]bool),
		chosen:  make(map[wire.JobID]map[int]wire.MapOutput),
		workers: make(map[int]*simWorker), fetches: make(map[int]simFetch), merges: make(map[int]Merge),
		logs: make(map[wire.AttemptID]bool), files: make(map[string]bool), staged: make(map[string]bool),
		records: make(map[wire.AttemptID]Record), probes: make(map[int]string),
	}
	w.core = New(Config{
		Tracker: "t1", Process: 1, Addr: "t1:1", Dir: "D", MapSlots: 2, ReduceSlots: 1, IdleWorkers: 2,
		Fetches: 3, FetchesPerHost: 2, FetchTries: 2, MergeFactor: 2,
		Disks: []string{"A", "B"}, Record: true, DiskStrikes: 3, Embedded: true,
	})
	return w
}

// step passes an event to the core and carries out the resulting commands.
func (w *world) step(ev Event) {
	for _, c := range w.core.Step(w.now, ev) {
		w.do(c)
	}
	checkInvariants(w.t, w.core)
}

func (w *world) do(c Command) {
	switch c := c.(type) {
	case Send:
		w.receive(c.Message)
	case Hangup:
		w.up, w.registered = false, false
	case StartWorker:
		w.workers[c.Worker] = &simWorker{staging: c.Staging}
		w.files[c.Dir+"/stderr"] = true
		w.staged[c.Staging] = true
	case SendWorker:
		w.toWorker(c)
	case KillWorker:
		w.workers[c.Worker].killed = true
	case StopWorker:
		w.workers[c.Worker].killed = true
	case ReadLog:
		w.logs[c.Attempt] = true
	case Fetch:
		w.notDropped(c.Job)
		w.fetches[c.Fetch] = simFetch{Fetch: c}
		if c.InPlace && !w.files[c.File] {
			w.t.Fatalf("look-up in %s, which does not exist", c.File)
		}
	case FetchBatch:
		w.notDropped(c.Job)
		w.fetches[c.Fetch] = simFetch{batch: &c}
		for _, file := range c.Local {
			if !w.files[file] {
				w.t.Fatalf("a batch reads %s, which does not exist", file)
			}
		}
	case CancelFetch:
		if _, ok := w.fetches[c.Fetch]; !ok {
			w.t.Fatalf("cancels fetch %d, which has ended", c.Fetch)
		}
	case Merge:
		for _, r := range c.Runs {
			w.mustExist(r)
		}
		w.merges[c.Merge] = c
	case Record:
		w.records[c.Report.Attempt] = c
	case Probe:
		if _, busy := w.probes[c.Disk]; busy {
			w.t.Fatalf("disk %d has two concurrent probes", c.Disk)
		}
		w.probes[c.Disk] = c.Path
	case Remove:
		w.remove(c.Path)
	case RemoveProgram:
		for id, s := range w.workers {
			if s.staging == c.Staging {
				w.t.Fatalf("T11: submission %s ends, but not its worker %d", c.Staging, id)
			}
		}
		delete(w.staged, c.Staging)
	}
}

func (w *world) notDropped(job wire.JobID) {
	if w.dropped[job] {
		w.t.Fatalf("T7: %v is dropped", job)
	}
}

func (w *world) mustExist(r wire.Segment) {
	if !w.files[r.File] {
		w.t.Fatalf("T5: run %s does not exist", r.File)
	}
}

func (w *world) toWorker(c SendWorker) {
	s := w.workers[c.Worker]
	switch m := c.Message.(type) {
	case *wire.Run:
		if s.run != nil || s.killed || !s.sentHello {
			w.t.Fatalf("T1: worker %d gets %v", c.Worker, m.Attempt)
		}
		w.notDropped(m.Attempt.Task.Job)
		s.run, s.sentReady, s.granted = m, false, false
		w.files[m.Dir+"/work/x"] = true
		w.files[m.Logs+"/stderr"] = true
		for _, r := range m.Runs {
			w.mustExist(r)
		}
	case *wire.CommitGranted:
		s.granted = true
	}
}

// remove checks that no attempt or merge reads the file.
func (w *world) remove(path string) {
	for file := range w.files {
		if file != path && !strings.HasPrefix(file, path+"/") {
			continue
		}
		delete(w.files, file)
		for _, s := range w.workers {
			if s.run != nil && slices.ContainsFunc(s.run.Runs, func(r wire.Segment) bool { return r.File == file }) {
				w.t.Fatalf("T5: %s is removed while %v reads it", file, s.run.Attempt)
			}
		}
		for _, m := range w.merges {
			if slices.ContainsFunc(m.Runs, func(r wire.Segment) bool { return r.File == file }) {
				w.t.Fatalf("T5: %s is removed while merge %d reads it", file, m.Merge)
			}
		}
	}
}

// receive handles a message to the leader.
func (w *world) receive(m wire.Message) {
	switch m := m.(type) {
	case *wire.Report:
		w.report(m)
	case *wire.Heartbeat:
		w.unacked = true
		for i := range m.Attempts {
			w.report(&m.Attempts[i])
		}
	case *wire.Inventory:
		for i := range m.Attempts {
			w.report(&m.Attempts[i])
		}
		for i := range m.Homes {
			w.home(&m.Homes[i])
		}
	case *wire.HomeReport:
		w.home(m)
	case *wire.Capacity:
		if w.noSlots = m.ReduceSlots == 0; w.noSlots { // its homes are lost
			clear(w.homes)
			clear(w.complete)
		}
	}
}

func (w *world) report(r *wire.Report) {
	w.notDropped(r.Attempt.Task.Job)
	before, launched := w.launched[r.Attempt]
	if !launched {
		if r.State != wire.AttemptKilled {
			w.t.Fatalf("%v was never launched and is reported as %v", r.Attempt, r.State)
		}
		return
	}
	if before.Final() && before != r.State {
		w.t.Fatalf("T3: %v was %v and is %v", r.Attempt, before, r.State)
	}
	w.launched[r.Attempt] = r.State
	w.ready[r.Attempt] = r.State == wire.AttemptReady
}

func (w *world) home(r *wire.HomeReport) {
	w.notDropped(r.Job)
	name := homeName{r.Job, r.Partition}
	set := w.homes[name]
	if set == nil || set.Generation != r.Generation {
		if r.Complete {
			w.t.Fatalf("a home of generation %v is complete", r.Generation)
		}
		return
	}
	w.complete[name] = r.Complete
	if !r.Complete {
		return
	}
	var sum uint64
	for m := range simMaps {
		sum += w.chosen[r.Job][m].Digest
	}
	if r.Digest != sum || r.Maps != simMaps {
		w.t.Fatalf("T4: partition %d is complete with %d maps of digest %d, want %d of %d", r.Partition, r.Maps, r.Digest, simMaps, sum)
	}
}

func (n homeName) compare(other homeName) int {
	return cmp.Or(n.job.Compare(other.job), cmp.Compare(n.partition, other.partition))
}

func sorted[K comparable, V any](m map[K]V, order func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(m), order)
}

func pick[K comparable, V any](t *rapid.T, m map[K]V, order func(a, b K) int) (K, bool) {
	keys := sorted(m, order)
	if len(keys) == 0 {
		var none K
		return none, false
	}
	return rapid.SampledFrom(keys).Draw(t, "which"), true
}
