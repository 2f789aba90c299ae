// Package process starts workers as processes of the job's program. Each has its own process
// group, its own control group if possible, limits, and pipes for messages and logs. The
// package kills a worker with all its children, and the workers of a dead tracker.
//
// A worker reads messages from descriptor 3 and writes to descriptor 4. If the tracker has an open
// copy of the program, it is executed from descriptor 5. Its environment is
// the tracker's without variables that begin with QUERN_, and with QUERN_MODE=worker. With
// Config.Contain only the variables of PassedVariables and Config.Variables are left. If package
// credentials has put a token file into the worker's directory, HADOOP_TOKEN_FILE_LOCATION is its path.
//
// # Processes that leave the group
//
// A program can move its processes out of the process group. A worker is a subreaper: the system
// makes it the parent of its descendants after the end of their own parent. So it has children as long as
// there are descendants, and is not used again. It does not reap those that it adopted, since it cannot
// tell them from children that its program still waits for. Ended ones are no descendants here, unless
// there are many. With Config.Contain the tracker is a subreaper too.
// When a worker ends, its descendants become children of the tracker, which it has not started: it
// kills them. They are not found if the tracker itself is killed meanwhile. Children that the tracker
// had before its first worker are spared.
//
// # Files
//
// In the tracker's directory, for [KillLeftover]:
//
//	workers  the boot id of the machine in the first line, then for each worker
//	         "<pid> <start time>", as /proc/<pid>/stat has it
//	cgroup   the directories of the tracker's control groups, if it has any, see package cgroup
//
// The start time shows whether another process has got the same number. KillLeftover does
// not kill such a process. A running tracker removes lines of dead workers from time to time,
// and KillLeftover reads only the last 16 MiB, so old or damaged files cost little.
//
// # Invariants
//
//	C1  When Wait returns, all processes in the worker's groups and, with Config.Contain, all its
//	    descendants have ended, or have not died within 2 s after a kill.
//	C2  A signal is sent only while the number cannot belong to another process.
//	C3  A worker that exceeds its limit is reported once, and then killed.
//
// On systems other than Linux there are no control groups and limits, leftover processes
// are not found, and no worker is used twice.
//
// # Concurrency
//
// One goroutine at a time calls Start, on a thread that outlives the workers. Any goroutine
// may call the methods of a worker, but only one at a time may call Capture. Another
// goroutine measures the workers with limits.
package process

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quernmr/quern/tasktracker/attemptlog"
	"github.com/quernmr/quern/tasktracker/cgroup"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/isolation"
	"github.com/quernmr/quern/tasktracker/workers"
	"github.com/quernmr/quern/wire"
)

// modeVariable tells a job's program to run as a worker.
const (
	modeVariable = "QUERN_MODE"
	workerMode   = modeVariable + "=worker"
)

// executablePath is the path of an open executable in the new process, where descriptors 0 to 4 are
// in use. A worker of ours closes it for the programs that it starts.
const executablePath = "/proc/self/fd/5"

// Config configures a Starter.
type Config struct {
	Dir    string // the tracker's directory
	Logs   int64  // limit of the logs of an attempt, in bytes
	Groups bool   // make control groups, if possible

	// Contain is for a tracker that runs jobs of others: workers get only some variables of the
	// tracker's environment, no new privileges and no core dumps, and no process outlives them.
	Contain   bool
	Variables []string // more variables for them; a * at the end means all that begin so

	Maximum Maximum // of each attempt

	// AsOwner is for workers that use HDFS as the job's owner: HADOOP_USER_NAME is the owner's name.
	AsOwner bool
}

// Starter starts workers as processes of the job's program, each in its own process group.
// Make one with [New].
type Starter struct {
	cfg      Config
	meter    meter
	groups   groups
	captures attemptlog.Captures
	record   recordFile

	contained func() error      // see contain; once
	isolated  *isolation.Config // nil: workers are not isolated
}

var _ workers.Starter = (*Starter)(nil)

