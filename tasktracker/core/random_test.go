package core

import (
	"cmp"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/wire"
)

// TestRandom sends random events to a core, and later simulates no more faults. Then every
// attempt must get its final report, every home must complete, and a drop of all jobs must
// leave nothing.
func TestRandom(t *testing.T) {
	for range 15 { // each Check makes a hundred runs
		rapid.Check(t, checkWorld)
	}
}

func checkWorld(t *rapid.T) {
	w := newWorld(t)
	actions := []func(){
		w.connect, w.disconnect, w.launch, w.launch, w.launch, w.kill, w.grant, w.setHome, w.choose, w.drop,
		w.workerActs, w.workerActs, w.workerActs, w.workerActs, w.workerActs, w.gather, w.gather, w.gather, w.mergeEnds, w.logIsRead, w.time,
		w.recordEnds, w.recordEnds, w.probeEnds, w.exceeds, w.share,
	}
	w.connect()
	for range rapid.IntRange(10, 200).Draw(t, "steps") {
		actions[rapid.IntRange(0, len(actions)-1).Draw(t, "action")]()
	}
	w.heal()
	w.end()
}

func (w *world) percent(n int) bool {
	return !w.noFaults && rapid.IntRange(0, 99).Draw(w.t, "percent") < n
}

func (w *world) connect() {
	if w.percent(30) {
		w.epoch++
	}
	if w.percent(10) {
		w.incarnation++
		clear(w.homes)
		clear(w.complete)
		clear(w.chosen)
	}
	w.up = true
	w.step(StreamUp{})
	w.registered = true
	w.step(FromLeader{&wire.Welcome{Epoch: w.epoch, Incarnation: w.incarnation, Lease: 3 * time.Second}})
	w.noSlots = w.core.noUsableDisk()
	for _, name := range sorted(w.homes, homeName.compare) {
		if !w.dropped[name.job] && w.core.job(name.job).home(name.partition) == nil {
			w.step(FromLeader{w.homes[name]}) // the inventory does not have it
		}
	}
	for id := range w.launched {
		if w.core.attempts[id] == nil { // it belongs to a lost incarnation
			delete(w.launched, id)
			delete(w.ready, id)
		}
	}
	for _, j := range w.jobs { // earlier messages may be lost
		if w.dropped[j] {
			w.step(FromLeader{&wire.DropJob{Epoch: w.epoch, Job: j}})
		} else {
			w.sendOutputs(j)
		}
	}
}

func (w *world) disconnect() {
	if w.up {
		w.up, w.registered = false, false
		w.step(StreamDown{})
	}
}

func (w *world) fromLeader(m wire.Message) {
	if w.registered {
		w.step(FromLeader{m})
	}
}

// job picks a live job, or starts one.
func (w *world) job() wire.JobID {
	var live []wire.JobID
	for _, j := range w.jobs {
		if !w.dropped[j] {
			live = append(live, j)
		}
	}
	if len(live) == 0 || len(live) < 3 && w.percent(10) {
		j := wire.JobID{Start: 1, N: len(w.jobs) + 1}
		w.jobs = append(w.jobs, j)
		return j
	}
	return rapid.SampledFrom(live).Draw(w.t, "job")
}

func (w *world) launch() {
	if !w.registered {
		return
	}
	j := w.job()
	kind := rapid.SampledFrom([]wire.Kind{wire.Map, wire.Map, wire.Map, wire.Reduce, wire.Setup}).Draw(w.t, "kind")
	n := rapid.IntRange(0, simMaps-1).Draw(w.t, "task")
	if kind == wire.Reduce {
		n %= simPartitions
	}
	w.next++
	id := wire.AttemptID{Task: wire.TaskID{Job: j, Kind: kind, N: n}, N: w.next}
	m := &wire.Launch{Epoch: w.epoch, Attempt: id, Staging: stagingOf(j), Timeout: 30 * time.Second}
	if set := w.homes[homeName{j, n}]; set != nil {
		m.Generation = set.Generation
	}
	w.launched[id] = 0
	w.fromLeader(m)
	if w.percent(10) {
		w.fromLeader(m)
	}
}

