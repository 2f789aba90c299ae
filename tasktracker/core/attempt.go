package core

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// phase is the state of an attempt; see the package comment.
type phase uint8

const (
	waiting phase = iota
	starting
	running
	ready
	committing
	ending
	reading
	recording
	final
)

// attempt was launched here, or an earlier process left its map output.
type attempt struct {
	id     wire.AttemptID
	job    *job
	launch *wire.Launch // nil: an earlier process ran it
	disk   *disk        // disk of its directory; nil: it has not started
	phase  phase
	worker *worker // from starting to ending

	launchedAt time.Duration
	startedAt  time.Duration // when a worker got it; 0: none has
	progressAt time.Duration // start of the phase, or last progress
	activity   uint64        // highest Activity of its worker's messages
	bytes      wire.Progress
	digest     uint64    // digest of a reduce's input
	runs       []*run    // input of a reduce
	hot        *wire.Hot // hot groups of a reduce; nil: none
	hotSent    bool      // since the last inventory

	state  wire.AttemptState // final state, set when the end begins
	result *wire.Result      // set with state

	timedOut      bool   // its worker was to write its goroutines to the log
	deadWorkerDir string // removed after its log is read
	failedItself  bool   // its worker has reported its failure
	filledDisk    bool   // it was ended because its files take too much space
	skipChanges   int    // as in wire.Skip
	inPlaceUses   int    // runs and lookups that use its map output in place
	stale         bool   // its map output was replaced or lost
}

func (a *attempt) hasOutput() bool {
	return a.phase == final && a.state == wire.AttemptSucceeded && a.result.Output != nil
}

// report returns the leader's view of the attempt. For the leader, it is running in all
// phases except ready, committing and final.
func (a *attempt) report() *wire.Report {
	r := &wire.Report{Attempt: a.id, State: wire.AttemptRunning, Bytes: a.bytes, Digest: a.digest, SkipChanges: a.skipChanges}
	switch a.phase {
	case ready, committing:
		r.State = wire.AttemptReady
	case final:
		r.State, r.Result = a.state, a.result
		return r
	}
	if !a.hotSent {
		r.Hot = a.hot
	}
	return r
}

// diskWait limits the read of a failed attempt's log, and the write of a map output's report: a
// disk may hang.
const diskWait = 10 * time.Second

// deadline returns the time at which the attempt fails for lack of progress, or does not wait for
// a disk any more. Waiting for a slot or a grant has no limit.
func (a *attempt) deadline(cfg *Config) (time.Duration, bool) {
	switch a.phase {
	case starting:
		return a.progressAt + cfg.StartTimeout, true
	case running, committing:
		return a.progressAt + a.launch.Timeout, a.launch.Timeout > 0
	case reading, recording:
		return a.progressAt + diskWait, true
	}
	return 0, false
}

func (c *Core) launch(m *wire.Launch) {
	if a := c.attempts[m.Attempt]; a != nil {
		c.send(a.report())
		return
	}
	j := c.job(m.Attempt.Task.Job)
	if j.dropped {
		c.reportKilled(m.Attempt, "the job has ended")
		return
	}
	outside := c.outsideReason(m.Staging)
	if outside == "" {
		j.staging = m.Staging
	}
	j.busy++
	a := &attempt{id: m.Attempt, job: j, launch: m, launchedAt: c.now, progressAt: c.now}
	if m.Skip != nil {
		a.skipChanges = m.Skip.Changes
	}
	j.attempts = append(j.attempts, a)
	c.attempts[a.id] = a
	c.active = append(c.active, a)
	if outside != "" {
		c.finish(a, wire.AttemptFailed, &wire.Result{Error: outside, Fatal: true})
	}
}

// reportKilled reports an unknown attempt as killed, so that the leader does not wait for
// it.
func (c *Core) reportKilled(id wire.AttemptID, reason string) {
	c.send(&wire.Report{Attempt: id, State: wire.AttemptKilled, Result: &wire.Result{Error: reason}})
}

func (c *Core) killRequested(m *wire.Kill) {
	if a := c.attempts[m.Attempt]; a != nil {
		c.kill(a, m.Reason)
		return
	}
	c.reportKilled(m.Attempt, "unknown to the tracker")
}

