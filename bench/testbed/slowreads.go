package testbed

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// Slowed forwards to the DataNodes of an HDFS that was started with Behind. It delays reads as
// a disk does and, for readers on other nodes, a network.
type Slowed struct {
	near, far atomic.Int64 // nanoseconds a byte
	listens   []net.Listener
}

// Slow starts forwarding, without delay at first.
func Slow(h *minicluster.Cluster) (*Slowed, error) {
	s := &Slowed{}
	for _, node := range h.DataNodes {
		listen, err := net.Listen("tcp", node.Addr())
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.listens = append(s.listens, listen)
		go Serve(listen, func(conn net.Conn) { s.pass(conn, node) })
	}
	return s, nil
}

// Set sets the time to read so many bytes on their own node, and on another.
func (s *Slowed) Set(bytes int64, near, far time.Duration) {
	s.near.Store(int64(near) / bytes)
	s.far.Store(int64(far) / bytes)
}

// Close stops forwarding: then no DataNode is reachable.
func (s *Slowed) Close() error {
	var errs []error
	for _, listen := range s.listens {
		errs = append(errs, listen.Close())
	}
	return errors.Join(errs...)
}

// Serve serves and closes every connection until the listener is closed.
func Serve(listen net.Listener, serve func(net.Conn)) {
	for {
		conn, err := listen.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			serve(conn)
		}()
	}
}

// pass forwards a connection until either end closes it.
func (s *Slowed) pass(from net.Conn, node *minicluster.Daemon) {
	to, err := net.Dial("tcp", node.Bound())
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		io.Copy(to, from)
		to.Close()
	}()
	slow := &s.far
	if from.RemoteAddr().(*net.TCPAddr).IP.String() == node.IP {
		slow = &s.near
	}
	buf := make([]byte, 16<<10)
	for {
		n, err := to.Read(buf)
		if each := slow.Load(); n > 0 && each > 0 {
			time.Sleep(time.Duration(int64(n) * each))
		}
		if n > 0 {
			if _, err := from.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
