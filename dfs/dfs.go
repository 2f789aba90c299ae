// Package dfs is the interface to file systems. Quern reads and writes all data of jobs
// through an [FS]. Local disks, HDFS, and the in-memory file system for tests with faults
// give the same guarantees.
//
// # Names
//
// A file's name is a URL: file:///data/x, hdfs://nn:8020/x, mem://t/x. A name without a
// scheme is a local path. [Mux] selects the FS by scheme. An FS takes and returns whole
// URLs in the form of [Clean].
//
// # Guarantees of every FS
//
//  1. A name is visible at once to every later call.
//  2. [FS.Create] is exclusive, also between machines.
//  3. [FS.RenameFile] and [FS.RenameDir] never replace anything that has data:
//     see their comments. The commit of a job's output relies only on this.
//  4. Errors match the io/fs sentinels with errors.Is and name the path, once.
//  5. Data made durable by [Writer.Close], [FS.SyncDir] and [FS.MkdirAll] survives a
//     power cut. A rename is in both of its directories or in neither. Everything
//     else may be lost, and also everything written through [Volatile].
//  6. A new or removed entry sets the [Info] Modified of its directory to the present.
//
// In HDFS the NameNode's log makes every change of a directory durable. A file's content
// counts as durable when several DataNodes have it. They sync it to disk only if
// dfs.datanode.synconclose is set.
//
// An FS is safe for concurrent use; a File or Writer is not, except [File.ReadAt].
package dfs

import (
	"fmt"
	"io"
	"io/fs"
	"time"
)

// ErrActAs reports that a process may not act as another user in a file system, from any address.
var ErrActAs = fmt.Errorf("%w to act as another user", fs.ErrPermission)

// FS is a file system.
type FS interface {
	// Open opens a file for reading. It fails for a directory.
	Open(name string) (File, error)

	// Create makes a new file. It fails with fs.ErrExist if the name exists and with
	// fs.ErrNotExist if the parent is missing.
	Create(name string) (Writer, error)

	// Mkdir makes one directory. It fails with fs.ErrExist if the name exists and with
	// fs.ErrNotExist if the parent is missing.
	Mkdir(name string) error

	// MkdirAll makes a directory and its missing parents, durably. It may exist already.
	MkdirAll(name string) error

	// SyncDir makes all changes of a directory's entries durable: created, removed and
	// renamed names. Create and the renames do not, so that one SyncDir covers many.
	SyncDir(name string) error

	// Stat describes a file or directory, following symbolic links.
	Stat(name string) (Info, error)

	// List describes a directory's entries, sorted by name.
	List(name string) ([]Info, error)

	// RenameFile renames a file within the file system. If the target exists, as a file or
	// directory, it stays and the error is fs.ErrExist. A missing source is fs.ErrNotExist,
	// even if an earlier call did the rename: the caller must check the target.
	RenameFile(from, to string) error

	// RenameDir renames a directory within the file system. If the target directory is not
	// empty, it stays and the error is fs.ErrExist. An empty one may be replaced, so
	// callers that rely on this keep a file in every directory. A missing source is
	// fs.ErrNotExist.
	RenameDir(from, to string) error

	// Remove removes a file or an empty directory.
	Remove(name string) error

	// RemoveAll removes a tree. A missing one is not an error.
	RemoveAll(name string) error
}

// File reads a file.
type File interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Info() Info // when the file was opened
}

// Writer writes a new file. Close makes the content durable and visible; [FS.SyncDir] makes
// the file's name durable. If Close fails, the content may be lost: write it again, to
// another file. Abort and a crash may leave a partial file.
type Writer interface {
	io.Writer
	Close() error
	Abort() error
}

// Info describes a file or directory.
type Info struct {
	Name      string // whole URL
	Size      int64  // bytes, 0 for a directory
	Dir       bool
	Modified  time.Time
	BlockSize int64 // unit of placement, the default split size
}