func (c *Core) granted(m *wire.Grant) {
	a := c.attempts[m.Attempt]
	switch {
	case a == nil:
		c.reportKilled(m.Attempt, "unknown to the tracker")
	case a.phase == ready:
		a.phase, a.progressAt = committing, c.now
		c.do(SendWorker{a.worker.id, &wire.CommitGranted{}})
	}
}

// startAttempts starts waiting attempts in free slots, in order of arrival.
func (c *Core) startAttempts() {
	var used [2]int
	slots := c.slots()
	for _, a := range c.active {
		if a.worker != nil && a.id.Task.Kind.Slotted() {
			used[slotOf(a)]++
		}
	}
	for _, a := range slices.Clone(c.active) {
		if a.phase != waiting {
			continue
		}
		slotted := a.id.Task.Kind.Slotted()
		if slotted && c.noUsableDisk() {
			c.finish(a, wire.AttemptKilled, &wire.Result{Error: fmt.Sprintf("tracker %s has no good disk left", c.cfg.Tracker)})
			continue
		}
		if slotted && (used[slotOf(a)] >= slots[slotOf(a)] || c.allAwaitSpace()) {
			continue
		}
		c.start(a)
		if slotted && a.worker != nil {
			used[slotOf(a)]++
		}
	}
}

func slotOf(a *attempt) int {
	if a.id.Task.Kind == wire.Map {
		return 0
	}
	return 1
}

func (c *Core) start(a *attempt) {
	if a.id.Task.Kind == wire.Reduce {
		if reason := c.openHome(a); reason != "" {
			c.finish(a, wire.AttemptKilled, &wire.Result{Error: reason})
			return
		}
	}
	// Service attempts write little: they use the tracker's own directory.
	a.disk = c.state
	if a.id.Task.Kind.Slotted() {
		a.disk = c.pickDisk()
	}
	a.progressAt = c.now
	if w := c.takeIdle(a); w != nil {
		c.assign(w, a)
		c.run(a)
		return
	}
	c.assign(c.startWorker(a), a)
	a.phase = starting
}

// openHome gives the home's runs to a reduce. If the home is not complete, it reports the
// home's state, which the leader seems not to know, and returns the reason.
func (c *Core) openHome(a *attempt) string {
	p, want := a.id.Task.N, a.launch.Generation
	h := a.job.home(p)
	if h == nil {
		c.send(&wire.HomeReport{Job: a.job.id, Partition: p, Generation: want})
		return fmt.Sprintf("partition %d has no home on tracker %s", p, c.cfg.Tracker)
	}
	if h.gen != want || !c.complete(h) {
		h.reported = h.report()
		r := h.reported
		c.send(&r)
		return fmt.Sprintf("the home of partition %d has gathered %d of %d map outputs in generation %d.%d, the reduce needs all in %d.%d",
			p, h.held.Len(), h.maps, h.gen.Epoch, h.gen.N, want.Epoch, want.N)
	}
	a.digest, a.runs = h.digest, inMapOrder(h.runs)
	for _, r := range a.runs {
		r.uses++
	}
	return ""
}

// run sends the attempt to its worker.
func (c *Core) run(a *attempt) {
	a.phase, a.startedAt, a.progressAt = running, c.now, c.now
	m := &wire.Run{
		Attempt: a.id, Staging: a.launch.Staging, Index: a.launch.Index,
		Dir: a.dir(), Logs: c.attemptLogs(a.id),
		Subject: a.launch.Subject, Outcome: a.launch.Outcome,
		Host: c.cfg.Host, Rack: a.launch.Rack, GivenUp: a.launch.GivenUp, GivenUpMaps: a.launch.GivenUpMaps, Skip: a.launch.Skip,
		Digest: a.launch.Digest,
	}
	for _, r := range a.runs {
		m.Runs = append(m.Runs, r.segment)
	}
	c.limit(a)
	c.do(SendWorker{a.worker.id, m})
}

