package sim

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// worker is a worker process. It runs the real worker loop on goroutines of its own. The
// simulation waits while they run: until they call the file system, send the tracker a message,
// or end.
type worker struct {
	w       *world
	tt      *taskTracker
	life    int // of the tracker when it started the worker
	id      int
	staging string

	dead    atomic.Bool
	killed  bool // SIGKILL was sent
	conn    *wire.Conn
	parked  chan parked
	answer  chan error
	pending *fileCall // the call that it waits for
	ended   bool      // its goroutines have ended

	run         *wire.Run
	reading     []wire.Segment // input of a reduce
	pieces      []piece        // content of that input
	behaviour   behaviour
	granted     bool          // the attempt may commit
	limited     bool          // its memory or processes have a limit
	lastArrival time.Duration // arrival time of its last message
}

// parked is the reason why a worker's goroutines wait.
type parked struct {
	call    *fileCall
	message wire.Message
	ended   bool
}

// behaviour is the drawn behaviour of an attempt's code.
type behaviour struct {
	fail, fatal, hang, leaveProcesses bool          // leaveProcesses: processes that it started remain
	dieAfter                          time.Duration // 0: it does not die
	damaged                           *wire.Segment // input that it cannot read
}

var errCode = errors.New("the job's code has failed")

func (t *taskTracker) startWorker(c core.StartWorker) {
	p := &worker{w: t.w, tt: t, life: t.life, id: c.Worker, staging: c.Staging}
	t.workers[c.Worker] = p
	t.disk.files[c.Dir+"/stderr"] = &file{}
	copied, known := t.work.programs[c.Staging]
	if !known {
		copied = t.w.now + t.w.upTo(10*t.w.callTime)
		t.work.programs[c.Staging] = copied
	}
	t.beside(max(copied-t.w.now, 0), func() {
		t.work.starts.run(t.upTo(20*time.Millisecond), func() {
			switch {
			case p.dead.Load():
			case t.w.fault(t.w.rates.starts):
				p.exit("fork: resource temporarily unavailable")
			case !t.w.fault(t.w.rates.starts): // otherwise it never sends its hello
				p.later(t.w.upTo(80*time.Millisecond), p.begin)
			}
		})
	})
}

// begin starts the worker loop and forwards its hello.
func (p *worker) begin() {
	tracker, inside := wire.Pipe()
	p.conn, p.parked, p.answer = tracker, make(chan parked), make(chan error)
	served := make(chan struct{})
	go func() {
		defer close(served)
		// Its last message already has the reason for its end.
		_ = mrruntime.Serve(context.Background(), inside, p.load, &processFS{p}, mrruntime.Options{
			InProcess: true, Progress: time.Hour, Collect: p.collected, Clock: func() time.Time { return time.UnixMilli(0).Add(p.w.now) },
		})
	}()
	go func() {
		for {
			m, err := tracker.Receive()
			if err != nil {
				<-served
				p.parked <- parked{ended: true}
				return
			}
			p.parked <- parked{message: m}
		}
	}()
	p.wait()
}

// wait lets the worker's goroutines run until they wait for the simulation.
func (p *worker) wait() {
	for {
		x := <-p.parked
		switch {
		case x.ended:
			p.ended = true
			return
		case x.call != nil:
			p.pending = x.call
			p.call(x.call)
			return
		}
		if p.forward(x.message) {
			return
		}
	}
}

// forward sends a worker's message to its tracker. It reports whether the worker's goroutines
// wait for the simulation now.
func (p *worker) forward(m wire.Message) bool {
	alone := true
	switch m.(type) {
	case *wire.WorkerDone:
		alone = !p.behaviour.leaveProcesses
	case *wire.WorkerProgress:
		return false
	case *wire.CommitReady:
		if p.w.sabotage == commitUngranted {
			p.later(0, func() { p.send(&wire.CommitGranted{}) })
		}
	}
	p.report(m, alone)
	return true
}

// report delivers a message of the worker to the tracker, in the order of sending.
func (p *worker) report(m wire.Message, alone bool) {
	p.lastArrival = max(p.lastArrival, p.w.now+p.w.upTo(2*time.Millisecond))
	p.later(p.lastArrival-p.w.now, func() {
		p.tt.do(func() {
			if p.tt.workers[p.id] != p {
				return
			}
			if _, done := m.(*wire.WorkerDone); done {
				p.run, p.reading = nil, nil
			}
			p.tt.step(core.FromWorker{Worker: p.id, Message: m, NoLeftovers: alone})
		})
	})
}

// later runs something in this process after a while, unless it is dead by then. The process
// also runs while its tracker is stopped or dead.
func (p *worker) later(d time.Duration, action func()) {
	p.w.after(d, func() {
		if p.dead.Load() {
			return
		}
		action()
	})
}

