// Package local is the file system of this machine, for file:// URLs and plain paths.
//
// # Durability
//
// Close and SyncDir call fsync, as does MkdirAll for the directories that it changes. After
// a failed fsync of a file, the kernel may have dropped its content, and a second fsync
// would not report it. So Close closes the file, and the caller must write the content
// again, to another file. A directory may be synced again, because a failed journal stays
// failed.
//
// # Renames
//
// If the kernel has a rename that refuses an existing target, the FS uses it. Otherwise:
//
//   - RenameFile links the file to its new name, which also refuses an existing target,
//     and then removes the old name. If both names are links to one file, it completes an
//     interrupted rename.
//   - RenameDir renames normally: the kernel refuses a target that is not empty.
//
// An FS has no state and is safe for concurrent use.
package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/quernmr/quern/dfs"
)

// BlockSize is the [dfs.Info.BlockSize] of every file. The output of a map that reads one
// block fits into the default sort memory, and a file of 100 MB keeps two cores busy.
// Smaller blocks made maps with a combiner slower.
const BlockSize = 64 << 20

// FS is the local file system. The zero value is a volatile one.
type FS struct {
	private bool
	allowed fs.FileMode          // permission bits of new entries, whatever the umask; 0: those that the umask leaves
	sync    func(*os.File) error // nil: no sync
}

var _ dfs.FS = FS{}

// New makes an FS.
func New() FS { return FS{sync: (*os.File).Sync} }

// Private makes directories of mode 0700 and files of 0600; see dfs.Private.
func (f FS) Private() dfs.FS {
	f.private = true
	return f
}

// Creating gives new entries the permissions of c, whatever the umask; see dfs.Creating.
func (f FS) Creating(c dfs.Creation) dfs.FS {
	f.allowed = fs.FileMode(c.Allowed)
	return f
}

// Volatile syncs nothing; see dfs.Volatile.
func (f FS) Volatile() dfs.FS {
	f.sync = nil
	return f
}

// fileMode and dirMode are modes for open(2) and mkdir(2), which apply the umask.
func (f FS) fileMode() fs.FileMode {
	if f.private {
		return 0o600
	}
	return 0o666
}

func (f FS) dirMode() fs.FileMode {
	if f.private {
		return 0o700
	}
	return 0o777
}

// Path returns the local path of a file: URL or of a plain path. An authority other than
// localhost is an error.
func Path(name string) (string, error) {
	clean, err := dfs.Clean(name)
	if err != nil {
		return "", err
	}
	rest, ok := strings.CutPrefix(clean, "file://")
	if !ok {
		return "", fmt.Errorf("%s is not a local path: %w", name, fs.ErrInvalid)
	}
	host, _, _ := strings.Cut(rest, "/")
	if host != "" && host != "localhost" {
		return "", fmt.Errorf("local path %q names a host: %w", name, fs.ErrInvalid)
	}
	return strings.TrimPrefix(rest, host), nil
}

func url(path string) string { return "file://" + filepath.ToSlash(path) }

func (FS) Open(name string) (dfs.File, error) {
	path, err := Path(name)
	if err != nil {
		return nil, err
	}
	// Without O_NONBLOCK, opening a named pipe waits for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return opened(f, path)
}

// opened returns an open file, unless it is not a regular one.
func opened(f *os.File, path string) (dfs.File, error) {
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	} else if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &file{File: f, info: describe(path, info)}, nil
}

type file struct {
	*os.File
	info dfs.Info
}

func (f *file) Info() dfs.Info { return f.info }

func (f FS) Create(name string) (dfs.Writer, error) {
	path, err := Path(name)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.fileMode())
	if err != nil {
		return nil, err
	}
	w := &writer{File: file, sync: f.sync}
	if f.allowed != 0 {
		if err := file.Chmod(f.fileMode() & f.allowed); err != nil {
			return nil, errors.Join(err, w.Abort())
		}
	}
	return w, nil
}

type writer struct {
	*os.File
	sync func(*os.File) error // as in FS
}

func (w *writer) Close() error {
	if w.sync == nil {
		return w.File.Close()
	}
	if err := w.sync(w.File); err != nil {
		return errors.Join(err, w.File.Close())
	}
	return w.File.Close()
}