// limit limits the memory and processes of the worker for this attempt. If the attempt has
// no limit, it removes the limit of an earlier attempt.
func (c *Core) limit(a *attempt) {
	w := a.worker
	limited := a.launch.Memory > 0 || a.launch.Processes > 0 || a.launch.Cores > 0
	if limited || w.limited {
		c.do(a.limit(w))
	}
	w.limited = limited
	if a.id.Task.Kind.Slotted() { // service attempts have no limit and need little
		memory := a.launch.Memory
		if memory == 0 {
			memory = math.MaxInt64
		}
		w.memory = max(w.memory, memory)
	}
}

// limit returns the limits of the attempt's worker.
func (a *attempt) limit(w *worker) Limit {
	return Limit{Worker: w.id, Kind: a.id.Task.Kind, Memory: a.launch.Memory, Processes: a.launch.Processes, Cores: a.launch.Cores}
}

// exceeded ends the attempt of a worker that exceeded a limit. An idle worker is killed.
func (c *Core) exceeded(ev Exceeded) {
	w := c.workers[ev.Worker]
	switch {
	case w == nil:
	case w.attempt == nil:
		if c.removeIdle(w) {
			c.do(KillWorker{w.id})
		}
	case w.attempt.phase < ending:
		// It takes what others need, so it gets no time to end by itself.
		a := w.attempt
		a.filledDisk = ev.Space
		a.phase, a.state, a.result = ending, wire.AttemptFailed, &wire.Result{Error: ev.Reason}
		c.do(KillWorker{w.id})
	}
}

// kill ends an attempt as the leader asked. An attempt that is already ending keeps its
// own result.
func (c *Core) kill(a *attempt, reason string) {
	if a.phase < ending {
		c.end(a, wire.AttemptKilled, &wire.Result{Error: reason})
	}
}

// end sets the attempt's result and stops its worker. The attempt is final when the worker
// is dead.
func (c *Core) end(a *attempt, state wire.AttemptState, result *wire.Result) {
	if a.phase == waiting {
		c.finish(a, state, result)
		return
	}
	a.phase, a.state, a.result = ending, state, result
	c.do(StopWorker{Worker: a.worker.id, Dump: a.timedOut})
}

// suspendedTime is the delay of a timer after which the core assumes that its own process
// was suspended.
const suspendedTime = 5 * time.Second

// checkTimeouts fails attempts without progress. If this process was suspended, their
// messages may not be read yet, so their time starts again.
func (c *Core) checkTimeouts() {
	for _, a := range slices.Clone(c.active) {
		deadline, limited := a.deadline(&c.cfg)
		if !limited || c.now < deadline {
			continue
		}
		if c.now-deadline > suspendedTime {
			a.progressAt = c.now
			continue
		}
		reason := fmt.Sprintf("no progress for %v (mapreduce.task.timeout)", a.launch.Timeout)
		switch a.phase {
		case starting:
			reason = fmt.Sprintf("its worker did not say hello within %v", c.cfg.StartTimeout)
		case reading:
			c.logRead(LogRead{Attempt: a.id, Text: fmt.Sprintf("its log could not be read within %v", diskWait)})
			continue
		case recording:
			c.recorded(Recorded{Attempt: a.id, Error: fmt.Sprintf("no answer within %v", diskWait)})
			continue
		}
		a.timedOut = true
		c.end(a, wire.AttemptFailed, &wire.Result{Error: reason})
	}
}

// workerDied continues with an attempt after its worker's death.
func (c *Core) workerDied(a *attempt, w *worker, ev WorkerExited) {
	a.worker = nil
	c.releaseRuns(a)
	crashed, alive := false, a.phase < ending
	if alive {
		problem := "its worker ended before it did: "
		if a.phase == starting {
			problem = "its worker did not start: "
		}
		a.state, a.result = wire.AttemptFailed, &wire.Result{Error: problem + ev.Reason, Fatal: ev.Fatal}
		crashed = mayHaveCrashed(ev.Reason)
	}
	if a.state != wire.AttemptFailed || a.result.Log != "" || a.job.dropped {
		c.do(Remove{w.dir})
		c.finish(a, a.state, a.result)
		return
	}
	a.phase, a.progressAt, a.deadWorkerDir = reading, c.now, w.dir
	position := ""
	if a.launch.Skip != nil && !a.failedItself && (!alive || endedItself(ev.Reason)) {
		position = path.Join(a.dir(), PositionFile)
	}
	reported := ""
	if a.failedItself {
		reported = a.result.Error
	}
	c.do(ReadLog{
		Attempt: a.id, Reported: reported, Position: position, Crashed: crashed, Dumped: a.timedOut,
		Output: path.Join(c.attemptLogs(a.id), "stdout"), Files: []string{stderrIn(w.dir), stderrIn(c.attemptLogs(a.id))},
		Limit:   a.limit(w),
		NoSpace: c.mayBeFull(a),
	})
}

