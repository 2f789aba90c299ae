//go:build unix

package local

import (
	"io/fs"
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
