package gossip

import (
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/quernmr/quern/listen"
)

// transport is memberlist's own transport. It limits connections and what memberlist reads, and logs
// failed writes, which memberlist ignores.
type transport struct {
	memberlist.NodeAwareTransport
	g       *Gossip
	streams chan net.Conn
	packets chan *memberlist.Packet
	done    chan struct{} // closed when no more streams and packets come
	once    sync.Once

	mu     sync.Mutex
	failed map[string]time.Time // by address: when a failure was last logged
}

// repeatPause is the minimum time until the same failure is logged again.
const repeatPause = time.Minute

// listen binds the port. A free port must be free for UDP and for TCP, so this may take
// several attempts.
func (g *Gossip) listen(conf *memberlist.Config) (memberlist.Transport, error) {
	if conf.Transport != nil { // set by a test
		return g.wrap(conf.Transport), nil
	}
	attempts := 1
	if conf.BindPort == 0 {
		attempts = 20
	}
	for {
		own, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{conf.BindAddr}, BindPort: conf.BindPort, Logger: conf.Logger,
		})
		attempts--
		switch {
		case err == nil:
			if conf.AdvertisePort == 0 {
				conf.AdvertisePort = own.GetAutoBindPort()
			}
			return g.wrap(own), nil
		case attempts == 0 || !strings.Contains(err.Error(), "address already in use"):
			return nil, err
		}
	}
}

func (g *Gossip) wrap(t memberlist.Transport) *transport {
	w := &transport{
		NodeAwareTransport: t.(memberlist.NodeAwareTransport), g: g, failed: make(map[string]time.Time),
		streams: make(chan net.Conn), packets: make(chan *memberlist.Packet), done: make(chan struct{}),
	}
	limits := g.limits
	limits.Logger = g.log
	guard := listen.NewGuard(limits)
	g.goroutines.Go(func() {
		forward(t.StreamCh(), w.streams, w.done, func(conn net.Conn) (net.Conn, bool) {
			if conn = guard.Admit(conn); conn == nil {
				return nil, false
			}
			return newStream(conn), true
		})
	})
	g.goroutines.Go(func() {
		forward(t.PacketCh(), w.packets, w.done, func(p *memberlist.Packet) (*memberlist.Packet, bool) {
			return p, !hasCompressed(p.Buf)
		})
	})
	return w
}

// forward passes on values that accept returns, until done is closed.
func forward[T any](from <-chan T, to chan<- T, done <-chan struct{}, accept func(T) (T, bool)) {
	for {
		select {
		case <-done:
			return
		case value := <-from:
			value, ok := accept(value)
			if !ok {
				continue
			}
			select {
			case to <- value:
			case <-done:
				return
			}
		}
	}
}

// StreamCh implements memberlist.Transport.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// PacketCh implements memberlist.Transport.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	conn, err := t.NodeAwareTransport.DialAddressTimeout(a, timeout)
	if err != nil {
		return nil, err
	}
	return newStream(conn), nil
}

// Shutdown implements memberlist.Transport.
func (t *transport) Shutdown() error {
	defer t.once.Do(func() { close(t.done) })
	return t.NodeAwareTransport.Shutdown()
}

// WriteToAddress implements memberlist.NodeAwareTransport.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	at, err := t.NodeAwareTransport.WriteToAddress(b, a)
	t.logFailure(a.Addr, err)
	return at, err
}

// WriteTo implements memberlist.Transport.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

func (t *transport) logFailure(addr string, err error) {
	t.mu.Lock()
	last, failing := t.failed[addr]
	logs := err != nil && time.Since(last) > repeatPause && t.g.ctx.Err() == nil
	switch {
	case logs:
		t.failed[addr] = time.Now()
	case err == nil && failing:
		delete(t.failed, addr)
	}
	t.mu.Unlock()
	if logs {
		t.g.log.Error("gossip: UDP packets cannot be sent", "to", addr, "error", err)
	}
}