func (w *world) kill() {
	if id, ok := pick(w.t, w.launched, wire.AttemptID.Compare); ok && !w.dropped[id.Task.Job] && !w.launched[id].Final() {
		epoch := w.epoch
		if w.percent(20) {
			epoch--
		}
		w.fromLeader(&wire.Kill{Epoch: epoch, Attempt: id, Reason: "unwanted"})
	}
}

func (w *world) grant() {
	if id, ok := pick(w.t, w.ready, wire.AttemptID.Compare); ok && w.ready[id] && !w.dropped[id.Task.Job] {
		w.fromLeader(&wire.Grant{Epoch: w.epoch, Attempt: id})
	}
}

func (w *world) setHome() {
	if !w.registered || w.noSlots {
		return
	}
	name := homeName{w.job(), rapid.IntRange(0, simPartitions-1).Draw(w.t, "partition")}
	w.generation++
	set := &wire.SetHome{
		Epoch: w.epoch, Job: name.job, Partition: name.partition,
		Generation: wire.Generation{Epoch: w.epoch, N: w.generation}, Maps: simMaps,
	}
	w.homes[name] = set
	w.complete[name] = false
	w.fromLeader(set)
}

// share sends shares, perhaps with dropped jobs, repeated jobs or jobs without a share.
func (w *world) share() {
	m := &wire.Shares{Epoch: w.epoch}
	for range rapid.IntRange(0, 4).Draw(w.t, "shares") {
		m.Shares = append(m.Shares, wire.JobShare{
			Job:   wire.JobID{Start: 1, N: rapid.IntRange(1, 4).Draw(w.t, "job")},
			Share: rapid.SampledFrom([]float64{0, 0.1, 0.3, 0.5, 1}).Draw(w.t, "share"),
		})
	}
	w.fromLeader(m)
}

// choose names an output of this tracker, if there is one, or of another tracker.
func (w *world) choose() {
	if w.registered {
		j := w.job()
		first := rapid.IntRange(0, simMaps-1).Draw(w.t, "map")
		last := first
		if rapid.Bool().Draw(w.t, "all") {
			first, last = 0, simMaps-1
		}
		for m := first; m <= last; m++ {
			w.chooseFor(j, m)
		}
		w.sendOutputs(j)
	}
}

func (w *world) chooseFor(j wire.JobID, m int) {
	w.next++
	o := wire.MapOutput{Map: m, Attempt: w.next, Digest: uint64(w.next), Tracker: "t2", Addr: "t2:1"}
	if rapid.Bool().Draw(w.t, "large") {
		o.Bytes = 1 << 30 // so it is in no batch
	}
	if rapid.Bool().Draw(w.t, "other tracker") {
		o.Tracker, o.Addr = "t3", "t3:1"
	}
	if old := w.chosen[j][m]; old.Digest > 0 && rapid.Bool().Draw(w.t, "same digest") {
		o.Digest = old.Digest
	}
	if rapid.Bool().Draw(w.t, "here") {
		for _, id := range sorted(w.core.attempts, wire.AttemptID.Compare) {
			if a := w.core.attempts[id]; id.Task.Job == j && id.Task.N == m && a.hasOutput() && id.N > w.chosen[j][m].Attempt {
				o = *a.result.Output
			}
		}
	}
	if w.chosen[j] == nil {
		w.chosen[j] = make(map[int]wire.MapOutput)
	}
	w.chosen[j][m] = o
}

func (w *world) sendOutputs(j wire.JobID) {
	var all []wire.MapOutput
	for m := range simMaps {
		if o, ok := w.chosen[j][m]; ok {
			all = append(all, o)
		}
	}
	if len(all) > 0 {
		w.fromLeader(wire.OutputsOf(w.epoch, j, all...))
	}
}

// stagingOf returns the submission of a job, one of two.
func stagingOf(j wire.JobID) string { return "s" + string(rune('0'+j.N%2)) }

func (w *world) drop() {
	if w.registered && w.percent(20) {
		j := w.job()
		w.dropJob(j)
	}
}

func (w *world) dropJob(j wire.JobID) {
	w.dropped[j] = true
	m := &wire.DropJob{Epoch: w.epoch, Job: j}
	if rapid.Bool().Draw(w.t, "last") {
		m.EndedStaging = stagingOf(j)
	}
	w.fromLeader(m)
}

