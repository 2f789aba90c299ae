package replica

import (
	"errors"
	"net"
	"path/filepath"
	"sync"
	"time"

	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
)

// links is a network of replicas that can cut connections by replica id.
type links struct {
	mu    sync.Mutex
	addrs map[string]string // id by address
	cut   map[string]bool   // by id: the replica neither dials nor is dialed
	conns map[*link]bool
}

type link struct {
	net.Conn
	links    *links
	from, to string // an id and an address
}

var errCut = errors.New("the link is cut")

func newLinks() *links {
	return &links{addrs: make(map[string]string), cut: make(map[string]bool), conns: make(map[*link]bool)}
}

// join makes a replica dial over l.
func (l *links) join(cfg *Config) {
	from := cfg.ID
	cfg.dial = func(addr string, d time.Duration) (net.Conn, error) {
		conn, err := net.DialTimeout("tcp", addr, d)
		if err != nil {
			return nil, err
		}
		c := &link{Conn: conn, links: l, from: from, to: addr}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.cut[from] || l.cut[l.addrs[addr]] { // perhaps while it was dialing
			return nil, errors.Join(errCut, conn.Close())
		}
		l.conns[c] = true
		return c, nil
	}
}

// setAddrs records the addresses of nodes.
func (l *links) setAddrs(nodes ...*node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range nodes {
		l.addrs[n.Addr()] = n.cfg.ID
	}
}

// isolate cuts a replica off, or lets it connect again. Replicas may have connected before setAddrs.
func (l *links) isolate(id string, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[id] = cut
	for c := range l.conns {
		if cut && (c.from == id || l.addrs[c.to] == id) {
			c.Conn.Close()
		}
	}
}

func (c *link) Close() error {
	c.links.mu.Lock()
	delete(c.links.conns, c)
	c.links.mu.Unlock()
	return c.Conn.Close()
}

// disk is the machine's file system, with faults.
type disk struct {
	types.VFS
	mu     sync.Mutex
	write  func(name string, p []byte) (n int, err error) // nil: no fault
	sync   func(name string) error
	create func(name string) error
}

func newDisk() *disk { return &disk{VFS: walfs.New()} }

// set replaces all faults by those that change sets.
func (d *disk) set(change func(d *disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write, d.sync, d.create = nil, nil, nil
	if change != nil {
		change(d)
	}
}

func (d *disk) Create(dir, name string, size uint64) (types.WritableFile, error) {
	d.mu.Lock()
	create := d.create
	d.mu.Unlock()
	if create != nil {
		if err := create(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	f, err := d.VFS.Create(dir, name, size)
	return &faultyFile{f, d, filepath.Join(dir, name)}, err
}

func (d *disk) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := d.VFS.OpenWriter(dir, name)
	return &faultyFile{f, d, filepath.Join(dir, name)}, err
}

type faultyFile struct {
	types.WritableFile
	disk *disk
	name string
}

func (f *faultyFile) WriteAt(p []byte, at int64) (int, error) {
	f.disk.mu.Lock()
	write := f.disk.write
	f.disk.mu.Unlock()
	if write == nil {
		return f.WritableFile.WriteAt(p, at)
	}
	n, err := write(f.name, p)
	if _, werr := f.WritableFile.WriteAt(p[:n], at); werr != nil {
		return 0, werr
	}
	return n, err
}

func (f *faultyFile) Sync() error {
	f.disk.mu.Lock()
	sync := f.disk.sync
	f.disk.mu.Unlock()
	if sync != nil {
		if err := sync(f.name); err != nil {
			return err
		}
	}
	return f.WritableFile.Sync()
}
