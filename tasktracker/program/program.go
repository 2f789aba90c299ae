// Package program copies the executables of submissions to this machine: it reads the staged
// submissions and copies their executables, each once, by hash. It starts nothing.
//
// # Copies
//
// On Linux a copy has no name that another process could open or replace. It is a sealed memfd:
// its content and length cannot change. All memfds of a tracker together have
// maxMemory bytes at most. Beyond that, and where the system forbids to execute a memfd
// (vm.memfd_noexec, or a security module such as SELinux), a copy is a file that is removed before it
// is written. The first copy tries out what the security modules permit. A program with more than
// jobfile.MaxSize bytes is not copied.
//
// A job that runs with this process's user can change such a file by its descriptor, once no worker executes it. So only
// submissions of one owner share a copy.
//
// Files below [Dir] in the tracker's directory:
//
//	<sha-256>.<number>.part  a copy in progress; on Linux only until it is open
//	<sha-256>.<number>       a complete copy, only on systems other than Linux
//
// The tracker removes copies of an earlier process before it makes a Store.
//
// # Invariants
//
//	P1  The submission that Prepare returns has the digest that was launched, and its executable
//	    has the SHA-256 that the submission names. Both were computed from the bytes that are used.
//	    The executable exists at least until Forget of the last submission with this hash.
//	P2  Except in embedded runs, only programs in the staging directory are copied, and
//	    only programs with a hash, of submissions with a digest, are run.
//	P3  At most one goroutine makes or removes the copy for a hash; others wait for it.
//	P4  A submission gets a copy only if its user can open the staged program that it names.
//
// # Concurrency
//
// Any goroutine may use a Store and its submissions. Prepare and the function that Forget
// returns may wait for disks and file systems; other methods do not.
package program

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/jobfile"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// Dir is the directory of executables, in a tracker's directory.
const Dir = "programs"

// maxMemory limits the bytes of all memfds of a tracker.
const maxMemory = 512 << 20

// maxUnused limits the bytes of the memfds that no submission uses.
const maxUnused = 128 << 20

// Store has staged submissions, and copies of their executables. Make one with [New].
type Store struct {
	dir      string
	fs       dfs.FS
	embedded bool // programs may be anywhere; without a hash they run in place
	check    func(f *os.File, name string) error
	memfds   func() bool // the system executes memfds

	mu          sync.Mutex
	memory      int64                  // bytes of all memfds
	submissions map[string]*Submission // by staging URL
	byHash      map[copyKey]*program
	copies      int        // number of the last one
	unused      []*program // memfds without a submission, the longest unused first
}

// Submission is a staged submission with jobs on this tracker.
type Submission struct {
	store   *Store
	staging string
	root    string // the cluster's staging directory

	// Guarded by store.mu.
	owner   string
	staged  *wire.Submission
	digest  []byte   // of staged
	program *program // nil: it runs in place
}

// copyKey names a copy.
type copyKey struct{ owner, hash string }

// program is a copy of an executable.
type program struct {
	copyKey
	number  int
	copy    executable
	users   map[*Submission]bool
	ready   chan struct{} // closed when it is copied, or err is set
	err     error
	memory  int64         // bytes that count in Store.memory
	removed chan struct{} // not nil: it is being removed; closed when it is removed
}

