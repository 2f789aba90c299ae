// Package program gets what submissions are run by to this machine: it reads their staged
// descriptions and copies their executables, each once, by hash. It says where they are
// and starts nothing.
//
// # Files
//
// Below [Dir] in the tracker's directory:
//
//	<sha-256>/<name>       a copy, made whole before it gets that name; mode 0700
//	<sha-256>/<name>.part  one that is being made
//
// What an earlier process of the tracker has left there is removed before a Store is made.
//
// # Invariants
//
//	P1  A file that Prepare names has the SHA-256 that the submission names, and is there
//	    until Forget of the last submission that names it.
//	P2  Unless a Store is for an embedded run, nothing outside the staging directory is
//	    copied, and nothing that is not named by its hash is run.
//	P3  At most one goroutine makes, or removes, the copy of a hash; those that want it wait.
//
// # Concurrency
//
// A Store and its submissions may be used by any goroutine. Prepare and what Forget gives
// back may wait for disks and file systems; the rest does not.
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

// Dir has a directory for each executable that submissions with jobs here are run by,
// named by its hash.
const Dir = "programs"

// Store has what submissions are run by: their staged descriptions, and copies
// of their executables, each made once. Make one with [New].
type Store struct {
	dir      string
	fs       dfs.FS
	embedded bool // programs may be anywhere, and are run where they are if they have no hash

	mu          sync.Mutex
	submissions map[string]*Submission // with jobs here, by staging URL
	byHash      map[string]*program
}

// Submission is a staged submission with jobs on this tracker.
type Submission struct {
	store   *Store
	staging string
	root    string // the cluster's staging directory

	// Guarded by store.mu.
	forgotten bool // it has no jobs here any more
	staged    *wire.Submission
	program   *program // nil: it is run in place
}

// program is a copy of an executable.
type program struct {
	hash  string
	file  string
	users map[*Submission]bool
	ready chan struct{} // closed when it is there, or err says why not
	err   error
	gone  chan struct{} // not nil: it is being removed; closed when it has been
}

// New makes a store in a tracker's directory.
func New(dir string, files dfs.FS, embedded bool) *Store {
	return &Store{
		dir: filepath.Join(dir, Dir), fs: files, embedded: embedded,
		submissions: make(map[string]*Submission), byHash: make(map[string]*program),
	}
}

// Submission finds a submission or begins it; root is the cluster's staging directory.
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

// Forget ends a submission that has no jobs here any more. What it gives back, unless
// nil, removes the executable if no other submission needs it.
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

// Prepare reads a staged submission, once as long as it has jobs here, and gets
// its executable if that is named by its hash.
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
		return nil, fmt.Errorf("submission %s names program %q without its SHA-256, and is no embedded run", s.staging, staged.Program.Path)
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
		return nil, fmt.Errorf("get program: %w", err)
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

// get is the path of a submission's executable: of the copy that is there, or is
// being made, or is made now.
func (p *Store) get(s *Submission, from *wire.Program) (string, error) {
	sum, err := hex.DecodeString(from.Hash)
	if err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != from.Hash {
		return "", fmt.Errorf("%q is no SHA-256", from.Hash)
	}
	name := path.Base(from.Path)
	if name == "." || name == ".." || name == "/" {
		return "", fmt.Errorf("%q ends in no file name", from.Path)
	}
	for {
		p.mu.Lock()
		if s.forgotten {
			p.mu.Unlock()
			return "", errForgotten
		}
		have := p.byHash[from.Hash]
		switch {
		case have == nil:
			have = &program{
				hash: from.Hash, file: filepath.Join(p.dir, from.Hash, name),
				users: map[*Submission]bool{s: true}, ready: make(chan struct{}),
			}
			p.byHash[from.Hash] = have
			s.program = have
			p.mu.Unlock()
			p.fill(have, from.Path)
			return have.file, have.err
		case have.gone != nil:
			p.mu.Unlock()
			<-have.gone
		default:
			have.users[s] = true
			s.program = have
			p.mu.Unlock()
			<-have.ready
			return have.file, have.err
		}
	}
}

// fill makes the copy. One that could not be made is forgotten, so that the next
// worker tries again; one that nobody needs any more is removed.
func (p *Store) fill(have *program, from string) {
	have.err = p.copy(have, from)
	p.mu.Lock()
	close(have.ready)
	switch {
	case have.err != nil:
		for s := range have.users {
			s.program = nil
		}
		delete(p.byHash, have.hash)
		p.mu.Unlock()
	case len(have.users) == 0:
		p.remove(have)
	default:
		p.mu.Unlock()
	}
}

// copy copies an executable, checking its hash on the way.
func (p *Store) copy(have *program, from string) (err error) {
	in, err := p.fs.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(have.file), 0o700); err != nil {
		return err
	}
	part := have.file + ".part"
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(filepath.Dir(have.file)))
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
	if got := hex.EncodeToString(hash.Sum(nil)); got != have.hash {
		return fmt.Errorf("%s has SHA-256 %s, it should have %s", from, got, have.hash)
	}
	return os.Rename(part, have.file)
}

// release lets go of a submission's executable, which is removed with its last
// user. It may wait for a disk.
func (p *Store) release(s *Submission) {
	p.mu.Lock()
	have := s.program
	s.program = nil
	if have == nil {
		p.mu.Unlock()
		return
	}
	delete(have.users, s)
	filled := false
	select {
	case <-have.ready:
		filled = true
	default: // whoever copies it will see
	}
	if len(have.users) > 0 || !filled || have.gone != nil {
		p.mu.Unlock()
		return
	}
	p.remove(have)
}

// remove removes a copy and unlocks mu meanwhile.
func (p *Store) remove(have *program) {
	have.gone = make(chan struct{})
	p.mu.Unlock()
	// What is left is removed by the next start, or overwritten.
	_ = os.RemoveAll(filepath.Dir(have.file))
	p.mu.Lock()
	delete(p.byHash, have.hash)
	close(have.gone)
	p.mu.Unlock()
}