// workerActs lets one worker send its next message.
func (w *world) workerActs() {
	id, ok := pick(w.t, w.workers, cmp.Compare[int])
	if !ok {
		return
	}
	s := w.workers[id]
	send := func(m wire.Message, alone bool) { w.step(FromWorker{Worker: id, Message: m, NoLeftovers: alone}) }
	switch {
	case s.killed && !w.percent(30) || w.percent(5):
		delete(w.workers, id)
		w.step(WorkerExited{Worker: id, Reason: "signal: killed"})
	case !s.sentHello:
		s.sentHello = true
		send(&wire.WorkerHello{Protocol: wire.WorkerProtocol}, false)
	case s.run == nil:
	case w.percent(20):
		send(&wire.WorkerProgress{Activity: uint64(w.next), Bytes: wire.Progress{Done: int64(w.next)}}, false)
	case w.percent(10):
		r := wire.Result{Error: "failed"}
		if runs := s.run.Runs; len(runs) > 0 {
			lost := rapid.SampledFrom(runs).Draw(w.t, "run")
			r.Lost = []wire.OutputLost{{Job: s.run.Attempt.Task.Job, Map: lost.Map, Attempt: lost.Attempt, Corrupt: true}}
		}
		s.run = nil
		send(&wire.WorkerDone{Result: r}, true)
	case s.run.Attempt.Task.Kind == wire.Reduce && !s.sentReady:
		s.sentReady = true
		send(&wire.CommitReady{}, false)
	case s.run.Attempt.Task.Kind == wire.Reduce && !s.granted:
	default:
		w.succeed(s, send)
	}
}

func (w *world) succeed(s *simWorker, send func(wire.Message, bool)) {
	run := s.run
	s.run = nil
	var r wire.Result
	if run.Attempt.Task.Kind == wire.Map {
		w.next++
		r.Output = &wire.MapOutput{Digest: uint64(w.next)}
		if rapid.Bool().Draw(w.t, "large") {
			r.Output.Bytes = 1 << 30
		}
		w.files[run.Dir+"/output"] = true
	}
	send(&wire.WorkerDone{Result: r}, !w.percent(20))
}

// gather ends several fetches, so that some homes complete.
func (w *world) gather() {
	for range rapid.IntRange(1, simMaps).Draw(w.t, "fetches") {
		w.fetchEnds()
	}
}

func (w *world) mergeEnds() {
	id, ok := pick(w.t, w.merges, cmp.Compare[int])
	if !ok {
		return
	}
	m := w.merges[id]
	delete(w.merges, id)
	ev := MergeDone{Merge: id, Segment: wire.Segment{File: m.File, Length: 9}}
	switch {
	case w.percent(10):
		ev = MergeDone{Merge: id, Error: "full", DiskFailed: w.percent(50)}
	case w.percent(20):
		ev = MergeDone{Merge: id, Error: "corrupt", Corrupt: &m.Runs[rapid.IntRange(0, len(m.Runs)-1).Draw(w.t, "run")]}
	default:
		w.files[m.File] = true
	}
	w.step(ev)
}

func (w *world) recordEnds() {
	id, ok := pick(w.t, w.records, wire.AttemptID.Compare)
	if !ok {
		return
	}
	r := w.records[id]
	delete(w.records, id)
	ev := Recorded{Attempt: id}
	switch {
	case w.percent(10):
		ev.Error = "read-only"
	case !w.files[filepath.Join(filepath.Dir(r.File), OutputFile)]:
		ev.Error = "no such directory" // the core has waited for long and has removed it
	default:
		w.files[r.File] = true
	}
	w.step(ev)
}

func (w *world) probeEnds() {
	n, ok := pick(w.t, w.probes, cmp.Compare[int])
	if !ok {
		return
	}
	delete(w.probes, n)
	ev := DiskProbed{Disk: n}
	if w.percent(30) {
		ev.Error = "bad"
	}
	w.step(ev)
}

func (w *world) exceeds() {
	if id, ok := pick(w.t, w.workers, cmp.Compare[int]); ok && w.percent(10) {
		w.step(Exceeded{Worker: id, Reason: "too much"})
	}
}

func (w *world) logIsRead() {
	if id, ok := pick(w.t, w.logs, wire.AttemptID.Compare); ok {
		delete(w.logs, id)
		w.step(LogRead{Attempt: id, Text: "log"})
	}
}

