package streaming

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// place makes a file appear under a name, which commands can execute. A copy may be in that place
// already. Of a file elsewhere it makes a link, or a copy if the file is not executable.
func place(path, name string) error {
	if _, err := os.Lstat(name); err == nil && path != name {
		return nil // a combiner has the files of its map
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case path == name:
		return os.Chmod(name, info.Mode().Perm()|0o111)
	case info.Mode().Perm()&0o111 == 0o111:
		if err := os.Symlink(path, name); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	return copyFile(path, name)
}

func copyFile(path, name string) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o777)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close(), os.Chmod(name, 0o777))
}
