package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Limits of the file of workers. A running tracker removes the lines of dead workers when it
// has written rewriteBytes. A start reads at most maxRecordBytes, the last ones.
const (
	rewriteBytes   = 1 << 20
	maxRecordBytes = 16 << 20
)

// record is a line of the file of workers.
type record struct {
	pid   int
	start uint64
}

// running reports whether the worker was not reaped yet.
func (r record) running() bool {
	p, err := readProcess(r.pid)
	return err == nil && p.start == r.start
}

// recordFile is the file of workers of a running tracker.
type recordFile struct {
	name    string
	written int // bytes since the last rewrite
}

// add adds a worker.
func (f *recordFile) add(pid int) error {
	p, err := readProcess(pid)
	if err != nil {
		return err
	}
	if f.written > rewriteBytes {
		if err := f.rewrite(); err != nil {
			return err
		}
		f.written = 0
	}
	out, err := os.OpenFile(f.name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	n, err := fmt.Fprintf(out, "%d %d\n", pid, p.start)
	f.written += n
	return errors.Join(err, out.Close())
}

// rewrite removes the lines of workers that have ended: their groups were killed then.
func (f *recordFile) rewrite() error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	text := []byte(boot + "\n")
	_, err = readRecords(f.name, boot, func(r record) {
		if r.running() {
			text = fmt.Appendf(text, "%d %d\n", r.pid, r.start)
		}
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.name+newSuffix, text, 0o666); err != nil {
		return err
	}
	return os.Rename(f.name+newSuffix, f.name)
}

func bootID() (string, error) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// newRecord starts a new file of workers.
func newRecord(file string) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(boot+"\n"), 0o666)
}

// readRecords passes the workers of a file to use, unless the machine was restarted since. Of
// a long file it reads the last maxRecordBytes, and returns how many bytes it left out.
func readRecords(file, boot string, use func(record)) (skipped int64, err error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	defer f.Close()
	head := make([]byte, len(boot)+1)
	if _, err := io.ReadFull(f, head); err != nil || string(head) != boot+"\n" {
		return 0, nil
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if skipped = max(info.Size()-maxRecordBytes, 0); skipped > 0 {
		if _, err := f.Seek(skipped, io.SeekStart); err != nil {
			return 0, err
		}
	}
	lines := bufio.NewScanner(io.LimitReader(f, maxRecordBytes))
	lines.Split(shortLines)
	for lines.Scan() {
		var r record
		if n, err := fmt.Sscanf(lines.Text(), "%d %d\n", &r.pid, &r.start); n == 2 && err == nil && r.pid > 1 {
			use(r)
		} // otherwise it is a torn write
	}
	return skipped, lines.Err()
}

// shortLines splits a text into lines with their ends, and leaves out lines that are too long
// or have no end.
func shortLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	const longest = 64
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		if i >= longest {
			return i + 1, nil, nil
		}
		return i + 1, data[:i+1], nil
	}
	if len(data) > longest || atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// killRounds limits how often killRecorded looks for processes that were started during a kill.
const killRounds = 3

// killRecorded kills the recorded process groups that still exist. It scans the processes of
// the machine, by group, once in each round.
func killRecorded(file string, scan func() map[int][]int, log *slog.Logger) error {
	boot, err := bootID()
	if err != nil {
		return err
	}
	groups := scan()
	exists := make(map[int]bool)
	for _, members := range groups {
		for _, pid := range members {
			exists[pid] = true
		}
	}
	var candidates []record // at most as many as there are processes and groups
	seen := make(map[record]bool)
	skipped, err := readRecords(file, boot, func(r record) {
		if (exists[r.pid] || len(groups[r.pid]) > 0) && !seen[r] {
			seen[r] = true
			candidates = append(candidates, r)
		}
	})
	if err != nil {
		return err
	}
	if skipped > 0 {
		log.Warn("the file of workers is too long: only its end was read, so workers of an earlier process may still run", "file", file, "bytes left out", skipped)
	}
	killed := make(map[record]bool)
	var alive []record
	for range killRounds {
		alive = alive[:0]
		for _, r := range candidates {
			alive = append(alive, killGroup(r, groups[r.pid])...)
		}
		if len(alive) == 0 {
			break
		}
		for _, p := range alive {
			killed[p] = true
		}
		alive = awaitDeath(alive)
		groups = scan()
	}
	if len(killed) > 0 {
		log.Info("killed processes of an earlier process of this task tracker", "processes", len(killed))
	}
	if len(alive) > 0 {
		log.Warn("processes of an earlier process of this task tracker survive SIGKILL", "processes", len(alive), "first", alive[0].pid)
	}
	return nil
}

// killGroup kills a worker's group, and returns its members. If its leader has ended, another
// group may have the number: then it kills only members with a worker's environment.
func killGroup(r record, members []int) (killed []record) {
	leader, err := readProcess(r.pid)
	if err == nil && leader.start != r.start {
		return nil // another process has the number, so the group has ended
	}
	hasLeader := err == nil
	for _, pid := range members {
		p, err := readProcess(pid)
		if err != nil || !p.alive() {
			continue
		}
		if g, err := syscall.Getpgid(pid); err != nil || g != r.pid {
			continue
		}
		if !hasLeader && (p.start < r.start || !inWorkerMode(pid)) {
			continue
		}
		killed = append(killed, record{pid, p.start})
	}
	if hasLeader && len(killed) > 0 {
		_ = syscall.Kill(-r.pid, syscall.SIGKILL)
		return killed
	}
	for _, p := range killed {
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	return killed
}

// awaitDeath waits for killed processes, together for at most groupWait. It returns those that
// are still alive.
func awaitDeath(processes []record) []record {
	for end := time.Now().Add(groupWait); ; time.Sleep(time.Millisecond) {
		processes = slices.DeleteFunc(processes, func(r record) bool {
			p, err := readProcess(r.pid)
			return err != nil || p.start != r.start || !p.alive()
		})
		if len(processes) == 0 || time.Now().After(end) {
			return processes
		}
	}
}

func inWorkerMode(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(env, []byte{0}) {
		if string(v) == workerMode {
			return true
		}
	}
	return false
}
