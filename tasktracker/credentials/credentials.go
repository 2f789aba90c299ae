// Package credentials gives workers tokens of the file system, so that the login of the tracker's
// process, such as a keytab, stays with it. The tokens are in a file in each worker's directory.
//
// # Files
//
//	<worker's directory>/[File]  readable by the directory's owner alone; replaced by a rename
//
// # Invariants
//
//	K1  The file is in the directory, and valid, before its worker starts.
//	K2  Half of the time before tokens expire, the files have new ones. After a failure the store
//	    tries again, more often towards the end.
//	K3  When a submission is forgotten, all its tokens are cancelled, also older ones, unless they have
//	    expired. So they are when the tracker stops.
//
// # Concurrency
//
// Any goroutine may use a Store. Prepare and the functions that Forget and Close return may wait for
// the file system; Forget does not.
package credentials

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/quernmr/quern/dfs"
)

const (
	// File is the name of the token file in a worker's directory.
	File = "hdfs-tokens"
	// Variable is the environment variable in which the worker finds its path.
	Variable = "HADOOP_TOKEN_FILE_LOCATION"
)

// Issue gets tokens of a user for the file systems of some URLs; an empty user is the tracker's own.
// It returns the content of a token file (nil: none is needed), the time at which the first token
// expires, and a function that cancels them. If the tracker may not act as the user, the error is
// dfs.ErrActAs.
type Issue = func(user string, names []string) (file []byte, expires time.Time, cancel func() error, err error)

// RefusedError reports that a job gets no tokens. Every tracker would find the same, so that the job
// fails at once, and no tracker is blamed.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// retry limits the time between two attempts to get new tokens.
const (
	minRetry = 10 * time.Second
	maxRetry = 10 * time.Minute
)

// Store has the tokens of submissions. Make one with [New].
type Store struct {
	issue Issue
	log   *slog.Logger

	mu     sync.Mutex
	grants map[key]*grant
}

// key names a submission and the user of its tokens. One staging directory has two users only if two
// clients submit with it.
type key struct{ staging, user string }

// grant are the tokens of a submission.
type grant struct {
	names []string
	ready chan struct{} // closed when err or file is set

	mu      sync.Mutex // may be held while a file is written
	err     error
	file    []byte
	expires time.Time
	issued  []issued
	dirs    map[string]bool
	timer   *time.Timer // of the next renewal; nil: none
	ended   bool
}

// issued are tokens that are valid until they are cancelled or expire.
type issued struct {
	expires time.Time
	cancel  func() error
}

func (i issued) expired() bool { return !time.Now().Before(i.expires) }

// New returns a store without tokens; issue nil: no worker needs any.
func New(issue Issue, log *slog.Logger) *Store {
	return &Store{issue: issue, log: log, grants: make(map[key]*grant)}
}

// Prepare puts the tokens of a submission for some URLs into a worker's directory. The first call
// gets them.
func (s *Store) Prepare(staging, user string, names []string, dir string) error {
	if s.issue == nil {
		return nil
	}
	k := key{staging, user}
	s.mu.Lock()
	g := s.grants[k]
	isNew := g == nil
	if isNew {
		g = &grant{names: names, ready: make(chan struct{}), dirs: make(map[string]bool)}
		s.grants[k] = g
	}
	s.mu.Unlock()
	if isNew {
		s.fill(k, g)
	}
	<-g.ready
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil || g.file == nil {
		return g.err
	}
	g.dirs[dir] = true
	if err := write(dir, g.file); err != nil {
		return fmt.Errorf("write the worker's token file: %w", err)
	}
	return nil
}

// fill gets the first tokens. After a failure the next worker tries again.
func (s *Store) fill(k key, g *grant) {
	file, expires, cancel, err := s.issue(k.user, g.names)
	if errors.Is(err, dfs.ErrActAs) {
		err = &RefusedError{err}
	}
	if err != nil {
		s.mu.Lock()
		delete(s.grants, k)
		s.mu.Unlock()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	defer close(g.ready)
	g.err = err
	if err == nil {
		s.keep(k, g, file, expires, cancel)
	}
}

// keep stores new tokens and plans to replace them. g.mu is held.
func (s *Store) keep(k key, g *grant, file []byte, expires time.Time, cancel func() error) {
	if file == nil {
		return
	}
	g.file, g.expires = file, expires
	g.issued = append(g.issued, issued{expires, cancel})
	if g.ended { // it was forgotten meanwhile
		go s.cancel(k, g.takeIssued())
		return
	}
	g.timer = time.AfterFunc(max(time.Until(expires)/2, minRetry), func() { s.renew(k, g) })
}

// renew replaces the tokens. Older ones stay valid: programs that a worker has started may have read
// them.
func (s *Store) renew(k key, g *grant) {
	file, expires, cancel, err := s.issue(k.user, g.names)
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil || file == nil {
		if !g.ended {
			left := time.Until(g.expires)
			s.log.Warn("cannot get new tokens for workers", "staging", k.staging, "expire", g.expires, "error", err)
			g.timer = time.AfterFunc(min(max(left/4, minRetry), maxRetry), func() { s.renew(k, g) })
		}
		return
	}
	if s.keep(k, g, file, expires, cancel); g.ended {
		return
	}
	for dir := range g.dirs {
		if err := write(dir, file); err != nil {
			delete(g.dirs, dir)
			if !errors.Is(err, fs.ErrNotExist) { // a worker that has ended has no directory
				s.log.Warn("cannot write a worker's new tokens", "error", err)
			}
		}
	}
}

// Forget ends the use of a submission's tokens, while no Prepare runs for it. The returned function, unless nil,
// cancels them.
func (s *Store) Forget(staging string) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ended []func()
	for k, g := range s.grants {
		if k.staging == staging {
			delete(s.grants, k)
			ended = append(ended, func() { s.end(k, g) })
		}
	}
	if ended == nil {
		return nil
	}
	return func() {
		for _, end := range ended {
			end()
		}
	}
}

// end stops the renewal of tokens, and cancels them.
func (s *Store) end(k key, g *grant) {
	g.mu.Lock()
	g.ended = true
	if g.timer != nil {
		g.timer.Stop()
	}
	tokens := g.takeIssued()
	for dir := range g.dirs {
		_ = os.Remove(filepath.Join(dir, File)) // its directory is removed too
	}
	g.mu.Unlock()
	s.cancel(k, tokens)
}

func (g *grant) takeIssued() []issued {
	all := slices.DeleteFunc(g.issued, issued.expired)
	g.issued = nil
	return all
}

func (s *Store) cancel(k key, tokens []issued) {
	for _, t := range tokens {
		if err := t.cancel(); err != nil {
			s.log.Warn("cannot cancel tokens: they stay valid until they expire", "staging", k.staging, "error", err)
		}
	}
}

// Close returns functions that end all submissions. Each may wait for a file system.
func (s *Store) Close() (ends []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, g := range s.grants {
		delete(s.grants, k)
		ends = append(ends, func() { s.end(k, g) })
	}
	return ends
}

// write replaces the token file in a directory. The new file belongs to the directory's owner, which
// is another user if workers run as one.
func write(dir string, content []byte) (err error) {
	f, err := os.CreateTemp(dir, "."+File+"-*") // mode 0600, and never an existing file
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if info, e := os.Stat(dir); e == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
			err = errors.Join(err, f.Chown(int(owner.Uid), int(owner.Gid)))
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), filepath.Join(dir, File))
}
