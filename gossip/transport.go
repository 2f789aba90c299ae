package gossip

import (
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// transport is memberlist's own transport, and logs failed writes, which memberlist ignores.
type transport struct {
	memberlist.NodeAwareTransport
	g *Gossip

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
		net, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{conf.BindAddr}, BindPort: conf.BindPort, Logger: conf.Logger,
		})
		attempts--
		switch {
		case err == nil:
			if conf.AdvertisePort == 0 {
				conf.AdvertisePort = net.GetAutoBindPort()
			}
			return g.wrap(net), nil
		case attempts == 0 || !strings.Contains(err.Error(), "address already in use"):
			return nil, err
		}
	}
}

func (g *Gossip) wrap(t memberlist.Transport) *transport {
	return &transport{NodeAwareTransport: t.(memberlist.NodeAwareTransport), g: g, failed: make(map[string]time.Time)}
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
