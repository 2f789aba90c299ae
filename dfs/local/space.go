//go:build linux || darwin

package local

import (
	"io/fs"
	"syscall"

	"github.com/quernmr/quern/dfs"
)

// Space returns the space of the disk that has a name.
func (FS) Space(name string) (s dfs.Space, err error) {
	err = at(name, func(path string) error {
		var st syscall.Statfs_t
		if err := syscall.Statfs(path, &st); err != nil {
			return &fs.PathError{Op: "statfs", Path: path, Err: err}
		}
		size := uint64(st.Bsize)
		s = dfs.Space{Capacity: int64(st.Blocks * size), Used: int64((st.Blocks - st.Bfree) * size), Free: int64(st.Bfree * size)}
		return nil
	})
	return s, err
}