// Abort removes the file: no reader can have used it.
func (w *writer) Abort() error {
	return errors.Join(w.File.Close(), os.Remove(w.File.Name()))
}

func (f FS) Mkdir(name string) error {
	return at(name, func(p string) error {
		if err := os.Mkdir(p, f.dirMode()); err != nil {
			return err
		}
		return f.allow(p)
	})
}

func (f FS) MkdirAll(name string) error { return at(name, f.mkdirAll) }

// allow gives a new directory its permissions.
func (f FS) allow(path string) error {
	if f.allowed == 0 {
		return nil
	}
	return os.Chmod(path, f.dirMode()&f.allowed)
}

func (f FS) mkdirAll(path string) error {
	var made []string // the innermost first
	for dir := path; (f.sync != nil || f.allowed != 0) && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		made = append(made, dir)
	}
	if err := os.MkdirAll(path, f.dirMode()); err != nil {
		return err
	}
	for _, dir := range made {
		if err := errors.Join(f.allow(dir), f.syncDir(filepath.Dir(dir))); err != nil {
			return err
		}
	}
	return nil
}

func (f FS) SyncDir(name string) error { return at(name, f.syncDir) }

func (f FS) syncDir(path string) error {
	if f.sync == nil {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	err = f.sync(dir)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil // the file system has no fsync for directories
	}
	return err
}

func (FS) Remove(name string) error    { return at(name, os.Remove) }
func (FS) RemoveAll(name string) error { return at(name, os.RemoveAll) }

func at(name string, op func(path string) error) error {
	path, err := Path(name)
	if err != nil {
		return err
	}
	return op(path)
}

func (FS) Stat(name string) (dfs.Info, error) {
	path, err := Path(name)
	if err != nil {
		return dfs.Info{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return dfs.Info{}, err
	}
	return describe(path, info), nil
}

// Real resolves all symbolic links of a name.
func (FS) Real(name string) (string, error) {
	path, err := Path(name)
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	return url(path), nil
}

// List lists a dangling link as a file, so that opening it gives an error.
func (FS) List(name string) ([]dfs.Info, error) {
	infos := []dfs.Info{}
	err := list(name, func(path string, info fs.FileInfo) { infos = append(infos, describe(path, info)) })
	if err != nil {
		return nil, err
	}
	return infos, nil
}

func describe(path string, info fs.FileInfo) dfs.Info {
	d := dfs.Info{Name: url(path), Dir: info.IsDir(), Modified: info.ModTime(), BlockSize: BlockSize}
	if !d.Dir {
		d.Size = info.Size()
	}
	return d
}

func (FS) RenameFile(from, to string) error {
	return rename(from, to, func(from, to string) error {
		err := renameNoReplace(from, to)
		if errors.Is(err, errors.ErrUnsupported) {
			err = renameByLink(from, to)
		}
		return err
	})
}

func (FS) RenameDir(from, to string) error {
	return rename(from, to, func(from, to string) error {
		err := renameNoReplace(from, to)
		if !errors.Is(err, errors.ErrUnsupported) {
			return err
		}
		info, err := os.Lstat(from)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return syscall.ENOTDIR // a plain rename would replace a file
		}
		return os.Rename(from, to)
	})
}

// rename names both paths in op's error.
func rename(from, to string, op func(from, to string) error) error {
	source, target, err := paths(from, to)
	if err != nil {
		return err
	}
	if err = op(source, target); err == nil {
		return nil
	}
	var number syscall.Errno
	if errors.As(err, &number) {
		err = number
	}
	return &os.LinkError{Op: "rename", Old: source, New: target, Err: err}
}

func paths(from, to string) (source, target string, err error) {
	if source, err = Path(from); err == nil {
		target, err = Path(to)
	}
	return source, target, err
}

// renameByLink renames a file if the kernel's rename would replace a target.
func renameByLink(from, to string) error {
	err := os.Link(from, to)
	if errors.Is(err, fs.ErrExist) && sameFile(from, to) {
		err = nil
	}
	if err != nil {
		return err
	}
	return os.Remove(from)
}

func sameFile(a, b string) bool {
	x, errA := os.Lstat(a)
	y, errB := os.Lstat(b)
	return a != b && errA == nil && errB == nil && os.SameFile(x, y)
}
