package processes

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Proxy forwards TCP connections to a daemon. It can cut the connections that certain processes
// have opened. A cut connection passes no bytes in either direction and has no error, as with a
// pulled cable. After Heal, it passes the delayed bytes.
type Proxy struct {
	Addr   string
	target string
	listen net.Listener
	pids   func() []int // processes that may open connections; nil: do not identify openers

	mu      sync.Mutex
	changed sync.Cond // of isCut and links
	isCut   func(pid int) bool
	links   map[*link]bool
	closed  bool
}

type link struct {
	pid      int // of the process that opened it; 0: unknown
	opener   net.Conn
	daemon   net.Conn // nil: not dialled yet
	isClosed bool
}

func newProxy(target string, pids func() []int) (*Proxy, error) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy for %s: %w", target, err)
	}
	p := &Proxy{
		Addr: listen.Addr().String(), target: target, listen: listen, pids: pids,
		isCut: func(int) bool { return false }, links: make(map[*link]bool),
	}
	p.changed.L = &p.mu
	go p.accept()
	return p, nil
}

// Cut cuts all old and new connections of the processes for which cut returns true. Process 0 is
// an unknown process.
func (p *Proxy) Cut(cut func(pid int) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = cut
	p.changed.Broadcast()
}

// Heal ends all cuts.
func (p *Proxy) Heal() { p.Cut(func(int) bool { return false }) }

func (p *Proxy) accept() {
	for {
		conn, err := p.listen.Accept()
		if err != nil {
			return
		}
		l := &link{opener: conn}
		if p.pids != nil {
			l.pid = openerOf(conn, p.pids())
		}
		p.mu.Lock()
		p.links[l] = true
		if p.closed {
			conn.Close()
		}
		p.mu.Unlock()
		go p.serve(l)
	}
}

func (p *Proxy) serve(l *link) {
	defer p.drop(l)
	if !p.awaitHealed(l) {
		return
	}
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	p.mu.Lock()
	l.daemon = far
	closed := l.isClosed
	p.mu.Unlock()
	if closed {
		far.Close()
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(l, far, l.opener) })
	both.Go(func() { p.copy(l, l.opener, far) })
	both.Wait()
}

// awaitHealed waits while the link is cut. It returns false if the link is closed.
func (p *Proxy) awaitHealed(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.isCut(l.pid) && !l.isClosed {
		p.changed.Wait()
	}
	return !l.isClosed
}

func (p *Proxy) copy(l *link, to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !p.awaitHealed(l) {
			break
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				break
			}
		}
		if err == io.EOF {
			if half, ok := to.(*net.TCPConn); ok {
				half.CloseWrite()
			}
			return
		}
		if err != nil {
			break
		}
	}
	p.drop(l)
}

func (p *Proxy) drop(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
	l.isClosed = true
	l.opener.Close()
	if l.daemon != nil {
		l.daemon.Close()
	}
	p.changed.Broadcast()
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	p.listen.Close()
	p.mu.Lock()
	p.closed = true
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	p.mu.Unlock()
	for _, l := range links {
		p.drop(l)
	}
}

// ErrUnprivileged reports that the proxies cannot tell which daemon has opened a connection: daemons
// hide their open files from other processes of their user.
var ErrUnprivileged = errors.New("proxies need root, or CAP_SYS_PTRACE, to see which daemon has opened a connection")

// checkOpeners fails if openerOf would find none of the daemons.
func (c *Cluster) checkOpeners() error {
	for _, d := range c.All() {
		if _, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", d.Pid())); err != nil {
			return fmt.Errorf("%w: %w", ErrUnprivileged, err)
		}
	}
	return nil
}

// openerOf finds which of the processes has the other end of a loopback connection, by the
// socket's inode number; 0: none.
func openerOf(conn net.Conn, pids []int) int {
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	inode := socketInode(remote.Port, conn.LocalAddr().(*net.TCPAddr).Port)
	if inode == "" {
		return 0
	}
	for _, pid := range pids {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid)) // the pattern is well-formed
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && to == "socket:["+inode+"]" {
				return pid
			}
		}
	}
	return 0
}

// socketInode returns the inode number of the socket between two loopback ports.
func socketInode(local, remote int) string {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", local)) &&
			strings.HasSuffix(fields[2], fmt.Sprintf(":%04X", remote)) {
			return fields[9]
		}
	}
	return ""
}

// proxy starts proxies for a daemon's gossip and HTTP addresses, and for a job tracker's raft
// address. The daemon advertises the proxies' addresses.
func (c *Cluster) proxy(d *Daemon) (err error) {
	if !c.cfg.Proxied {
		return nil
	}
	if d.gossipProxy, err = newGossipProxy(d.Gossip); err != nil {
		return err
	}
	d.args = append(d.args, "-gossip-advertise", d.gossipProxy.Addr)
	if d.Raft == "" {
		if d.httpProxy, err = newProxy(d.Addr, c.taskTrackerPids); err != nil {
			return err
		}
		d.args = append(d.args, "-advertise", d.httpProxy.Addr)
		return nil
	}
	if d.raftProxy, err = newProxy(d.Raft, c.jobTrackerPids); err != nil {
		return err
	}
	if d.httpProxy, err = newProxy(d.Addr, nil); err != nil {
		return err
	}
	d.args = append(d.args, "-advertise", d.httpProxy.Addr, "-raft-advertise", d.raftProxy.Addr)
	return nil
}

// jobTrackerPids lists the job trackers' processes.
func (c *Cluster) jobTrackerPids() []int { return pidsOf(c.JobTrackers) }

// taskTrackerPids lists the task trackers' processes.
func (c *Cluster) taskTrackerPids() []int { return pidsOf(c.TaskTrackers) }

func pidsOf(daemons []*Daemon) (pids []int) {
	for _, d := range daemons {
		if pid := d.pid.Load(); pid != 0 {
			pids = append(pids, int(pid))
		}
	}
	return pids
}

func (d *Daemon) stopProxies() {
	for _, p := range []*Proxy{d.raftProxy, d.httpProxy} {
		if p != nil {
			p.Close()
		}
	}
	if d.gossipProxy != nil {
		d.gossipProxy.close()
	}
}

// advertisedGossip returns the advertised gossip address.
func (d *Daemon) advertisedGossip() string {
	if d.gossipProxy != nil {
		return d.gossipProxy.Addr
	}
	return d.Gossip
}

// Advertised returns the advertised address of its HTTP service.
func (d *Daemon) Advertised() string {
	if d.httpProxy != nil {
		return d.httpProxy.Addr
	}
	return d.Addr
}

// Isolate cuts the connections between a job tracker and the other job trackers, in both
// directions. Task trackers and clients still reach it.
func (c *Cluster) Isolate(d *Daemon) {
	self := d.Pid()
	for _, other := range c.JobTrackers {
		if other == d {
			d.raftProxy.Cut(func(int) bool { return true })
			continue
		}
		other.raftProxy.Cut(func(pid int) bool { return pid == self })
	}
}

// IsolateTaskTrackers cuts the fetches between these task trackers and all others, in both
// directions. They still reach the job trackers. It heals those that are not named.
func (c *Cluster) IsolateTaskTrackers(isolated ...*Daemon) {
	pids := pidsOf(isolated)
	for _, d := range c.TaskTrackers {
		all := slices.Contains(isolated, d)
		d.httpProxy.Cut(func(opener int) bool { return all || slices.Contains(pids, opener) })
	}
}

// Heal ends the isolation of all job trackers.
func (c *Cluster) Heal() {
	for _, d := range c.JobTrackers {
		d.raftProxy.Heal()
	}
}
