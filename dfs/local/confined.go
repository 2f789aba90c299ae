package local

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/quernmr/quern/dfs"
)

// Confined returns f, where Open follows no link out of a directory directly below root: jobs can write into such
// directories, and the rights of this process may be greater than theirs. Below another directory, and in another
// file system than this one, it opens as f does. The other methods are those of f.
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
	path, err := Path(name)
	if err != nil {
		return c.FS.Open(name)
	}
	below, ok := strings.CutPrefix(path, c.root+"/")
	dir, rest, inDir := strings.Cut(below, "/")
	if !ok || !inDir {
		return c.FS.Open(name)
	}
	at := filepath.Join(c.root, dir)
	r, err := os.OpenRoot(at)
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