// receive handles a message of the tracker to the worker.
func (p *worker) receive(m wire.Message) {
	switch m := m.(type) {
	case *wire.Run:
		p.w.book.checkStarted(p.w, p, m)
		p.tt.disk.files[m.Dir+"/work/x"] = &file{}
		p.tt.disk.files[m.Logs+"/stderr"] = &file{}
		p.run, p.reading, p.granted, p.behaviour = m, m.Runs, false, behaviour{}
		p.prepare(m)
	case *wire.CommitGranted:
		p.granted = true
		p.w.book.checkGranted(p.w, p)
		p.w.strikeAtCommit(p.tt, p)
		if p.w.sabotage != commitUngranted {
			p.later(p.w.upTo(20*time.Millisecond), func() { p.send(m) })
		}
	}
}

func (p *worker) send(m wire.Message) {
	if p.conn == nil || p.ended {
		return
	}
	if err := p.conn.Send(m); err == nil {
		p.wait()
	}
}

// prepare draws an attempt's behaviour and starts it after a while.
func (p *worker) prepare(run *wire.Run) {
	w, x := p.w, &p.behaviour
	kind := run.Attempt.Task.Kind
	x.fail = w.fault(w.rates.attempts)
	x.fatal = x.fail && w.chance(0.02)
	x.hang = w.fault(w.rates.hangs)
	x.leaveProcesses = w.fault(w.rates.leftovers)
	if w.fault(w.rates.deaths) {
		x.dieAfter = 1 + w.upTo(w.attemptTime*3/2)
		p.later(x.dieAfter, func() { p.exit("signal: segmentation fault") })
	}
	if p.limited && w.fault(w.rates.overMemory) {
		p.later(w.upTo(w.attemptTime), func() {
			p.tt.do(func() {
				if p.tt.workers[p.id] == p {
					p.tt.step(core.Exceeded{Worker: p.id, Reason: "it takes 101 MiB of 100"})
				}
			})
		})
	}
	if x.hang {
		return
	}
	p.sendHeartbeats(run)
	duration, sick := w.upTo(w.attemptTime), p.tt.sickFor(run.Attempt.Task)
	if c, _ := w.job(run.Attempt.Task.Job); c.shaped != nil {
		duration = c.shaped.time(run.Attempt)
	}
	if w.lasting {
		duration = slowed(w.fixedTime(run.Attempt.Task), p.tt.machine.processor)
	}
	if sick {
		duration = 100 * time.Millisecond
	}
	p.later(duration, func() {
		if p.run != run {
			return
		}
		switch {
		case sick:
			p.report(&wire.WorkerDone{Result: wire.Result{Error: errCode.Error()}}, true)
			return
		case p.endsInBadRecord(run):
			return
		case kind == wire.Map && w.plan(run).Reduces > 0 && len(w.plan(run).Outputs) == 0:
			p.mapDone(run)
			return
		case kind == wire.Fence && (w.sabotage == skipFences || w.sabotage == replaceTargets):
			p.report(&wire.WorkerDone{}, true)
			return
		}
		copied := *run
		copied.Dir, copied.Logs, copied.Runs = "", "", nil
		p.read(run)
		p.send(&copied)
	})
}

// sendHeartbeats sends progress every second while an attempt runs.
func (p *worker) sendHeartbeats(run *wire.Run) {
	n := uint64(0)
	var beat func()
	beat = func() {
		if p.run != run || p.tt.life != p.life {
			return
		}
		n++
		p.report(&wire.WorkerProgress{Activity: n, Bytes: wire.Progress{Done: int64(n), Total: 10}}, false)
		p.later(time.Second, beat)
	}
	p.later(time.Second, beat)
}

// mapDone is a map of a job with reduces, in one step.
func (p *worker) mapDone(run *wire.Run) {
	out, err := (*wire.MapOutput)(nil), errCode
	if !p.behaviour.fail {
		out, err = p.writeOutput(run)
	}
	if err != nil {
		p.report(&wire.WorkerDone{Result: wire.Result{Error: err.Error(), Fatal: p.behaviour.fatal}}, !p.behaviour.leaveProcesses)
		return
	}
	p.report(&wire.WorkerDone{Result: wire.Result{Bytes: inputBlock, Output: out}}, !p.behaviour.leaveProcesses)
}

// writeOutput writes map output to the tracker's disk.
func (p *worker) writeOutput(run *wire.Run) (*wire.MapOutput, error) {
	w, id := p.w, run.Attempt
	if w.fault(w.rates.disks) || !p.tt.disk.works(run.Dir) || !p.tt.hasSpace(run.Dir) {
		return nil, errCode
	}
	d := w.digestOf(id)
	p.tt.disk.files[run.Dir+"/"+core.OutputFile] = &file{pieces: []piece{{id.Task.N, d}}}
	reported := d
	if w.sabotage == hideDigests {
		reported = uint64(id.Task.N) + 1
	}
	bytes := int64(segmentLength)
	if !w.calm && (id.Task.N+id.Task.Job.N)%3 == 0 {
		bytes = 10 << 20 // its partitions are in no batch
	}
	return &wire.MapOutput{Map: id.Task.N, Attempt: id.N, Digest: reported, Bytes: bytes}, nil
}

