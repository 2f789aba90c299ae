package streaming

import (
	"errors"
	"io"
	"os"
)

// place makes a file appear under a name, which commands can execute. A copy may be in that place already. Of a file
// elsewhere it makes a copy: a command may write into it, and Python looks for modules beside what a link leads to.
func place(path, name string) error {
	if _, err := os.Lstat(name); err == nil && path != name {
		return nil // a combiner has the files of its map
	}
	if path != name {
		return copyFile(path, name)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return os.Chmod(name, info.Mode().Perm()|0o111)
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
