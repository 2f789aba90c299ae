package wire

import "time"

// Level is the distance between an attempt and its data; lower is nearer. 0: the location of the
// data is unknown, or it has none.
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

// Reading counts bytes that were read, and the time of waiting for them.
type Reading struct {
	Bytes int64         `msgpack:"Bytes"`
	Took  time.Duration `msgpack:"Took"`
}

// Reads counts an attempt's reads by distance, if the file system names the machines.
type Reads struct {
	Node   Reading `msgpack:"Node"`
	Rack   Reading `msgpack:"Rack"`
	Remote Reading `msgpack:"Remote"`
}

// At returns the reads at one level.
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
