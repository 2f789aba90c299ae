//go:build unix

package local

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/quernmr/quern/dfs"
)

// addOwner adds the owner, and the time of the last access.
func addOwner(a *dfs.Attributes, info fs.FileInfo) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		a.Owner, a.Group = users.of(s.Uid), groups.of(s.Gid)
		a.Accessed = accessed(s)
	}
}

// access asks the kernel whether the process has all bits of a mode.
func access(path string, mode uint32) error { return syscall.Access(path, mode) }

// giveOwner gives a file or link the owner and group of another one, and reports whether it has them.
func giveOwner(path string, info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && os.Lchown(path, int(s.Uid), int(s.Gid)) == nil
}
