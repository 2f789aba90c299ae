package processes

import (
	"fmt"
	"net"
	"sync/atomic"
)

// gossipProxy forwards gossip to a daemon, TCP and UDP on one port. It can drop UDP.
type gossipProxy struct {
	Addr     string
	tcp      *Proxy
	udp      net.PacketConn
	daemon   net.Conn
	dropping atomic.Bool
}

func newGossipProxy(target string) (*gossipProxy, error) {
	tcp, err := newProxy(target, nil)
	if err != nil {
		return nil, err
	}
	g := &gossipProxy{Addr: tcp.Addr, tcp: tcp}
	if g.udp, err = net.ListenPacket("udp", tcp.Addr); err != nil {
		tcp.Close()
		return nil, fmt.Errorf("proxy of datagrams for %s: %w", target, err)
	}
	if g.daemon, err = net.Dial("udp", target); err != nil {
		tcp.Close()
		g.udp.Close()
		return nil, fmt.Errorf("proxy of datagrams for %s: %w", target, err)
	}
	go g.forward()
	return g, nil
}

// forward forwards datagrams to the daemon. Answers do not pass here: the daemon sends them to the
// address that the sender advertises.
func (g *gossipProxy) forward() {
	buf := make([]byte, 64<<10)
	for {
		n, _, err := g.udp.ReadFrom(buf)
		if err != nil {
			return
		}
		if !g.dropping.Load() {
			g.daemon.Write(buf[:n]) // datagrams may be lost
		}
	}
}

func (g *gossipProxy) close() {
	g.tcp.Close()
	g.udp.Close()
	g.daemon.Close()
}

// DropUDP starts or stops dropping all UDP gossip.
func (c *Cluster) DropUDP(drops bool) {
	for _, d := range c.All() {
		d.gossipProxy.dropping.Store(drops)
	}
}
