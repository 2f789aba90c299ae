package process

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// family has the children that this process has started. With Config.Contain it also gets those
// that were started by its workers and lost their parent: these are strangers.
var family = struct {
	mu      sync.Mutex // held while a child is started and entered
	started map[int]bool
	killing sync.Mutex // held by killStrangers
}{started: make(map[int]bool)}

// StartChild starts a process that is not killed as the child of a worker. Every child of a task
// tracker must be started here. Call ended after its Wait.
func StartChild(cmd *exec.Cmd) (ended func(), err error) {
	family.mu.Lock()
	defer family.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	pid := cmd.Process.Pid
	family.started[pid] = true
	return func() {
		family.mu.Lock()
		defer family.mu.Unlock()
		delete(family.started, pid)
	}, nil
}

// contain takes rights from the workers that this thread will start, and makes this process the
// parent of their orphans.
func contain() error {
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

// strangers returns the children of this process that it has not started. Other goroutines start none
// meanwhile.
func strangers() (pids []int) {
	family.mu.Lock()
	defer family.mu.Unlock()
	for _, pid := range children(os.Getpid()) {
		if !family.started[pid] {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killStrangers kills the strangers and reaps them. Their own children then are strangers too. A live
// worker adopts its orphans itself, so all strangers are of workers that have ended, or do not adopt.
func killStrangers() {
	family.killing.Lock() // so that no other goroutine reaps them and their numbers stay theirs
	defer family.killing.Unlock()
	for end := time.Now().Add(groupWait); ; time.Sleep(100 * time.Microsecond) {
		all := strangers()
		for _, pid := range all {
			// The only possible errors are that it has ended, or cannot be killed for now.
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		if len(all) == 0 || time.Now().After(end) {
			return
		}
	}
}
