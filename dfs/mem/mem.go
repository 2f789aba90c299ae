// Package mem is a file system in memory for tests, for mem:// URLs. It gives only the
// guarantees of package dfs, so that tests find code that relies on more. Tests can inject
// faults.
//
// If package dfs allows several behaviours, it has the worst: a rename of a directory
// replaces an empty one, a file is visible from its creation, and Abort leaves a partial
// file.
//
// # Faults
//
// [FS.SetFaults] takes one fault per line; empty lines and # comments are ignored:
//
//	OPERATION PATTERN [error=NAME] [after=N] [times=N] [torn=BYTES] [done]
//
//	create     /out/*   error=enospc after=3    the fourth and all later ones fail
//	renamedir  /out/**  done times=1            one rename has its effect, but reports an error
//	write      /out/*   torn=10                 10 bytes of the write are stored, then it fails
//	any        **       after=17                from the 18th call on all calls fail
//
// OPERATION is open, read, create, write, close, mkdir, mkdirall, syncdir, stat, list,
// renamefile, renamedir, remove, removeall, rename for both renames, or any.
// PATTERN is matched against the path without scheme and authority, as by path.Match; X/**
// is X and all below it, ** is everything. A rename matches by either of its paths. NAME is
// eio (the default), enospc, erofs, eacces or timeout. A call counts in every line that it
// matches; the first line with a fault for it decides.
//
// To simulate the death of a process, use after=N without times. A power cut loses more:
// see [FS.PowerCut].
//
// An FS is safe for concurrent use; one lock guards it.
package mem

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/quernmr/quern/dfs"
)

// FS is a file system in memory.
type FS struct {
	blockSize int64

	mu     sync.Mutex
	root   *node
	clock  int64 // one second per change, for Modified
	calls  int
	faults []*fault

	tracked bool     // durability is tracked
	changes []change // changes of directories that are not durable yet, oldest first
}

type node struct {
	entries  map[string]*node // of a directory
	data     []byte           // of a file; only ever appended to
	modified int64

	durable     map[string]*node // durable entries
	durableSize int              // durable bytes of data
}

var _ dfs.FS = (*FS)(nil)

// New makes an empty FS with blocks of blockSize bytes.
func New(blockSize int64) *FS {
	return &FS{blockSize: blockSize, root: &node{entries: map[string]*node{}}}
}

// Calls returns the number of operations so far, including reads and writes of open files.
func (f *FS) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// begin locks, counts the call, and returns the fault that affects it, if any.
func (f *FS) begin(op string, names ...string) *effect {
	f.mu.Lock()
	f.calls++
	return f.faultFor(op, names)
}

// split returns the elements of a name's path, without scheme and authority.
func split(name string) []string {
	if _, rest, ok := strings.Cut(name, "://"); ok {
		_, name, _ = strings.Cut(rest, "/")
	}
	return strings.FieldsFunc(path.Clean("/"+name), func(r rune) bool { return r == '/' })
}

