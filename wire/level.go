package wire

import "time"

// Level is how near an attempt is to its data; a lower one is nearer. 0: the data
// is nowhere in particular, or it is not known.
type Level uint8

const (
	NodeLocal Level = iota + 1 // on the same machine
	RackLocal                  // in the same rack
	Remote                     // anywhere else
)

func (l Level) String() string {
	switch l {
	case 0:
		return ""
	case NodeLocal:
		return "node-local"
	case RackLocal:
		return "rack-local"
	case Remote:
		return "remote"
	}
	return "unknown"
}

// Reading is what was read, and for how long that was waited for.
type Reading struct {
	Bytes int64         `msgpack:"Bytes"`
	Took  time.Duration `msgpack:"Took"`
}

// Reads is what an attempt has read from machines that the file system named, by
// how near they were.
type Reads struct {
	Node   Reading `msgpack:"Node"`
	Rack   Reading `msgpack:"Rack"`
	Remote Reading `msgpack:"Remote"`
}

// At is the reading of a level.
func (r *Reads) At(l Level) *Reading {
	switch l {
	case NodeLocal:
		return &r.Node
	case RackLocal:
		return &r.Rack
	}
	return &r.Remote
}

// Add adds other.
func (r *Reads) Add(other Reads) {
	for l := NodeLocal; l <= Remote; l++ {
		sum, more := r.At(l), other.At(l)
		sum.Bytes += more.Bytes
		sum.Took += more.Took
	}
}