// New returns a starter. Before the first Start, call [StartRecord] for its directory.
func New(cfg Config) *Starter {
	p := &Starter{cfg: cfg, record: recordFile{name: filepath.Join(cfg.Dir, RecordFile)}, contained: sync.OnceValue(contain)}
	p.groups.max = cfg.Maximum
	return p
}

// Files of a tracker's directory.
const (
	RecordFile    = "workers"
	NewRecordFile = RecordFile + newSuffix // while RecordFile is written again
	GroupFile     = "cgroup"

	newSuffix = ".new"
)

// StartRecord starts a new record of workers in a tracker's directory.
func StartRecord(dir string) error { return newRecord(filepath.Join(dir, RecordFile)) }

// KillLeftover kills the processes of a dead tracker. No running tracker may use the
// directory, except for one that is starting.
func KillLeftover(dir string, log *slog.Logger) error {
	return errors.Join(killRecorded(filepath.Join(dir, RecordFile), groupMembers, log), cgroup.RemoveLeftover(filepath.Join(dir, GroupFile), groupWait))
}

// Start implements workers.Starter.
func (p *Starter) Start(program *workers.Program, dir string) (workers.Worker, error) {
	sub, exe := program.Submission, program.Executable
	if p.cfg.Contain {
		if err := p.contained(); err != nil {
			return nil, fmt.Errorf("start worker: %w", err)
		}
	}
	executable := executablePath
	if exe == nil {
		var err error
		if executable, err = localPath(sub.Program.Path); err != nil {
			return nil, err
		}
	}
	from, stderr, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	defer stderr.Close()
	if a := program.Account; a != nil { // so that its children can open /dev/stderr
		if err := stderr.Chown(int(a.UID), int(a.GID)); err != nil {
			return nil, errors.Join(fmt.Errorf("start worker: %w", err), from.Close())
		}
	}
	logs, err := p.captures.Start(from, dir, p.cfg.Logs)
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	workerIn, trackerOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	defer workerIn.Close()
	trackerIn, workerOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start worker: %w", err), trackerOut.Close())
	}
	defer workerOut.Close()

	if program.Planned == nil {
		release, err := p.Plan(program, dir)
		if err != nil {
			return nil, errors.Join(err, trackerOut.Close(), trackerIn.Close())
		}
		defer release()
	}
	env, plan := program.Planned.(planned).env, program.Planned.(planned).plan
	command := func() *exec.Cmd {
		cmd := exec.Command(executable, sub.Program.Args...)
		cmd.Dir = dir
		cmd.Env = env
		cmd.Stdout, cmd.Stderr = stderr, stderr
		cmd.ExtraFiles = []*os.File{workerIn, workerOut}
		if exe != nil {
			cmd.ExtraFiles = append(cmd.ExtraFiles, exe)
			cmd.Args[0] = path.Base(sub.Program.Path)
		}
		cmd.SysProcAttr = processAttributes()
		if plan != nil {
			isolation.Command(cmd, plan, program.Account != nil)
		}
		return cmd
	}
	w := &process{contained: p.cfg.Contain, counted: plan != nil && program.Account == nil, max: p.cfg.Maximum, meter: &p.meter, logs: logs, in: trackerIn, conn: wire.NewConn(trackerIn, trackerOut, func() error {
		return errors.Join(trackerIn.Close(), trackerOut.Close())
	})}
	if w.cmd, w.group, w.forget, err = p.groups.start(command); err != nil {
		return nil, errors.Join(err, w.conn.Close())
	}
	if err := p.record.add(w.pid()); err != nil {
		w.Kill()
		return nil, errors.Join(fmt.Errorf("record worker: %w", err), w.Wait(), w.conn.Close())
	}
	return w, nil
}

// localPath returns the path of an executable, given as a path or as a file:// URL.
func localPath(program string) (string, error) {
	scheme, rest, isURL := strings.Cut(program, "://")
	switch {
	case !isURL:
		rest = program
	case scheme != "file":
		return "", fmt.Errorf("program %s is not on a local file system", program)
	}
	if !filepath.IsAbs(rest) {
		return "", fmt.Errorf("path of the program is not absolute: %q", program)
	}
	return rest, nil
}

