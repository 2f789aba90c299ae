// Package process starts workers as processes of the job's program and keeps each apart:
// in a process group and, where that is possible, in a control group of its own, within
// limits, with pipes for what it says and for its logs. It kills what a worker has
// started with it, and what a tracker that died has left.
//
// A worker reads from descriptor 3 and writes to descriptor 4. Its environment is the
// tracker's without variables that begin with QUERN_, and with QUERN_MODE=worker.
//
// # Files
//
// In the tracker's directory, for [Bury] by a successor:
//
//	workers  the boot id of the machine in the first line, then for each worker
//	         "<pid> <start time>", as /proc/<pid>/stat has it
//	cgroup   the directory of the tracker's control group, if it has one
//
// A number in workers that names another process by now is told by its start time and
// left alone.
//
// # Invariants
//
//	C1  When Wait returns, what the worker has started in its groups has ended, or did not
//	    within 2 s of being killed.
//	C2  A number is signalled only as long as it cannot have become another process's.
//	C3  A worker that takes more than its limit is told of once, and is killed after that.
//
// Without Linux there are no control groups, limits and survivors that are told, and no
// worker is used twice.
//
// # Concurrency
//
// Start is called by one goroutine at a time, on a thread that outlives the workers. The
// methods of a worker may be called by any goroutine, Capture by one. Limited workers are
// measured by one more, as long as there are any.
package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quernmr/quern/tasktracker/attemptlog"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/workers"
	"github.com/quernmr/quern/wire"
)

// modeVariable tells a job's program what it is started for.
const (
	modeVariable = "QUERN_MODE"
	workerMode   = modeVariable + "=worker"
)

// Config says how processes are started.
type Config struct {
	Dir    string                  // the tracker's directory
	Check  func(path string) error // of an executable, each time before a process is started; nil: none
	Logs   int64                   // bytes that the logs of an attempt may take
	Groups bool                    // control groups are made, where that is possible
}

// Starter starts workers as processes of the job's program, each the leader of
// a process group of its own. Make one with [New].
type Starter struct {
	cfg      Config
	meter    meter
	groups   cgroups
	captures attemptlog.Captures
}

var _ workers.Starter = (*Starter)(nil)

// New makes a starter that has started nothing. [Begin] has been called for its directory.
func New(cfg Config) *Starter {
	p := &Starter{cfg: cfg}
	if cfg.Groups {
		p.groups.stateDir = cfg.Dir
	}
	return p
}

// Files of a tracker's directory.
const (
	RecordFile = "workers"
	GroupFile  = "cgroup"
)

// Begin begins the record of the workers that are started in a tracker's directory.
func Begin(dir string) error { return newRecord(filepath.Join(dir, RecordFile)) }

// Bury ends what a tracker that has died has left running. It is for directories
// that no tracker uses any more, and for one that starts.
func KillLeftover(dir string) error {
	return errors.Join(killRecorded(filepath.Join(dir, RecordFile)), killCgroup(dir))
}

// Start implements workers.Starter.
func (p *Starter) Start(sub *wire.Submission, dir string) (workers.Worker, error) {
	path, err := localPath(sub.Program.Path)
	if err != nil {
		return nil, err
	}
	if p.cfg.Check != nil {
		if err := p.cfg.Check(path); err != nil {
			return nil, err
		}
	}
	from, stderr, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	defer stderr.Close()
	logs, err := p.captures.Start(from, dir, p.cfg.Logs)
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	defer theirIn.Close()
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start worker: %w", err), ourOut.Close())
	}
	defer theirOut.Close()

	command := func() *exec.Cmd {
		cmd := exec.Command(path, sub.Program.Args...)
		cmd.Dir = dir
		cmd.Env = workerEnvironment(os.Environ())
		cmd.Stdout, cmd.Stderr = stderr, stderr
		cmd.ExtraFiles = []*os.File{theirIn, theirOut}
		cmd.SysProcAttr = processAttributes()
		return cmd
	}
	w := &process{meter: &p.meter, logs: logs, in: ourIn, conn: wire.NewConn(ourIn, ourOut, func() error {
		return errors.Join(ourIn.Close(), ourOut.Close())
	})}
	if w.cmd, w.group, err = p.groups.start(command); err != nil {
		return nil, errors.Join(err, w.conn.Close())
	}
	if err := appendRecord(filepath.Join(p.cfg.Dir, RecordFile), w.pid()); err != nil {
		w.Kill()
		return nil, errors.Join(fmt.Errorf("record worker: %w", err), w.Wait(), w.conn.Close())
	}
	return w, nil
}

// localPath is the path of an executable, given as a path or as a file:// URL.
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

// workerEnvironment is the tracker's environment, without what our own variables
// say to the tracker itself.
func workerEnvironment(own []string) []string {
	env := make([]string, 0, len(own)+1)
	for _, v := range own {
		if !strings.HasPrefix(v, "QUERN_") {
			env = append(env, v)
		}
	}
	return append(env, workerMode)
}

// process is a worker process.
type process struct {
	meter *meter
	cmd   *exec.Cmd
	group *cgroup // nil: none
	conn  *wire.Conn
	in    *os.File // what conn reads
	logs  *attemptlog.Streams

	mu     sync.Mutex
	reaped bool       // its number, and its group's, may be another's by now
	most   core.Limit // last
}

func (w *process) Conn() *wire.Conn { return w.conn }

func (w *process) pid() int { return w.cmd.Process.Pid }

func (w *process) Kill() {
	w.signal(syscall.SIGKILL)
	w.group.kill()
}

// signal sends a signal to the group.
func (w *process) signal(s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reaped {
		// The group may be gone already; nothing else can be wrong.
		_ = syscall.Kill(-w.pid(), s)
	}
}

// ended says whether the process's number may be another's by now.
func (w *process) ended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reaped
}

// Wait waits for the process, and kills what is left of its group.
func (w *process) Wait() error {
	err := w.reap()
	w.logs.End()
	w.meter.leave(w)
	w.mu.Lock()
	if reason := w.group.overrun(&w.most); reason != "" {
		err = errors.New(reason)
	}
	w.mu.Unlock()
	w.group.remove()
	// Something that left the group may hold the pipe open for ever.
	_ = w.in.SetReadDeadline(time.Now().Add(workers.EndGrace))
	return err
}

// Limit holds the process, and all it starts, to a limit together.
func (w *process) Limit(most core.Limit, exceeded func(reason string)) {
	w.mu.Lock()
	w.most = most
	w.mu.Unlock()
	w.group.limit(&most)
	if most.Memory > 0 || most.Processes > 0 {
		w.meter.limit(w, most, exceeded)
		return
	}
	w.meter.leave(w)
}

// Alone says whether the process's groups have no other member.
func (w *process) Alone() bool { return len(others(w.pid())) == 0 && len(w.group.members()) <= 1 }

// Capture has the next attempt's logs pass through this process, to a directory, and
// says where the attempt finds their ends.
func (w *process) Capture(logs string, failed func(error)) (string, error) {
	return w.logs.Capture(logs, failed)
}

// Drain takes what was written so far into the logs.
func (w *process) Drain() { w.logs.Drain() }

// Close removes the control group of all workers, once these are gone, and leaves to
// themselves what they have started and could not be ended.
func (p *Starter) Close() error {
	p.captures.Stop()
	return p.groups.close()
}