func (w *world) time() {
	w.pass(time.Duration(rapid.IntRange(1, 15000).Draw(w.t, "ms")) * time.Millisecond)
}

// pass lets time pass. A connected leader usually sends something.
func (w *world) pass(d time.Duration) {
	w.now += d
	w.step(Tick{})
	if w.unacked && !w.percent(20) {
		w.unacked = false
		w.fromLeader(&wire.Ack{})
	}
	if w.noFaults && !w.up {
		w.connect()
	}
}

// heal ends all faults and waits until all work has ended.
func (w *world) heal() {
	w.noFaults = true
	w.disconnect()
	w.connect()
	for _, j := range w.jobs {
		for m := range simMaps {
			if _, ok := w.chosen[j][m]; !ok && !w.dropped[j] {
				w.chooseFor(j, m)
			}
		}
	}
	for round := 0; !w.settled(); round++ {
		if round > 300 {
			w.t.Fatalf("not settled after %d rounds: %d active, %v homes", round, len(w.core.active), w.complete)
		}
		w.chooseLost()
		w.drain()
		w.pass(time.Second)
	}
	for file := range w.files {
		id, err := wire.ParseAttemptID(filepath.Base(filepath.Dir(file)))
		if a := w.core.attempts[id]; err == nil && filepath.Base(file) == OutputFile && (a == nil || !a.hasOutput()) {
			w.t.Fatalf("%s is not needed and was not removed", file)
		}
	}
	for id, state := range w.launched {
		a := w.core.attempts[id]
		if a != nil && state != a.state {
			w.t.Fatalf("T3: %v ended as %v and was reported as %v", id, a.state, state)
		}
	}
}

// chooseLost names outputs of other trackers where homes miss outputs.
func (w *world) chooseLost() {
	for _, name := range sorted(w.homes, homeName.compare) {
		if w.dropped[name.job] {
			continue
		}
		h := w.core.jobs[name.job].home(name.partition)
		if h == nil {
			w.t.Fatalf("partition %v has no home", name)
		}
		for m := range h.maps {
			_, unreachable := h.job.unreachable[m]
			if e := h.entries[m]; unreachable || e != nil && e.lostReason != "" {
				w.chooseFor(name.job, m)
			}
		}
	}
	for _, j := range w.jobs {
		if !w.dropped[j] {
			w.sendOutputs(j)
		}
	}
}

// drain ends all work of workers, fetches, merges and log readers.
func (w *world) drain() {
	for _, id := range sorted(w.ready, wire.AttemptID.Compare) {
		if w.ready[id] && !w.dropped[id.Task.Job] {
			w.fromLeader(&wire.Grant{Epoch: w.epoch, Attempt: id})
		}
	}
	for range len(w.workers) + len(w.fetches) + len(w.merges) + len(w.logs) + len(w.records) + 1 {
		w.workerActs()
		w.fetchEnds()
		w.mergeEnds()
		w.logIsRead()
		w.recordEnds()
		w.probeEnds()
	}
}

func (w *world) settled() bool {
	for name := range w.homes {
		if !w.dropped[name.job] && !w.complete[name] {
			return false
		}
		if w.dropped[name.job] {
			delete(w.homes, name)
		}
	}
	return len(w.core.active) == 0 && len(w.fetches)+len(w.merges)+len(w.logs)+len(w.records)+len(w.probes) == 0
}

// end drops all jobs: nothing may remain.
func (w *world) end() {
	for _, j := range w.jobs {
		if !w.dropped[j] {
			w.dropJob(j)
		}
	}
	clear(w.homes)
	for range 100 {
		w.drain()
		w.pass(time.Second) // failed hosts are forgotten later
	}
	c := w.core
	remaining := len(c.jobs) + len(c.attempts) + len(c.active) + len(c.workers) + len(c.idle) + len(c.fetches) + len(c.merges) + len(c.hosts) + len(c.queued) + len(c.lingering)
	if remaining > 0 || len(w.files) > 0 || len(w.staged) > 0 {
		w.t.Fatalf("remaining: %d jobs %d attempts %d workers %d fetches %d merges, files %v, submissions %v",
			len(c.jobs), len(c.attempts), len(c.workers), len(c.fetches), len(c.merges), w.files, w.staged)
	}
}
