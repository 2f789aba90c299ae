package gossip

import (
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// transport is memberlist's own, with an eye on failing writes: memberlist takes
// them for lost packets.
type transport struct {
	memberlist.NodeAwareTransport
	g *Gossip

	mu     sync.Mutex
	failed map[string]time.Time // by address, when it was last said
}

// sayAgain is how often the same trouble is said.
const sayAgain = time.Minute

// listen takes the port. A free one must be free for UDP and TCP, so it may take
// several attempts.
func (g *Gossip) listen(conf *memberlist.Config) (memberlist.Transport, error) {
	if conf.Transport != nil { // a test's
		return g.watched(conf.Transport), nil
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
			return g.watched(net), nil
		case attempts == 0 || !strings.Contains(err.Error(), "address already in use"):
			return nil, err
		}
	}
}

func (g *Gossip) watched(t memberlist.Transport) *transport {
	return &transport{NodeAwareTransport: t.(memberlist.NodeAwareTransport), g: g, failed: make(map[string]time.Time)}
}

// WriteToAddress implements memberlist.NodeAwareTransport.
func (t *transport) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	at, err := t.NodeAwareTransport.WriteToAddress(b, a)
	t.wrote(a.Addr, err)
	return at, err
}

// WriteTo implements memberlist.Transport.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	return t.WriteToAddress(b, memberlist.Address{Addr: addr})
}

func (t *transport) wrote(addr string, err error) {
	t.mu.Lock()
	last, failing := t.failed[addr]
	say := err != nil && time.Since(last) > sayAgain && t.g.ctx.Err() == nil
	switch {
	case say:
		t.failed[addr] = time.Now()
	case err == nil && failing:
		delete(t.failed, addr)
	}
	t.mu.Unlock()
	if say {
		t.g.log.Error("gossip: UDP cannot be sent", "to", addr, "error", err)
	}
}
