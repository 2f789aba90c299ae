package process

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// family has the children that this process has started. With Config.Contain it also gets those
// that were started by its workers and lost their parent: these are strangers. The system makes them
// children of the main thread.
var family = struct {
	mu        sync.Mutex
	started   map[int]*exec.Cmd // by number; nil: the child was there before any worker
	starting  map[int]bool      // threads with a child that is not entered yet; never the main thread
	contained sync.Once

	killing   sync.Mutex   // held by killStrangers
	surviving map[int]bool // strangers that a kill has not ended, see endAll
}{started: make(map[int]*exec.Cmd), starting: make(map[int]bool), surviving: make(map[int]bool)}

// StartChild starts a process that is not killed as the child of a worker. Every child of a task
// tracker must be started here. Call ended after its Wait. On the main thread, a file system that does
// not answer for the program also delays other starts, and the ends of workers.
func StartChild(cmd *exec.Cmd) (ended func(), err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := unix.Gettid()
	family.mu.Lock()
	defer family.mu.Unlock()
	if thread == os.Getpid() {
		err = cmd.Start()
	} else {
		family.starting[thread] = true
		family.mu.Unlock()
		err = cmd.Start()
		family.mu.Lock()
		delete(family.starting, thread)
	}
	if err != nil {
		return nil, err
	}
	pid := cmd.Process.Pid
	family.started[pid] = cmd
	return func() {
		family.mu.Lock()
		defer family.mu.Unlock()
		if family.started[pid] == cmd { // else a new child has the number
			delete(family.started, pid)
		}
	}, nil
}

// spareEarlier enters the children that this process has before its first worker. A shell script may
// have started them before it executed this program. Process 1 of a container also gets orphans.
func spareEarlier() {
	earlier := strangers()
	family.mu.Lock()
	defer family.mu.Unlock()
	for _, pid := range earlier {
		family.started[pid] = nil
	}
}

// contain takes rights from the workers that this thread will start, and makes this process the
// parent of their orphans.
func contain() error {
	family.contained.Do(spareEarlier)                                        // a later call would find strangers
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil { // holds for this thread and its children
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	// Workers inherit the limit. This process itself cannot dump core either, as its memory has keys.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit the size of cores: %w", err)
	}
	return nil
}

// strangers returns the children of this process that it has not started.
func strangers() (pids []int) {
	family.mu.Lock()
	defer family.mu.Unlock()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	for _, thread := range threads {
		if n, err := strconv.Atoi(thread.Name()); err != nil || family.starting[n] {
			continue
		}
		text, _ := readProc("/proc/self/task/" + thread.Name() + "/children") // fails after the thread's end
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			if _, entered := family.started[pid]; err == nil && !entered {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// EndStrangers ends what has lost its parent, such as a process that a health script has left. The ends
// of attempts and workers do the same.
func (p *Starter) EndStrangers() {
	if p.cfg.Contain {
		family.contained.Do(spareEarlier) // there was no worker yet
		killStrangers()
	}
}

// killStrangers kills the strangers and reaps them. Their own children then are strangers too. A live
// worker adopts its orphans itself, so all strangers are of workers that have ended, or do not adopt.
func killStrangers() {
	family.killing.Lock() // so that no other goroutine reaps them and their numbers stay theirs
	defer family.killing.Unlock()
	endAll(strangers, family.surviving, func(pid int) (reaped bool) {
		// The only possible errors are that it has ended, or cannot be killed for now.
		_ = unix.Kill(pid, unix.SIGKILL)
		got, _ := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		return got == pid
	})
}

// endAll ends the processes of a list until it is empty, for at most groupWait. A process may survive,
// as it waits for a disk or belongs to another user. It is entered, and no later call waits for it.
func endAll(list func() []int, surviving map[int]bool, end func(pid int) (reaped bool)) {
	for until := time.Now().Add(groupWait); ; time.Sleep(100 * time.Microsecond) {
		all := list()
		maps.DeleteFunc(surviving, func(pid int, _ bool) bool { return !slices.Contains(all, pid) })
		for _, pid := range all {
			if end(pid) {
				delete(surviving, pid) // its children may be in the next list
			}
		}
		if len(all) == len(surviving) {
			return
		}
		if time.Now().After(until) {
			for _, pid := range all {
				surviving[pid] = true
			}
			return
		}
	}
}