func (c *Core) logRead(ev LogRead) {
	a := c.attempts[ev.Attempt]
	if a == nil || a.phase != reading {
		return
	}
	a.result.Log = ev.Text
	if ev.Record > 0 {
		a.result.Died = &wire.Position{Record: ev.Record - 1}
	}
	a.result.Error = crashError(a.result.Error, ev.Cause, ev.Limits)
	c.do(Remove{a.deadWorkerDir})
	if ev.Full != nil {
		c.failedOnFull(a, ev.Full)
		return
	}
	c.finish(a, a.state, a.result)
}

// succeeded makes an attempt final. If later processes should find its output, its report
// is written first.
func (c *Core) succeeded(a *attempt, result *wire.Result) {
	if out := result.Output; out != nil {
		out.Map, out.Attempt = a.id.Task.N, a.id.N
		out.Tracker, out.Addr = c.cfg.Tracker, c.cfg.Addr
		if c.cfg.Record && !a.job.dropped {
			a.setTimes(result, c.now)
			a.phase, a.progressAt, a.state, a.result = recording, c.now, wire.AttemptSucceeded, result
			report := &wire.Report{Attempt: a.id, State: a.state, Bytes: a.bytes, Result: result, SkipChanges: a.skipChanges}
			c.do(Record{File: path.Join(a.dir(), ReportFile), Report: report})
			return
		}
	}
	c.finish(a, wire.AttemptSucceeded, result)
}

func (c *Core) recorded(ev Recorded) {
	a := c.attempts[ev.Attempt]
	if a == nil || a.phase != recording {
		return
	}
	if ev.Error != "" {
		c.suspect(a.disk)
	}
	c.finish(a, a.state, a.result)
}

// finish makes an attempt final and reports it. After a failure its disk is probed.
func (c *Core) finish(a *attempt, state wire.AttemptState, result *wire.Result) {
	began := a.phase != waiting
	a.phase, a.state, a.result = final, state, result
	a.setTimes(result, c.now)
	result.Hot = cmp.Or(result.Hot, a.hot) // if its worker has died, it has reported none
	c.do(AttemptEnded{a.id, state, result})
	if result.Died != nil {
		result.Died.Changes, result.Died.Digest = a.skipChanges, a.digest
	}
	c.active = slices.DeleteFunc(c.active, func(x *attempt) bool { return x == a })
	c.releaseRuns(a)
	switch {
	case a.job.dropped:
		delete(c.attempts, a.id)
	case a.hasOutput():
		c.do(Remove{WorkDir(a.dir())})
	case began:
		c.do(Remove{a.dir()})
	}
	if began && state == wire.AttemptFailed && !result.Fatal { // perhaps its disk was full or broken
		if a.filledDisk {
			c.awaitSpace(a.disk)
		}
		c.suspect(a.disk)
		c.suspect(c.state)
	}
	if !a.job.dropped {
		c.send(a.report())
	}
	if a.hasOutput() && a.disk.bad != "" && !a.job.dropped {
		c.loseOutput(a, a.disk)
	}
	c.endWork(a.job)
}

// setTimes sets the tracker's times in a result that is final now.
func (a *attempt) setTimes(r *wire.Result, now time.Duration) {
	r.Took = now - a.launchedAt
	if a.startedAt > 0 {
		r.Started = a.startedAt - a.launchedAt
	}
}

func (c *Core) releaseRuns(a *attempt) {
	for _, r := range a.runs {
		c.release(r)
	}
	a.runs = nil
}
