// Package dfs is the seam to file systems. Everything that Quern reads or writes
// for a job goes through an [FS], so that local disks, HDFS and the faulty
// in-memory one of the tests keep the same promises.
//
// # Names
//
// A file's name is a URL: file:///data/x, hdfs://nn:8020/x, mem://t/x. A name
// without a scheme is a local path. [Mux] picks the FS by scheme; an FS is given,
// and gives back, whole URLs in the cleaned form of [Clean].
//
// # What every FS promises
//
//  1. A name is visible at once to every later call.
//  2. [FS.Create] is exclusive, also between machines.
//  3. [FS.RenameFile] and [FS.RenameDir] never replace anything that holds data:
//     see their comments. The commit of a job's output rests on this alone.
//  4. Errors satisfy errors.Is with the io/fs sentinels and name the path, once.
//  5. What [Writer.Close], [FS.SyncDir] and [FS.MkdirAll] make durable survives a
//     power cut. A rename is in both of its directories or in neither. Nothing
//     else is sure to survive, and nothing is of what [Volatile] writes.
//
// In HDFS the NameNode's log makes every change of a directory durable. A file is
// durable when it is on several DataNodes; that these sync it too is an option of
// theirs (dfs.datanode.synconclose).
//
// An FS is safe for concurrent use; a File or Writer is not, except [File.ReadAt].
package dfs

import (
	"io"
	"time"
)

// FS is a file system.
type FS interface {
	// Open opens a file for reading. A directory is an error.
	Open(name string) (File, error)

	// Create makes a new file whose parent exists. It fails with fs.ErrExist when
	// the name is taken and with fs.ErrNotExist when the parent is missing.
	Create(name string) (Writer, error)

	// Mkdir makes one directory. It fails with fs.ErrExist when the name is taken
	// and with fs.ErrNotExist when the parent is missing.
	Mkdir(name string) error

	// MkdirAll makes a directory and its missing parents; it may exist already.
	// Those that it makes are durable.
	MkdirAll(name string) error

	// SyncDir makes a directory's entries durable: what was created in it, renamed
	// into it or out of it, and removed from it. It does so once for many, so what
	// publishes a file calls it, and neither Create nor a rename does.
	SyncDir(name string) error

	// Stat describes a file or directory, following symbolic links.
	Stat(name string) (Info, error)

	// List describes a directory's entries, sorted by name.
	List(name string) ([]Info, error)

	// RenameFile gives a file a new name in the same file system. A target that
	// exists, of whatever kind, is left as it is: fs.ErrExist. A missing source is
	// fs.ErrNotExist, also when an earlier call has done the work: the caller looks
	// at the target.
	RenameFile(from, to string) error

	// RenameDir gives a directory a new name in the same file system. A target
	// directory with anything in it is left as it is: fs.ErrExist. An empty target
	// directory may be replaced, so whoever relies on this keeps a file in every
	// directory. A missing source is fs.ErrNotExist.
	RenameDir(from, to string) error

	// Remove removes a file or an empty directory.
	Remove(name string) error

	// RemoveAll removes a tree; a missing one is no error.
	RemoveAll(name string) error
}

// File reads a file.
type File interface {
	io.Reader
	io.ReaderAt
	io.Closer
	Info() Info // as of the opening
}

// Writer writes a new file. Close makes the content durable and visible; the
// file's name is durable after [FS.SyncDir]. What a Close that fails has written may be
// lost: it is to be written again, to another file. A Writer abandoned by Abort, or
// by a crash, may leave a partial file behind.
type Writer interface {
	io.Writer
	Close() error
	Abort() error
}

// Info describes a file or directory.
type Info struct {
	Name      string // the whole URL
	Size      int64  // bytes, 0 for a directory
	Dir       bool
	Modified  time.Time
	BlockSize int64 // the unit of placement, which is the default split size
}
