package streaming

import (
	"archive/tar"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/mapreduce/internal/program"
	"github.com/quernmr/quern/runtime"
)

// PackDirectory writes a local directory as a tar file, which has the same bytes each time. Symbolic links become what they
// lead to, which is in the directory.
func PackDirectory(files dfs.FS, dir string, to io.Writer) error {
	dir = filepath.Clean(dir)
	all, err := runtime.SideFiles(files, "/", "file://"+program.EscapeGlob(filepath.ToSlash(dir)))
	if err != nil {
		return err
	}
	w := tar.NewWriter(to)
	for _, info := range all {
		if err := packFile(w, strings.TrimPrefix(info.Name, "file://"), dir); err != nil {
			return err
		}
	}
	return w.Close()
}

func packFile(w *tar.Writer, name, dir string) error {
	below, err := filepath.Rel(dir, name)
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", name)
	}
	header := &tar.Header{Name: filepath.ToSlash(below), Typeflag: tar.TypeReg, Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: info.ModTime().Truncate(time.Second)}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
