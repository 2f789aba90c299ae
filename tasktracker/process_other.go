//go:build !linux

package tasktracker

import "syscall"

// Without /proc it cannot be told what a worker has left behind or whether a
// recorded process is still the one meant. So no worker is used twice, and
// survivors of a crashed tracker end by themselves when their pipe closes.

func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// reap kills what is left of the group as soon as its leader is gone.
func (w *process) reap() error {
	err := w.cmd.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = syscall.Kill(-w.pid(), syscall.SIGKILL)
	w.reaped = true
	return err
}

// others answers that there is one, for all that is known.
func others(int) []int { return []int{0} }

func appendRecord(string, int) error { return nil }
func killRecorded(string) error      { return nil }
func newRecord(string) error         { return nil }
