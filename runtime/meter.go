package runtime

import (
	"net"
	"strings"
	"sync"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/locality"
	"github.com/quernmr/quern/wire"
)

// meter counts the bytes of a map's input by the distance of the node that sent them.
type meter struct {
	host, rack string // of the task tracker
	nodes      []node // of the split

	mu    sync.Mutex
	reads wire.Reads
}

// level returns the distance of an address. An address may be none of the split's nodes,
// for instance because a block has moved. Then it is remote unless it is the tracker's own.
func (m *meter) level(addr string) wire.Level {
	for _, n := range m.nodes {
		switch {
		case n.Addr != addr:
		case locality.HostKey(n.Host) == m.host:
			return wire.NodeLocal
		case n.Rack != "" && n.Rack == m.rack:
			return wire.RackLocal
		default:
			return wire.Remote
		}
	}
	if host, _, err := net.SplitHostPort(addr); err == nil && locality.HostKey(host) == m.host {
		return wire.NodeLocal
	}
	return wire.Remote
}

// count adds reads and subtracts excluded.
func (m *meter) count(reads, excluded []dfs.Read) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range reads {
		sum := m.reads.At(m.level(r.Addr))
		sum.Bytes += r.Bytes
		sum.Took += r.Time
	}
	for _, r := range excluded {
		sum := m.reads.At(m.level(r.Addr))
		sum.Bytes -= r.Bytes
		sum.Took -= r.Time
	}
}

func (m *meter) sum() wire.Reads {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}

// countReads adds the bytes of each level to counters.
func countReads(c wire.Counters, reads wire.Reads) {
	for level := wire.NodeLocal; level <= wire.Remote; level++ {
		if n := reads.At(level).Bytes; n > 0 {
			name := strings.ToUpper(strings.ReplaceAll(level.String(), "-", "_"))
			c.Add(wire.ReadCounters, wire.BytesRead+"_"+name, n)
		}
	}
}

// meteredFile is a file of a split. Close counts its reads, except the forgotten ones.
type meteredFile struct {
	dfs.File
	meter     *meter
	forgotten []dfs.Read
	once      sync.Once
}

// reads returns the reads so far, by machine. It returns nil if the file system does not
// know them.
func (f *meteredFile) reads() []dfs.Read {
	if metered, ok := f.File.(dfs.Metered); ok {
		return metered.Reads()
	}
	return nil
}

// forget excludes all reads so far from the count.
func (f *meteredFile) forget() { f.forgotten = f.reads() }

func (f *meteredFile) Close() error {
	err := f.File.Close()
	f.once.Do(func() { f.meter.count(f.reads(), f.forgotten) })
	return err
}
