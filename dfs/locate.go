package dfs

import (
	"errors"
	"time"
)

// ErrChanged reports a file that has changed since it was opened.
var ErrChanged = errors.New("file has changed since it was opened")

// Locator is implemented by an FS that knows the locations of blocks.
type Locator interface {
	// Locate returns a directory's entries, sorted by name, or one file, each with its
	// blocks. It requests all of a directory at once.
	Locate(name string) ([]Located, error)
}

// Located is a file with its blocks, or a directory, without any.
type Located struct {
	Info
	Blocks []Block // in the order of their offsets
}

// Block is a piece of a file that is stored as a unit.
type Block struct {
	Offset, Length int64
	Replicas       []Replica // empty: the block is unreadable now
}

// Replica is a copy of a block on one machine.
type Replica struct {
	Host string // as the machine calls itself
	Addr string // IP address and port, as in Read
	Rack string // "/default-rack", "/dc1/r7"
}

// Metered is implemented by a File that counts reads by machine.
type Metered interface {
	// Reads returns the reads so far from each machine. It may be called after Close, but
	// not during a read.
	Reads() []Read
}

// Read sums the reads from one machine.
type Read struct {
	Addr  string // as in Replica
	Bytes int64
	Time  time.Duration // for which the reader waited
}

// Locate returns a name's blocks. In a file system that does not know them, files have no
// blocks.
func Locate(f FS, name string) ([]Located, error) {
	if l, ok := f.(Locator); ok {
		return l.Locate(name)
	}
	info, err := f.Stat(name)
	if err != nil {
		return nil, err
	}
	infos := []Info{info}
	if info.Dir {
		if infos, err = f.List(name); err != nil {
			return nil, err
		}
	}
	located := make([]Located, len(infos))
	for i, info := range infos {
		located[i] = Located{Info: info}
	}
	return located, nil
}

// Locate calls Locate on the scheme's FS.
func (m Mux) Locate(name string) ([]Located, error) {
	f, err := m.fsFor(name)
	if err != nil {
		return nil, err
	}
	return Locate(f, name)
}
