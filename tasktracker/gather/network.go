package gather

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/quernmr/quern/wire"
)

const (
	windowBytes = 4 << 20 // of a measurement
	windows     = 16      // measurements that count
	maxPeers    = 64      // that are told apart
)

// network measures how fast bytes arrive from other task trackers while all fetches wait for them. The time in
// which one of them writes or verifies does not count, because it would be the same in a faster network. The best of
// the last windows counts: a busy processor makes others slower.
type network struct {
	limit float64 // of the rate in bytes a second; 0: none
	to    http.RoundTripper

	mu              sync.Mutex
	bodies, reading int // open ones; those that wait in Read
	since           time.Time
	bytes           int64 // of the current window
	waited          time.Duration
	rates           []float64 // of the last windows, in a ring
	next            int
	peers           []string // addresses from which something was fetched
	clock           func() time.Time
}

func newNetwork(limit float64, to http.RoundTripper) *network {
	return &network{limit: limit, to: to, clock: time.Now}
}

// RoundTrip implements [http.RoundTripper].
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := n.to.RoundTrip(r)
	if err == nil {
		n.open(r.URL.Host)
		resp.Body = &watchedBody{ReadCloser: resp.Body, network: n}
	}
	return resp, err
}

// CloseIdleConnections is for [http.Client.CloseIdleConnections].
func (n *network) CloseIdleConnections() {
	if c, ok := n.to.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// watchedBody tells its network when it waits for bytes.
type watchedBody struct {
	io.ReadCloser
	network *network
	closed  sync.Once
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.network.change(0, 1, 0)
	n, err := b.ReadCloser.Read(p)
	b.network.change(0, -1, n)
	return n, err
}

func (b *watchedBody) Close() error {
	b.closed.Do(func() { b.network.change(-1, 0, 0) })
	return b.ReadCloser.Close()
}

func (n *network) open(host string) {
	n.change(1, 0, 0)
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.peers) < maxPeers && !slices.Contains(n.peers, host) {
		n.peers = append(n.peers, host)
	}
}

// change changes the number of open bodies, and of those that wait, and adds the bytes that one has got.
func (n *network) change(bodies, reading, bytes int) {
	now := n.clock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.reading > 0 && n.reading == n.bodies {
		n.waited += now.Sub(n.since)
	}
	n.since = now
	n.bodies += bodies
	n.reading += reading
	if n.bytes += int64(bytes); n.bytes < windowBytes {
		return
	}
	rate := float64(n.bytes) / max(n.waited, time.Microsecond).Seconds()
	if len(n.rates) < windows {
		n.rates = append(n.rates, rate)
	} else {
		n.rates[n.next%windows] = rate
	}
	n.next++
	n.bytes, n.waited = 0, 0
}

// get returns what is known of the network; nil: nothing.
func (n *network) get() *wire.Network {
	n.mu.Lock()
	defer n.mu.Unlock()
	rate := n.limit
	if len(n.rates) > 0 {
		measured := slices.Max(n.rates)
		if rate == 0 || measured < rate {
			rate = measured
		}
	}
	if rate == 0 {
		return nil
	}
	known := &wire.Network{Rate: rate}
	if peers := float64(len(n.peers)); peers > 0 {
		known.Remote = peers / (peers + 1)
	}
	return known
}
