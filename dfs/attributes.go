package dfs

import (
	"errors"
	"fmt"
	"time"
)

// Attributes describes a file or directory with its owner and permissions.
type Attributes struct {
	Info
	Length       int64  // Size; of a local directory its own size
	Mode         uint32 // bits of Unix: 0755, 01777
	ACL          bool   // there are permissions beyond Mode
	Owner, Group string
	Replicas     int // 0 for a directory
	Accessed     time.Time
}

// Usage sums up a file, or a directory with all below it.
type Usage struct {
	Bytes, Stored      int64 // Stored counts each replica
	Files, Directories int64

	// Limits of the directory itself; negative: none.
	NameQuota, SpaceQuota int64

	// Parts of the sums that belong only to snapshots.
	SnapshotBytes, SnapshotStored, SnapshotFiles, SnapshotDirectories int64
}

// Space is the space of a file system, in bytes of replicas. Other data can use some, too.
type Space struct{ Capacity, Used, Free int64 }

// Attributed is implemented by file systems with owners and permissions.
type Attributed interface {
	FS

	// Attributes describes a file or directory, following symbolic links.
	Attributes(name string) (Attributes, error)

	// ListAttributes describes a directory's entries, sorted by name.
	ListAttributes(name string) ([]Attributes, error)

	SetMode(name string, mode uint32) error
	SetTimes(name string, modified, accessed time.Time) error

	// SetOwner changes owner and group; an empty one stays.
	SetOwner(name, owner, group string) error

	// Access returns fs.ErrPermission if the process may not read a file or directory, or write it.
	Access(name string, write bool) error

	Usage(name string) (Usage, error)
}

// AttributedOf returns the file system that has a name.
func AttributedOf(f FS, name string) (Attributed, error) {
	if m, ok := f.(Mux); ok {
		var err error
		if f, err = m.fsFor(name); err != nil {
			return nil, err
		}
	}
	if a, ok := f.(Attributed); ok {
		return a, nil
	}
	return nil, fmt.Errorf("%s: owners and permissions in this file system: %w", name, errors.ErrUnsupported)
}