// New returns a store in a tracker's directory. Unless check is nil, it checks each copy; the name
// is for its errors. Permits reports whether the system permits to execute a file.
func New(dir string, files dfs.FS, embedded bool, check func(f *os.File, name string) error, permits func(*os.File) bool) *Store {
	return &Store{
		dir: filepath.Join(dir, Dir), fs: files, embedded: embedded, check: check, memfds: sync.OnceValue(func() bool { return executesMemfds(permits) }),
		submissions: make(map[string]*Submission), byHash: make(map[copyKey]*program),
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

// Forget forgets a submission, which has no jobs here any more, and no worker for which Prepare runs. The returned
// function, unless nil, removes the executable if no other submission needs it.
func (p *Store) Forget(staging string) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.submissions[staging]
	if s == nil {
		return nil
	}
	delete(p.submissions, staging)
	return func() { p.release(s) }
}

// Prepare returns the staged submission with a digest, and an open local copy of its executable,
// which the caller closes. The file is nil if the program is to be run from Program.Path. The first
// call reads the submission and makes the copy. If a file has another digest, the error is a
// [*wire.DigestError].
func (s *Submission) Prepare(digest []byte) (*wire.Submission, *os.File, error) {
	return s.PrepareFrom(s.store.fs, digest)
}

// PrepareFrom is Prepare with the staged files as another user of the file system sees them. All calls
// for a submission have the same user.
func (s *Submission) PrepareFrom(files dfs.FS, digest []byte) (*wire.Submission, *os.File, error) {
	return s.PrepareFor("", files, digest)
}

// PrepareFor is PrepareFrom for the submission of an owner, who gets no copy of another owner.
func (s *Submission) PrepareFor(owner string, files dfs.FS, digest []byte) (*wire.Submission, *os.File, error) {
	p := s.store
	p.mu.Lock()
	if s.program == nil {
		s.owner = owner
	}
	staged := s.staged
	known := staged != nil && bytes.Equal(s.digest, digest)
	p.mu.Unlock()
	if !p.embedded && len(digest) != sha256.Size {
		return nil, nil, fmt.Errorf("submission %s comes without its SHA-256, from a job tracker or client of an older version: submit it again", s.staging)
	}
	if !known {
		var err error
		if staged, err = readSubmission(files, s.staging, digest); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case p.embedded:
	case staged.Program.Hash == "":
		return nil, nil, fmt.Errorf("submission %s names program %q without its SHA-256, which only embedded runs may do", s.staging, staged.Program.Path)
	case !core.Within(s.root, staged.Program.Path):
		return nil, nil, fmt.Errorf("submission %s names program %q, which is not in the staging directory %s", s.staging, staged.Program.Path, s.root)
	}
	local, exe := staged, (*os.File)(nil)
	if staged.Program.Hash != "" {
		var err error
		if local, exe, err = p.get(s, staged, files); err != nil {
			return nil, nil, fmt.Errorf("copy program: %w", err)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.staged, s.digest = staged, digest
	return local, exe, nil
}

func readSubmission(files dfs.FS, staging string, digest []byte) (*wire.Submission, error) {
	f, err := files.Open(dfs.Join(staging, wire.StagedSubmission))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = files.Open(dfs.Join(staging, wire.StagedStopped))
	}
	if err != nil {
		return nil, fmt.Errorf("read submission: %w", err)
	}
	defer f.Close()
	sub, err := wire.ReadStaged(f, f.Info().Name, digest)
	if err != nil {
		return nil, err
	}
	sub.Staging = staging
	return sub, nil
}

// get returns a submission and the local copy of its program. It makes the copy, or waits for another
// goroutine to make it.
func (p *Store) get(s *Submission, staged *wire.Submission, files dfs.FS) (*wire.Submission, *os.File, error) {
	from := &staged.Program
	sum, err := hex.DecodeString(from.Hash)
	if err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != from.Hash {
		return nil, nil, fmt.Errorf("%q is not a SHA-256", from.Hash)
	}
	if name := path.Base(from.Path); name == "." || name == ".." || name == "/" {
		return nil, nil, fmt.Errorf("%q has no file name at its end", from.Path)
	}
	var in dfs.File
	for {
		p.mu.Lock()
		if in == nil && s.program == nil {
			p.mu.Unlock()
			// Also if another user's submission has the copy already: who knows its hash may not read it.
			if in, err = files.Open(from.Path); err != nil {
				return nil, nil, err
			}
			defer in.Close()
			continue
		}
		key := copyKey{s.owner, from.Hash}
		prog := p.byHash[key]
		if prog != nil && prog.removed != nil {
			p.mu.Unlock()
			<-prog.removed
			continue
		}
		if s.program != nil && s.program.hash != from.Hash {
			p.mu.Unlock()
			return nil, nil, fmt.Errorf("submission %s names program %s, but another submission with this directory has %s", s.staging, from.Hash, s.program.hash)
		}
		p.unused = slices.DeleteFunc(p.unused, func(u *program) bool { return u == prog })
		isNew := prog == nil
		if isNew {
			p.copies++
			prog = &program{copyKey: key, number: p.copies, users: make(map[*Submission]bool), ready: make(chan struct{})}
			p.byHash[key] = prog
		}
		prog.users[s] = true
		s.program = prog
		p.mu.Unlock()
		if isNew {
			p.makeCopy(prog, in, from.Path)
		}
		<-prog.ready
		return open(prog, staged)
	}
}

// open opens a copy again, so that it can be used until the caller closes it.
func open(prog *program, staged *wire.Submission) (*wire.Submission, *os.File, error) {
	if prog.err != nil {
		return nil, nil, prog.err
	}
	local := *staged
	exe, name, err := prog.copy.open()
	if name != "" {
		local.Program.Path = name
	}
	return &local, exe, err
}

// makeCopy makes the copy. After a failure it forgets the program, so that the next worker
// tries again.
func (p *Store) makeCopy(prog *program, in dfs.File, from string) {
	prog.err = p.copy(prog, in, from)
	p.mu.Lock()
	defer p.mu.Unlock()
	close(prog.ready)
	if prog.err == nil {
		return
	}
	for s := range prog.users {
		s.program = nil
	}
	delete(p.byHash, prog.copyKey)
	p.memory -= prog.memory
}

// copy copies an executable, and checks its hash while it does so.
func (p *Store) copy(prog *program, in dfs.File, from string) (err error) {
	size := in.Info().Size
	if err := jobfile.CheckSize(from, size); err != nil {
		return err
	}
	permitted := p.memfds()
	p.limitUnused(max(maxMemory-size, 0), maxUnused)
	p.mu.Lock()
	inMemory := permitted && p.memory+size <= maxMemory
	if inMemory {
		p.memory += size
		prog.memory = size
	}
	p.mu.Unlock()
	out, err := newCopy(p.dir, fmt.Sprintf("%s.%d", prog.hash, prog.number), inMemory)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, out.remove())
		}
	}()
	hash := sha256.New()
	// A longer file has another hash, and takes no more memory than was counted.
	if _, err = io.Copy(io.MultiWriter(out.file, hash), io.LimitReader(in, size+1)); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	if got := hash.Sum(nil); hex.EncodeToString(got) != prog.hash {
		want, _ := hex.DecodeString(prog.hash) // get has checked it
		return &wire.DigestError{File: from, Got: got, Want: want}
	}
	if err = out.seal(); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	if p.check != nil {
		if err = p.check(out.file, from); err != nil {
			return err
		}
	}
	prog.copy = out
	return nil
}