func failure(op, name string, err error, more ...string) error {
	if len(more) > 0 {
		return &os.LinkError{Op: op, Old: name, New: more[0], Err: err}
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// find returns the node of a name, or an error.
func (f *FS) find(name string) (*node, error) {
	n := f.root
	for _, e := range split(name) {
		if n.entries == nil {
			return nil, syscall.ENOTDIR
		}
		if n = n.entries[e]; n == nil {
			return nil, fs.ErrNotExist
		}
	}
	return n, nil
}

// parent finds the directory of a name. The name itself need not exist.
func (f *FS) parent(name string) (dir *node, base string, err error) {
	elements := split(name)
	if len(elements) == 0 {
		return nil, "", fs.ErrExist // the root
	}
	last := len(elements) - 1
	dir, err = f.find("/" + strings.Join(elements[:last], "/"))
	if err == nil && dir.entries == nil {
		err = syscall.ENOTDIR
	}
	return dir, elements[last], err
}

func (f *FS) changed(n *node) {
	f.clock++
	n.modified = f.clock
}

func (f *FS) describe(name string, n *node) dfs.Info {
	return dfs.Info{Name: name, Size: int64(len(n.data)), Dir: n.entries != nil,
		Modified: time.Unix(n.modified, 0), BlockSize: f.blockSize}
}

// call runs an operation with its faults.
func (f *FS) call(op, name string, do func() error, target ...string) error {
	s := f.begin(op, append([]string{name}, target...)...)
	defer f.mu.Unlock()
	var err error
	if s == nil || s.done {
		err = do()
	}
	if err == nil && s != nil {
		err = s.err
	}
	if err != nil {
		return failure(op, name, err, target...)
	}
	return nil
}

func (f *FS) Open(name string) (dfs.File, error) {
	var opened *file
	err := f.call("open", name, func() error {
		n, err := f.find(name)
		if err != nil {
			return err
		}
		if n.entries != nil {
			return syscall.EISDIR
		}
		opened = &file{fs: f, data: n.data, info: f.describe(name, n)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return opened, nil
}

func (f *FS) Create(name string) (dfs.Writer, error) {
	created := &node{data: []byte{}}
	err := f.call("create", name, func() error { return f.add(name, created) })
	if err != nil {
		return nil, err
	}
	return &writer{fs: f, name: name, node: created, durable: true}, nil
}

func (f *FS) Mkdir(name string) error {
	return f.call("mkdir", name, func() error { return f.add(name, &node{entries: map[string]*node{}}) })
}

func (f *FS) add(name string, n *node) error {
	dir, base, err := f.parent(name)
	if err != nil {
		return err
	}
	if dir.entries[base] != nil {
		return fs.ErrExist
	}
	dir.entries[base] = n
	f.changed(n)
	f.changed(dir)
	f.track(entry{dir, base, n})
	return nil
}

func (f *FS) MkdirAll(name string) error { return f.mkdirAll(name, true) }

func (f *FS) mkdirAll(name string, durable bool) error {
	return f.call("mkdirall", name, func() error {
		n := f.root
		for _, e := range split(name) {
			if n.entries == nil {
				return syscall.ENOTDIR
			}
			next := n.entries[e]
			if next == nil {
				next = &node{entries: map[string]*node{}}
				n.entries[e] = next
				f.changed(next)
				f.changed(n)
				f.track(entry{n, e, next})
				if durable {
					f.sync(n)
				}
			}
			n = next
		}
		if n.entries == nil {
			return syscall.ENOTDIR
		}
		return nil
	})
}

func (f *FS) Stat(name string) (info dfs.Info, err error) {
	err = f.call("stat", name, func() error {
		n, err := f.find(name)
		if err == nil {
			info = f.describe(name, n)
		}
		return err
	})
	return info, err
}

func (f *FS) List(name string) (infos []dfs.Info, err error) {
	err = f.call("list", name, func() error {
		n, err := f.find(name)
		if err != nil {
			return err
		}
		if n.entries == nil {
			return syscall.ENOTDIR
		}
		for base, entry := range n.entries {
			infos = append(infos, f.describe(dfs.Join(name, base), entry))
		}
		slices.SortFunc(infos, func(a, b dfs.Info) int { return strings.Compare(a.Name, b.Name) })
		return nil
	})
	return infos, err
}

func (f *FS) RenameFile(from, to string) error {
	return f.call("renamefile", from, func() error {
		return f.move(from, to, func(source, target *node) error {
			if source.entries != nil {
				return syscall.EISDIR
			}
			if target != nil {
				return fs.ErrExist
			}
			return nil
		})
	}, to)
}

func (f *FS) RenameDir(from, to string) error {
	return f.call("renamedir", from, func() error {
		return f.move(from, to, func(source, target *node) error {
			if source.entries == nil {
				return syscall.ENOTDIR
			}
			if target != nil && (target.entries == nil || len(target.entries) > 0) {
				return fs.ErrExist
			}
			return nil
		})
	}, to)
}

// move renames unless check returns an error. target is nil if the name does not exist.
func (f *FS) move(from, to string, check func(source, target *node) error) error {
	source, err := f.find(from)
	if err != nil {
		return err
	}
	a, b := split(from), split(to)
	if len(a) <= len(b) && slices.Equal(a, b[:len(a)]) {
		return fs.ErrInvalid // onto or below itself
	}
	dir, base, err := f.parent(to)
	if err != nil {
		return err
	}
	if err := check(source, dir.entries[base]); err != nil {
		return err
	}
	old, oldBase, err := f.parent(from)
	if err != nil {
		return err
	}
	delete(old.entries, oldBase)
	dir.entries[base] = source
	f.changed(source)
	f.changed(old)
	f.changed(dir)
	f.track(entry{old, oldBase, nil}, entry{dir, base, source})
	return nil
}

func (f *FS) Remove(name string) error {
	return f.call("remove", name, func() error {
		dir, base, err := f.parent(name)
		if err != nil {
			return err
		}
		n := dir.entries[base]
		if n == nil {
			return fs.ErrNotExist
		}
		if len(n.entries) > 0 {
			return syscall.ENOTEMPTY
		}
		delete(dir.entries, base)
		f.changed(dir)
		f.track(entry{dir, base, nil})
		return nil
	})
}

func (f *FS) RemoveAll(name string) error {
	return f.call("removeall", name, func() error {
		dir, base, err := f.parent(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && dir.entries[base] != nil {
			f.trackTree(dir, base)
			delete(dir.entries, base)
			f.changed(dir)
		}
		return err
	})
}

type file struct {
	fs   *FS
	data []byte // as of Open
	at   int64
	info dfs.Info
}

func (r *file) Info() dfs.Info { return r.info }
func (r *file) Close() error   { return nil }

func (r *file) Read(p []byte) (int, error) {
	n, err := r.ReadAt(p, r.at)
	r.at += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

func (r *file) ReadAt(p []byte, off int64) (int, error) {
	s := r.fs.begin("read", r.info.Name)
	defer r.fs.mu.Unlock()
	if s != nil {
		return 0, failure("read", r.info.Name, s.err)
	}
	if off < 0 {
		return 0, failure("read", r.info.Name, fs.ErrInvalid)
	}
	if len(p) == 0 {
		return 0, nil
	}
	n := copy(p, r.data[min(off, int64(len(r.data))):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

type writer struct {
	fs      *FS
	name    string
	node    *node
	durable bool // Close makes the data durable
	closed  bool
}

func (w *writer) Write(p []byte) (int, error) {
	s := w.fs.begin("write", w.name)
	defer w.fs.mu.Unlock()
	if w.closed {
		return 0, failure("write", w.name, fs.ErrClosed)
	}
	n := len(p)
	if s != nil && !s.done {
		n = min(n, s.torn)
	}
	w.node.data = append(w.node.data, p[:n]...)
	w.fs.changed(w.node)
	if s != nil {
		return n, failure("write", w.name, s.err)
	}
	return n, nil
}

func (w *writer) Close() error {
	s := w.fs.begin("close", w.name)
	defer w.fs.mu.Unlock()
	if w.closed {
		return failure("close", w.name, fs.ErrClosed)
	}
	w.closed = true
	if s != nil {
		return failure("close", w.name, s.err)
	}
	if w.durable {
		w.node.durableSize = len(w.node.data)
	}
	return nil
}

func (w *writer) Abort() error { return w.Close() }
