package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/quernmr/quern/dfs"
)

// Confined returns f, where Open follows no link out of a directory directly below root: jobs can write into such
// directories, and the rights of this process may be greater than theirs. Below another directory, and in another
// file system than this one, it opens as f does. List refuses symbolic links below such a directory, and the directory itself if it
// is one below that. The other methods are those of f.
func Confined(f dfs.FS, root string) dfs.FS {
	path, err := Path(root)
	if err != nil {
		return f
	}
	return confined{f, strings.TrimSuffix(path, "/")}
}

type confined struct {
	dfs.FS
	root string
}

func (c confined) Open(name string) (dfs.File, error) {
	r, path, rest, err := c.open(name)
	if r == nil && err == nil {
		return c.FS.Open(name)
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := r.OpenFile(rest, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return opened(f, path)
}

// open opens the directory directly below the root that a name is in; nil: it is in none.
func (c confined) open(name string) (r *os.Root, path, rest string, err error) {
	path, err = Path(name)
	if err != nil {
		return nil, "", "", nil // of another file system
	}
	below, ok := strings.CutPrefix(path, c.root+"/")
	dir, rest, inDir := strings.Cut(below, "/")
	if !ok || !inDir {
		return nil, path, "", nil
	}
	r, err = os.OpenRoot(filepath.Join(c.root, dir))
	return r, path, rest, err
}

// List implements [dfs.FS].
func (c confined) List(name string) ([]dfs.Info, error) {
	r, path, rest, err := c.open(name)
	if r == nil && err == nil {
		return c.FS.List(name)
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := noLink(r, rest, path); err != nil {
		return nil, err
	}
	d, err := r.Open(rest)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	infos := []dfs.Info{}
	for _, e := range entries {
		at := filepath.Join(path, e.Name())
		info, err := e.Info() // of the entry, not of what it leads to
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			err = linkError(at)
		}
		if err != nil {
			return nil, err
		}
		infos = append(infos, describe(at, info))
	}
	return infos, nil
}

// noLink refuses a name that is a symbolic link.
func noLink(r *os.Root, rest, path string) error {
	info, err := r.Lstat(rest)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = linkError(path)
	}
	return err
}

func linkError(path string) error {
	return fmt.Errorf("list %s: it is a symbolic link, which a job may have made: links are not followed here", path)
}