// release ends a submission's use of its executable. The last submission removes the copy, which may
// wait for a disk, or leaves a memfd unused.
func (p *Store) release(s *Submission) {
	p.mu.Lock()
	prog := s.program
	s.program = nil
	if prog == nil {
		p.mu.Unlock()
		return
	}
	delete(prog.users, s)
	if len(prog.users) > 0 {
		p.mu.Unlock()
		return
	}
	if prog.memory > 0 {
		p.unused = append(p.unused, prog)
		p.mu.Unlock()
		p.limitUnused(maxMemory, maxUnused)
		return
	}
	p.remove(prog)
}

// limitUnused removes unused memfds, until all memfds have at most the first number of bytes, and
// the unused ones at most the second.
func (p *Store) limitUnused(all, unused int64) {
	for {
		p.mu.Lock()
		var kept int64
		for _, prog := range p.unused {
			kept += prog.memory
		}
		if kept == 0 || p.memory <= all && kept <= unused {
			p.mu.Unlock()
			return
		}
		oldest := p.unused[0]
		p.unused = p.unused[1:]
		p.remove(oldest)
	}
}

// remove removes a copy. It unlocks mu meanwhile.
func (p *Store) remove(prog *program) {
	prog.removed = make(chan struct{})
	p.mu.Unlock()
	// The next start removes remaining files.
	_ = prog.copy.remove()
	p.mu.Lock()
	p.memory -= prog.memory
	delete(p.byHash, prog.copyKey)
	close(prog.removed)
	p.mu.Unlock()
}
