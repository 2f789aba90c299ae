// Package program copies the executables of submissions to this machine: it reads the staged
// submissions and copies their executables, each once, by hash. It starts nothing.
//
// # Files
//
// Below [Dir] in the tracker's directory:
//
//	<sha-256>/<name>       a complete copy; mode 0700
//	<sha-256>/<name>.part  a copy in progress
//
// The tracker removes copies of an earlier process before it makes a Store.
//
// # Invariants
//
//	P1  The executable that Prepare returns has the SHA-256 that the submission names. It
//	    exists until Forget of the last submission with this hash.
//	P2  Except in embedded runs, only programs in the staging directory are copied, and
//	    only programs with a hash are run.
//	P3  At most one goroutine makes or removes the copy for a hash; others wait for it.
//
// # Concurrency
//
// Any goroutine may use a Store and its submissions. Prepare and the function that Forget
// returns may wait for disks and file systems; other methods do not.
package program

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Dir is the directory of executables, in a tracker's directory.
const Dir = "programs"

// Store has staged submissions, and copies of their executables. Make one with [New].
type Store struct {
	dir      string
	fs       dfs.FS
	embedded bool // programs may be anywhere; without a hash they run in place

	mu          sync.Mutex
	submissions map[string]*Submission // by staging URL
	byHash      map[string]*program
}

// Submission is a staged submission with jobs on this tracker.
type Submission struct {
	store   *Store
	staging string
	root    string // the cluster's staging directory

	// Guarded by store.mu.
	forgotten bool // Forget was called
	staged    *wire.Submission
	program   *program // nil: it runs in place
}

// program is a copy of an executable.
type program struct {
	hash    string
	file    string
	users   map[*Submission]bool
	ready   chan struct{} // closed when it is copied, or err is set
	err     error
	removed chan struct{} // not nil: it is being removed; closed when it is removed
}

// New returns a store in a tracker's directory.
func New(dir string, files dfs.FS, embedded bool) *Store {
	return &Store{
		dir: filepath.Join(dir, Dir), fs: files, embedded: embedded,
		submissions: make(map[string]*Submission), byHash: make(map[string]*program),
	}
}

// Submission returns the submission at a staging URL, and adds it if it is new. The
// cluster's staging directory is root.
func (p *Store) Submission(staging, root string) *Submission {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.submissions[staging]
	if s == nil {
		s = &Submission{store: p, staging: staging, root: root}
		p.submissions[staging] = s
	}
	return s
}

// Forget forgets a submission, which has no jobs here any more. The returned function,
// unless nil, removes the executable if no other submission needs it.
func (p *Store) Forget(staging string) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.submissions[staging]
	if s == nil {
		return nil
	}
	delete(p.submissions, staging)
	s.forgotten = true
	return func() { p.release(s) }
}

var errForgotten = errors.New("its submission has no jobs here any more")

// Prepare returns a staged submission with the path of a local copy of its executable. On
// the first call it reads the submission and makes the copy.
func (s *Submission) Prepare() (*wire.Submission, error) {
	p := s.store
	p.mu.Lock()
	staged := s.staged
	p.mu.Unlock()
	if staged == nil {
		var err error
		if staged, err = readSubmission(p.fs, s.staging); err != nil {
			return nil, err
		}
	}
	switch {
	case p.embedded:
	case staged.Program.Hash == "":
		return nil, fmt.Errorf("submission %s names program %q without its SHA-256, which only embedded runs may do", s.staging, staged.Program.Path)
	case !core.Within(s.root, staged.Program.Path):
		return nil, fmt.Errorf("submission %s names program %q, which is not in the staging directory %s", s.staging, staged.Program.Path, s.root)
	}
	if staged.Program.Hash == "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		s.staged = staged
		return staged, nil
	}
	file, err := p.get(s, &staged.Program)
	if err != nil {
		return nil, fmt.Errorf("copy program: %w", err)
	}
	local := *staged
	local.Program.Path = file
	p.mu.Lock()
	defer p.mu.Unlock()
	s.staged = staged
	return &local, nil
}