// process is a worker process.
type process struct {
	contained bool // see Config.Contain
	counted   bool // the system counts its threads apart from those of other workers
	max       Maximum
	meter     *meter
	cmd       *exec.Cmd
	forget    func()        // call it when the process has been reaped, see StartChild
	group     *cgroup.Group // nil: none
	conn      *wire.Conn
	in        *os.File // conn reads from it
	logs      *attemptlog.Streams

	limiting sync.Mutex // excludes a Limit while the process is reaped; the kernel may make Limit wait, but not Kill

	mu     sync.Mutex
	reaped bool   // another process or group may have its number
	limit  Limits // last limit
}

func (w *process) Conn() *wire.Conn { return w.conn }

func (w *process) pid() int { return w.cmd.Process.Pid }

func (w *process) Kill() {
	w.signal(syscall.SIGKILL)
	w.group.Kill()
}

// Terminate sends SIGTERM to the process group.
func (w *process) Terminate() { w.signal(syscall.SIGTERM) }

// Dump makes the worker write its goroutines to its log. Its children may be programs that
// SIGQUIT would only end.
func (w *process) Dump() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reaped {
		_ = syscall.Kill(w.pid(), syscall.SIGQUIT)
	}
}

// signal sends a signal to the process group.
func (w *process) signal(s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reaped {
		// The only possible error is that the group has ended.
		_ = syscall.Kill(-w.pid(), s)
	}
}

// ended reports whether another process may have the number.
func (w *process) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reaped
}

// Wait waits for the process, and kills the rest of its group.
func (w *process) Wait() error {
	err := w.reap()
	w.forget()
	if w.contained {
		killStrangers()
	}
	w.logs.End()
	w.meter.forget(w)
	w.mu.Lock()
	limit := w.limit
	w.mu.Unlock()
	if reason := limit.exhausted(w.group); reason != "" {
		err = errors.New(reason)
	}
	w.group.Remove()
	// A process that left the group may keep the pipe open for ever.
	_ = w.in.SetReadDeadline(time.Now().Add(workers.EndGrace))
	return err
}

// Limit limits the process and its children together.
func (w *process) Limit(job core.Limit, exceeded func(reason string)) {
	limit := w.max.Of(job)
	w.limiting.Lock()
	w.mu.Lock()
	w.limit = limit
	reaped := w.reaped
	w.mu.Unlock()
	var err error
	if !reaped {
		err = w.group.Limit(w.pid(), limit.group())
		if w.counted {
			limitTasks(w.pid(), limit.group().Tasks)
		}
	}
	w.limiting.Unlock()
	if err != nil && w.max.limitsCores() {
		exceeded(fmt.Sprintf("its cores could not be limited: %v", err)) // nothing else limits them
		return
	}
	if limit.Memory > 0 || limit.Processes > 0 {
		w.meter.limit(w, limit, exceeded)
		return
	}
	w.meter.forget(w)
}

// NoLeftovers reports whether no process that the attempts of this worker started is left. A worker
// adopts its orphans, so these are its children. It kills orphans that the process did not adopt.
func (w *process) NoLeftovers() bool {
	if w.contained {
		killStrangers()
	}
	if members, _ := w.group.Members(); !allEnded(children(w.pid())) || len(members) > 1 {
		return false
	}
	return listsChildren() || len(otherMembers(w.pid())) == 0
}

// Capture prepares the pipes for the next attempt's logs, and returns the directory of the
// pipes.
func (w *process) Capture(logs string, failed func(error)) (string, error) {
	return w.logs.Capture(logs, failed)
}

// Drain writes pending output to the logs.
func (w *process) Drain() { w.logs.Drain() }

// Close removes the control group of all workers, after their end. Processes that survived
// the kill keep running.
func (p *Starter) Close() error {
	p.captures.Stop()
	return p.groups.Close()
}
