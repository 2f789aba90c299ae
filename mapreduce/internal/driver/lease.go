package driver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// Lease is how long a session lives after its last change. A running driver changes it each
// renewEvery. The job trackers of a cluster remove expired sessions; of embedded runs, the next driver
// does with [Sweep].
const Lease = wire.SessionLease

const (
	renewEvery = 10 * time.Second
	// deadAfter is the time without renewal after which another driver takes a session over.
	deadAfter   = time.Minute
	runningName = "running"
	holderName  = "holder"
)

// errTaken matches the error of a session that another driver has taken over, or that was removed.
var errTaken = errors.New("session taken over or removed")

type takenError string

func (e takenError) Error() string      { return string(e) }
func (takenError) Is(target error) bool { return target == errTaken }

// hold makes the session's directory "running", which contains the name of this process. If another
// driver has it, hold waits until that driver renews it, or has not renewed it for deadAfter. If that driver ends well
// meanwhile, it removes the session: hold makes it again.
func (s *session) hold(ctx context.Context) error {
	dir := dfs.Join(s.dir, runningName)
	host, _ := os.Hostname() // for messages, and to find a dead process
	s.self = fmt.Sprintf("%s %d %s", host, os.Getpid(), rand.Text())
	var seen time.Time
	waitsFor := ""
	for {
		err := s.fs.Mkdir(dir)
		if err == nil {
			if err = writeFile(s.fs, dfs.Join(dir, holderName), []byte(s.self)); err != nil {
				return errors.Join(err, s.fs.RemoveAll(dir))
			}
			s.renew(ctx)
			return nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			if waitsFor != "" {
				s.note(fmt.Sprintf("session %s was ended and removed by %s: a new one begins", s.name, processText(waitsFor)))
			}
			if err := s.make(); err != nil {
				return err
			}
			waitsFor = ""
			continue
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		holder, renewed, now, err := s.holder()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case isDead(holder, host) || now.Sub(renewed) > deadAfter:
			if err := s.takeOver(holder); err != nil {
				return err
			}
			continue
		case !seen.IsZero() && renewed.After(seen):
			return fmt.Errorf("%s uses it: wait for that process, or choose another name with -session", processText(holder))
		case seen.IsZero():
			s.note(fmt.Sprintf("session %s is in use by %s; waiting to see whether it still runs", s.name, processText(holder)))
		}
		seen, waitsFor = renewed, holder
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(renewEvery / 2):
		}
	}
}

// takeOver removes the directory of a holder that has died. Only one of several drivers can rename it.
func (s *session) takeOver(holder string) error {
	running, dead := dfs.Join(s.dir, runningName), dfs.Join(s.dir, "dead-"+rand.Text())
	err := s.fs.RenameDir(running, dead)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := readFile(s.fs, dfs.Join(dead, holderName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if string(text) != holder { // another driver was faster: this is its directory
		return s.fs.RenameDir(dead, running)
	}
	return s.fs.RemoveAll(dead)
}

// holder returns the process that has the session, the time of its last renewal, and the present by the
// clock of the file system.
func (s *session) holder() (holder string, renewed, now time.Time, err error) {
	dir := dfs.Join(s.dir, runningName)
	at, err := s.fs.Stat(dir)
	if err != nil {
		return "", renewed, now, err
	}
	text, err := readFile(s.fs, dfs.Join(dir, holderName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // it is about to write its name, or has died before
	}
	if err == nil {
		now, err = s.touch(s.dir)
	}
	return string(text), at.Modified, now, err
}

// touch changes a directory, and returns the time by the clock of the file system.
func (s *session) touch(dir string) (time.Time, error) {
	name := dfs.Join(dir, ".renew-"+rand.Text())
	w, err := s.fs.Create(name)
	if err != nil {
		return time.Time{}, err
	}
	if err := w.Close(); err != nil {
		return time.Time{}, err
	}
	info, err := s.fs.Stat(name)
	return info.Modified, errors.Join(err, s.fs.Remove(name))
}

// renew changes the directories of the session each renewEvery, until leave. It fails the driver if
// another one has taken the session over, as after a long pause of this process.
func (s *session) renew(ctx context.Context) {
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.loops.Go(func() {
		tick := time.NewTicker(renewEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if s.name == "" {
				_, _ = s.touch(s.dir) // if it fails, the next tick tries again
				continue
			}
			holder, _, _, err := s.holder() // it also changes the session's directory
			if err == nil && holder == s.self {
				_, _ = s.touch(dfs.Join(s.dir, runningName)) // if it fails, the next tick tries again
			} else if err == nil || errors.Is(err, fs.ErrNotExist) {
				s.lost(s.takenBy(s.dir, holder))
				return
			}
		}
	})
}

// leave stops the renewal.
func (s *session) leave() {
	s.stop()
	s.loops.Wait()
}

// release lets other drivers enter the session. It fails with errTaken if one of them has done so.
func (s *session) release() error {
	err := s.check(s.dir)
	if err == nil {
		err = s.takeOver(s.self) // not RemoveAll: another driver may take it over now
	}
	if err != nil && !errors.Is(err, errTaken) {
		return fmt.Errorf("leave session %s: %w", s.name, err)
	}
	return err
}

// check returns errTaken if another driver has taken over the session in a directory, or the directory is missing.
func (s *session) check(dir string) error {
	holder, err := readFile(s.fs, dfs.Join(dir, runningName, holderName))
	switch {
	case err == nil && string(holder) == s.self:
		return nil
	case err == nil, errors.Is(err, fs.ErrNotExist): // the other one may have ended, or not have written its name
		return s.takenBy(dir, string(holder))
	}
	return err
}

// takenBy returns the error of a session that this driver no longer has in a directory.
func (s *session) takenBy(dir, holder string) error {
	if _, err := s.fs.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return takenError(fmt.Sprintf("session %s was removed, by hand or by another process that took it over: %s is missing", s.name, dir))
	}
	return takenError(fmt.Sprintf("session %s was taken over by %s, because this process did not renew it for %v", s.name, processText(holder), deadAfter))
}

// isDead reports whether the holder is a process of this machine that has ended.
func isDead(holder, host string) bool {
	words := strings.Fields(holder)
	if len(words) < 2 || words[0] != host {
		return false
	}
	n, err := strconv.Atoi(words[1])
	return err == nil && n > 0 && hasEnded(n)
}

func processText(holder string) string {
	words := strings.Fields(holder)
	if len(words) < 2 {
		return "another process"
	}
	return fmt.Sprintf("process %s on %s", words[1], words[0])
}

// Sweep removes the sessions in a directory that have expired.
func Sweep(files dfs.FS, sessions string, now time.Time) error {
	infos, err := files.List(sessions)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var errs []error
	for _, info := range infos {
		if info.Dir && now.Sub(info.Modified) > Lease {
			errs = append(errs, files.RemoveAll(info.Name))
		}
	}
	return errors.Join(append(errs, err)...)
}
