package testbed

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// SlowReads is a proxy of the DataNodes of an HDFS that was started with Proxied. It delays
// reads like a disk, and reads from other nodes like a network.
type SlowReads struct {
	localDelay, remoteDelay atomic.Int64 // nanoseconds a byte
	listeners               []net.Listener
}

// NewSlowReads starts the proxy, without delays at first.
func NewSlowReads(h *minicluster.Cluster) (*SlowReads, error) {
	s := &SlowReads{}
	for _, node := range h.DataNodes {
		listen, err := net.Listen("tcp", node.Addr())
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.listeners = append(s.listeners, listen)
		go Serve(listen, func(conn net.Conn) { s.forward(conn, node) })
	}
	return s, nil
}

// Set sets the time for reading so many bytes from the same node, and from another node.
func (s *SlowReads) Set(bytes int64, local, remote time.Duration) {
	s.localDelay.Store(int64(local) / bytes)
	s.remoteDelay.Store(int64(remote) / bytes)
}

// Close stops the proxy. The DataNodes cannot be reached without it.
func (s *SlowReads) Close() error {
	var errs []error
	for _, listen := range s.listeners {
		errs = append(errs, listen.Close())
	}
	return errors.Join(errs...)
}

// Serve accepts connections until the listener is closed. It calls serve for each, then closes it.
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

// forward forwards a connection until either end closes it.
func (s *SlowReads) forward(from net.Conn, node *minicluster.Daemon) {
	to, err := net.Dial("tcp", node.ListenAddr())
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		io.Copy(to, from)
		to.Close()
	}()
	slow := &s.remoteDelay
	if from.RemoteAddr().(*net.TCPAddr).IP.String() == node.IP {
		slow = &s.localDelay
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
