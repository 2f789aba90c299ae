package dfs

import (
	"errors"
	"time"
)

// ErrChanged reports a file that is not what it was when it was opened.
var ErrChanged = errors.New("file has changed since it was opened")

// Locator is what an FS is besides when it knows where blocks are kept.
type Locator interface {
	// Locate describes a directory's entries, sorted by name, or one file, each
	// with its blocks. It asks for all of a directory at once.
	Locate(name string) ([]Located, error)
}

// Located is a file, or a directory, which has no blocks.
type Located struct {
	Info
	Blocks []Block // in the order of their offsets
}

// Block is a piece of a file that is kept whole.
type Block struct {
	Offset, Length int64
	Replicas       []Replica // none: it cannot be read now
}

// Replica is a copy of a block on one machine.
type Replica struct {
	Host string // as the machine calls itself
	Addr string // IP address and port, as in Read
	Rack string // "/default-rack", "/dc1/r7"
}

// Metered is what a File is besides when it knows who it was read from.
type Metered interface {
	// Reads says what was read from each machine so far. It may be called after
	// Close, but not while a read is under way.
	Reads() []Read
}

// Read is how much was read from one machine.
type Read struct {
	Addr  string // as in Replica
	Bytes int64
	Time  time.Duration // that the reader waited
}

// Locate finds blocks in a file system that knows them; in another one, files
// have no blocks.
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

// Locate is that of the scheme's FS.
func (m Mux) Locate(name string) ([]Located, error) {
	f, err := m.of(name)
	if err != nil {
		return nil, err
	}
	return Locate(f, name)
}
