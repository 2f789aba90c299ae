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

// worker is a worker process. It runs the real worker loop on goroutines of its own. They run
// only while the simulation waits for them: until they call the file system, send the tracker a
// message, or end.
type worker struct {
	w       *world
	tt      *taskTracker
	life    int // of the tracker
	id      int
	staging string

	dead    atomic.Bool
	killing bool
	conn    *wire.Conn
	parked  chan parked
	answer  chan error
	pending *fileCall // the call that it waits for
	over    bool      // its goroutines have ended

	run       *wire.Run
	reading   []wire.Segment // input of a reduce
	behaviour behaviour
	pieces    []piece // content of that input
	granted   bool
	limited   bool
	last      time.Duration // arrival time of its last message
}

// parked is the reason why a worker's goroutines wait.
type parked struct {
	call    *fileCall
	message wire.Message
	ended   bool
}

// behaviour is the behaviour of an attempt's code.
type behaviour struct {
	fail, fatal, hang, leave bool
	die                      time.Duration // 0: it does not die
	damaged                  *wire.Segment // input that it cannot read
}

var errCode = errors.New("the job's code has failed")

func (t *taskTracker) startWorker(c core.StartWorker) {
	p := &worker{w: t.w, tt: t, life: t.life, id: c.Worker, staging: c.Staging}
	t.workers[c.Worker] = p
	t.disk.files[c.Dir+"/stderr"] = &file{}
	p.later(t.w.upTo(100*time.Millisecond), func() {
		switch {
		case t.w.fault(t.w.rates.starts):
			p.exit("fork: resource temporarily unavailable")
		case !t.w.fault(t.w.rates.starts): // otherwise it never sends its hello
			p.begin()
		}
	})
}

// begin starts the worker loop and forwards its hello.
func (p *worker) begin() {
	tracker, inside := wire.Pipe()
	p.conn, p.parked, p.answer = tracker, make(chan parked), make(chan error)
	served := make(chan struct{})
	go func() {
		defer close(served)
		// Its last message already says why it ended.
		_ = mrruntime.Serve(context.Background(), inside, p.load, &processFS{p}, mrruntime.Options{InProcess: true, Progress: time.Hour})
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
			p.over = true
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
		alone = !p.behaviour.leave
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
	p.last = max(p.last, p.w.now+p.w.upTo(2*time.Millisecond))
	p.later(p.last-p.w.now, func() {
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

// later runs something in this process, unless it is dead. The process runs on while its
// tracker is stopped or gone.
func (p *worker) later(d time.Duration, what func()) {
	p.w.after(d, func() {
		if p.dead.Load() {
			return
		}
		what()
	})
}

// receive gives the worker a message of the tracker.
func (p *worker) receive(m wire.Message) {
	switch m := m.(type) {
	case *wire.Run:
		p.w.book.started(p.w, p, m)
		p.tt.disk.files[m.Dir+"/work/x"] = &file{}
		p.tt.disk.files[m.Logs+"/stderr"] = &file{}
		p.run, p.reading, p.granted, p.behaviour = m, m.Runs, false, behaviour{}
		p.prepare(m)
	case *wire.CommitGranted:
		p.granted = true
		p.w.book.granted(p.w, p)
		p.w.strikeAtCommit(p.tt, p)
		if p.w.sabotage != commitUngranted {
			p.later(p.w.upTo(20*time.Millisecond), func() { p.send(m) })
		}
	}
}

func (p *worker) send(m wire.Message) {
	if p.conn == nil || p.over {
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
	x.leave = w.fault(w.rates.leftovers)
	if w.fault(w.rates.deaths) {
		x.die = 1 + w.upTo(w.pace*3/2)
		p.later(x.die, func() { p.exit("signal: segmentation fault") })
	}
	if p.limited && w.fault(w.rates.overMemory) {
		p.later(w.upTo(w.pace), func() {
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
	p.alive(run)
	takes, sick := w.upTo(w.pace), p.tt.sickFor(kind)
	if sick {
		takes = 100 * time.Millisecond
	}
	p.later(takes, func() {
		if p.run != run {
			return
		}
		switch {
		case sick:
			p.report(&wire.WorkerDone{Result: wire.Result{Error: errCode.Error()}}, true)
			return
		case kind == wire.Map && w.plan(run).Reduces > 0:
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

// alive sends signs of life while an attempt runs.
func (p *worker) alive(run *wire.Run) {
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

// mapDone is a map with output for homes, in one step.
func (p *worker) mapDone(run *wire.Run) {
	w, id := p.w, run.Attempt
	switch {
	case p.behaviour.fail, w.fault(w.rates.disks), !p.tt.disk.works(run.Dir):
		p.report(&wire.WorkerDone{Result: wire.Result{Error: errCode.Error(), Fatal: p.behaviour.fatal}}, !p.behaviour.leave)
		return
	}
	d := w.digestOf(id)
	p.tt.disk.files[run.Dir+"/"+core.OutputFile] = &file{pieces: []piece{{id.Task.N, d}}}
	told := d
	if w.sabotage == hideDigests {
		told = uint64(id.Task.N) + 1
	}
	p.report(&wire.WorkerDone{Result: wire.Result{
		Bytes:  10,
		Output: &wire.MapOutput{Map: id.Task.N, Attempt: id.N, Digest: told, Bytes: segmentLength},
	}}, !p.behaviour.leave)
}

// read reads the input of a reduce, which its code will write.
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
		p.pieces = append(p.pieces, f.read()...)
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

// mapCode is the map of a map-only job.
func (p *worker) mapCode(t *mrruntime.Task, in *mrruntime.Split, _ mrruntime.Collector) error {
	out, err := t.Output("")
	if err != nil {
		return err
	}
	if err := p.misbehave(); err != nil {
		return err
	}
	for range in.Lines() {
	}
	return out.Write(mapLine(t.ID.Task.N))
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

// kill is SIGKILL: the process is dead soon.
func (p *worker) kill() {
	if p.killing || p.w.sabotage == ignoreKills {
		return
	}
	p.killing = true
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
	p.w.book.dead(p)
	if call := p.pending; call != nil && p.w.fault(p.w.rates.lateCalls) {
		run := p.run
		p.w.after(p.w.upTo(3*time.Second), func() {
			p.w.note("late: %v of %v", call, run.Attempt)
			if err := p.carryOut(call); err == nil && call.op == "mkdir" {
				p.w.book.lateDirs[call.name] = true
			}
		})
	}
	if p.conn == nil || p.over {
		return
	}
	if p.pending != nil {
		p.pending = nil
		p.answer <- errDead
	}
	p.conn.Close()
	for x := range p.parked {
		if x.ended {
			p.over = true
			return
		}
	}
}
