package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// refusal is the error for a directory or file that must not be used. It matches
// fs.ErrPermission.
type refusal string

func (r refusal) Error() string { return string(r) }

func (r refusal) Is(target error) bool { return target == fs.ErrPermission }

// maxLinks bounds the links on a path.
const maxLinks = 20

// checkPath checks a directory and all directories above it, from the top down. If create
// is set, it makes missing directories.
func checkPath(dir string, create bool) (fs.FileInfo, error) {
	if !filepath.IsAbs(dir) {
		return nil, errors.New("its path is not absolute")
	}
	at, rest := "/", split(dir)
	w := pathState{onlyRoot: true}
	for links := 0; ; {
		info, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) && create {
			if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
			info, err = os.Lstat(at)
		}
		if err != nil {
			return nil, err
		}
		if info.Mode().Type() == fs.ModeSymlink && w.mayFollow(info) && len(rest) > 0 && links < maxLinks {
			target, err := os.Readlink(at)
			if err != nil {
				return nil, err
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(at), target)
			}
			links++
			at, rest, w = "/", append(split(target), rest...), pathState{onlyRoot: true}
			continue
		}
		if err := w.check(at, info, len(rest) == 0); err != nil {
			return nil, err
		}
		if len(rest) == 0 {
			return info, nil
		}
		at, rest = filepath.Join(at, rest[0]), rest[1:]
	}
}

func split(dir string) []string {
	return strings.FieldsFunc(filepath.Clean(dir), func(r rune) bool { return r == filepath.Separator })
}

// pathState describes the directories of a path that were checked so far.
type pathState struct {
	onlyRoot bool // only root can write to all of them
	private  bool // other users cannot enter one of them
}

// mayFollow reports whether only root can have made a link.
func (w *pathState) mayFollow(link fs.FileInfo) bool { return w.onlyRoot && owner(link) == 0 }

// check checks the next directory of the path. The last one is the data directory itself.
func (w *pathState) check(at string, info fs.FileInfo, last bool) error {
	mode := info.Mode()
	othersWrite := mode.Perm()&0o022 != 0 && !w.private
	switch {
	case mode.Type() == fs.ModeSymlink:
		return refusal(fmt.Sprintf("%s is a symbolic link: name the directory that it leads to", at))
	case !mode.IsDir():
		return &fs.PathError{Op: "open", Path: at, Err: syscall.ENOTDIR}
	case last && owner(info) != os.Geteuid():
		return refusal(fmt.Sprintf("it belongs to user %d, but this process runs as user %d: chown it, or name another directory", owner(info), os.Geteuid()))
	case !trusted(info):
		return refusal(fmt.Sprintf("%s belongs to user %d, who could replace the files in it: only root and user %d may own the directories above",
			at, owner(info), os.Geteuid()))
	case othersWrite && (last || mode&fs.ModeSticky == 0):
		return refusal(fmt.Sprintf("other users can write to %s (%v): chmod go-w it, or name another directory", at, mode))
	}
	w.onlyRoot = w.onlyRoot && owner(info) == 0 && mode.Perm()&0o022 == 0
	w.private = w.private || owner(info) == os.Geteuid() && mode.Perm()&0o011 == 0
	return nil
}

// trusted reports whether a file belongs to root or to the user of this process.
func trusted(info fs.FileInfo) bool { return owner(info) == 0 || owner(info) == os.Geteuid() }

// owner returns the user id of a file, or -1 if it is unknown.
func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

func typeText(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	}
	return "something else"
}