// read reads the input of a reduce; reduceCode writes it to the output.
func (p *worker) read(run *wire.Run) {
	p.pieces = nil
	for i, r := range run.Runs {
		f := p.tt.disk.files[r.File]
		if !p.tt.disk.works(r.File) {
			p.behaviour.damaged = &run.Runs[i]
			return
		}
		if f == nil && !p.w.book.lostFiles[p.tt.name+r.File] && p.tt.life == p.life {
			p.w.fail("V8: %v reads %s, removed by %s", run.Attempt, r.File, p.tt.name)
		}
		if f == nil || f.damaged && p.w.sabotage != skipChecksums {
			p.behaviour.damaged = &run.Runs[i]
			return
		}
		p.pieces = append(p.pieces, f.read(r.Offset)...)
	}
}

// load returns the job's program.
func (p *worker) load(sub *wire.Submission) (*mrruntime.Program, error) {
	program := &mrruntime.Program{Plan: sub.Plan}
	for i := range sub.Plan.Jobs {
		plan := &sub.Plan.Jobs[i]
		job := mrruntime.Job{}
		for range plan.Inputs {
			job.Maps = append(job.Maps, p.mapCode)
		}
		if plan.Reduces > 0 {
			job.Reduce = p.reduceCode
		}
		program.Jobs = append(program.Jobs, job)
	}
	return program, nil
}

// mapCode is the map of a map-only job, or of a job with files of maps.
func (p *worker) mapCode(t *mrruntime.Task, in *mrruntime.Split, _ mrruntime.Collector) error {
	name, line := "", mapLine(t.ID.Task.N)
	if t.Partitions > 0 {
		name, line = mapFilesOutput, mapFileLine(p.w.digestOf(t.ID))
	}
	var out *mrruntime.Output
	if t.Partitions == 0 || hasFile(t.ID.Task.N) {
		var err error
		if out, err = t.Output(name); err != nil {
			return err
		}
	}
	if err := p.misbehave(); err != nil {
		return err
	}
	for range in.Lines() {
	}
	if out == nil {
		return nil
	}
	return out.Write(line)
}

func (p *worker) reduceCode(t *mrruntime.Task, _ mrruntime.Records) error {
	out, err := t.Output("")
	if err != nil {
		return err
	}
	if err := p.misbehave(); err != nil {
		return err
	}
	for _, x := range sortedPieces(p.pieces) {
		if err := out.Write(reduceLine(x)); err != nil {
			return err
		}
	}
	return nil
}

func (p *worker) misbehave() error {
	switch {
	case p.behaviour.damaged != nil && !p.tt.disk.works(p.behaviour.damaged.File):
		return &shuffle.UnreadableError{Segment: *p.behaviour.damaged, Err: errFault}
	case p.behaviour.damaged != nil:
		return &shuffle.CorruptError{Segment: *p.behaviour.damaged, Reason: "bad checksum"}
	case p.behaviour.fatal:
		return mrruntime.Fatal(errCode)
	case p.behaviour.fail:
		return errCode
	}
	return nil
}

func mapLine(m int) []byte { return fmt.Appendf(nil, "map %d\n", m) }

func reduceLine(x piece) []byte { return fmt.Appendf(nil, "%d %x\n", x.m, x.digest) }

// kill is SIGKILL: the process dies soon.
func (p *worker) kill() {
	if p.killed || p.w.sabotage == ignoreKills {
		return
	}
	p.killed = true
	p.later(p.w.upTo(100*time.Millisecond), func() { p.exit("signal: killed") })
}

// exit ends the process and tells the tracker.
func (p *worker) exit(reason string) {
	if p.dead.Load() {
		return
	}
	p.die()
	t := p.tt
	if t.life != p.life {
		return
	}
	t.later(t.w.upTo(5*time.Millisecond), func() {
		if t.workers[p.id] == p {
			delete(t.workers, p.id)
			t.step(core.WorkerExited{Worker: p.id, Reason: reason})
		}
	})
}

// die ends the process. Its pending call to the file system may still be carried out.
func (p *worker) die() {
	if p.dead.Swap(true) {
		return
	}
	p.w.book.dropGrant(p)
	if call := p.pending; call != nil && p.w.fault(p.w.rates.lateCalls) {
		run := p.run
		p.w.after(p.w.upTo(3*time.Second), func() {
			p.w.note("late: %v of %v", call, run.Attempt)
			if err := p.carryOut(call); err == nil && call.op == "mkdir" {
				p.w.book.lateDirs[call.name] = true
			}
		})
	}
	if p.conn == nil || p.ended {
		return
	}
	if p.pending != nil {
		p.pending = nil
		p.answer <- errDead
	}
	p.conn.Close()
	for x := range p.parked {
		if x.ended {
			p.ended = true
			return
		}
	}
}