func readSubmission(files dfs.FS, staging string) (*wire.Submission, error) {
	f, err := files.Open(dfs.Join(staging, wire.StagedSubmission))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = files.Open(dfs.Join(staging, wire.StagedStopped))
	}
	if err != nil {
		return nil, fmt.Errorf("read submission: %w", err)
	}
	defer f.Close()
	sub, err := wire.ReadAs[*wire.Submission](f)
	if err != nil {
		return nil, fmt.Errorf("read submission %s: %w", f.Info().Name, err)
	}
	sub.Staging = staging
	return sub, nil
}

// get returns the path of the copy of a submission's executable. It makes the copy, or
// waits for another goroutine to make it.
func (p *Store) get(s *Submission, from *wire.Program) (string, error) {
	sum, err := hex.DecodeString(from.Hash)
	if err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != from.Hash {
		return "", fmt.Errorf("%q is not a SHA-256", from.Hash)
	}
	name := path.Base(from.Path)
	if name == "." || name == ".." || name == "/" {
		return "", fmt.Errorf("%q has no file name at its end", from.Path)
	}
	for {
		p.mu.Lock()
		if s.forgotten {
			p.mu.Unlock()
			return "", errForgotten
		}
		prog := p.byHash[from.Hash]
		switch {
		case prog == nil:
			prog = &program{
				hash: from.Hash, file: filepath.Join(p.dir, from.Hash, name),
				users: map[*Submission]bool{s: true}, ready: make(chan struct{}),
			}
			p.byHash[from.Hash] = prog
			s.program = prog
			p.mu.Unlock()
			p.makeCopy(prog, from.Path)
			return prog.file, prog.err
		case prog.removed != nil:
			p.mu.Unlock()
			<-prog.removed
		default:
			prog.users[s] = true
			s.program = prog
			p.mu.Unlock()
			<-prog.ready
			return prog.file, prog.err
		}
	}
}

// makeCopy makes the copy. After a failure it forgets the program, so that the next worker
// tries again. It removes a copy that no submission needs any more.
func (p *Store) makeCopy(prog *program, from string) {
	prog.err = p.copy(prog, from)
	p.mu.Lock()
	close(prog.ready)
	switch {
	case prog.err != nil:
		for s := range prog.users {
			s.program = nil
		}
		delete(p.byHash, prog.hash)
		p.mu.Unlock()
	case len(prog.users) == 0:
		p.remove(prog)
	default:
		p.mu.Unlock()
	}
}

// copy copies an executable and checks its hash.
func (p *Store) copy(prog *program, from string) (err error) {
	in, err := p.fs.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(prog.file), 0o700); err != nil {
		return err
	}
	part := prog.file + ".part"
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(filepath.Dir(prog.file)))
		}
	}()
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	hash := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, hash), in)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != prog.hash {
		return fmt.Errorf("%s has SHA-256 %s, want %s", from, got, prog.hash)
	}
	return os.Rename(part, prog.file)
}

// release ends a submission's use of its executable. The last submission removes the copy,
// which may wait for a disk.
func (p *Store) release(s *Submission) {
	p.mu.Lock()
	prog := s.program
	s.program = nil
	if prog == nil {
		p.mu.Unlock()
		return
	}
	delete(prog.users, s)
	copied := false
	select {
	case <-prog.ready:
		copied = true
	default: // makeCopy removes it when it has finished
	}
	if len(prog.users) > 0 || !copied || prog.removed != nil {
		p.mu.Unlock()
		return
	}
	p.remove(prog)
}

// remove removes a copy. It unlocks mu meanwhile.
func (p *Store) remove(prog *program) {
	prog.removed = make(chan struct{})
	p.mu.Unlock()
	// The next start removes remaining files.
	_ = os.RemoveAll(filepath.Dir(prog.file))
	p.mu.Lock()
	delete(p.byHash, prog.hash)
	close(prog.removed)
	p.mu.Unlock()
}
