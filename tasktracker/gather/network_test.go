package gather

import (
	"io"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// slowBody delivers a byte a nanosecond of the test's clock.
type slowBody struct{ now *time.Time }

func (b slowBody) Read(p []byte) (int, error) {
	*b.now = b.now.Add(time.Duration(len(p)))
	return len(p), nil
}

func (slowBody) Close() error { return nil }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestNetwork checks rates of a network that delivers a billion bytes a second.
func TestNetwork(t *testing.T) {
	const rate = 1e9
	now := time.Unix(1, 0)
	peer := func(n *network, host string) io.ReadCloser {
		resp, err := n.RoundTrip(&http.Request{URL: &url.URL{Host: host}})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Body
	}
	read := func(body io.Reader, bytes int) {
		p := make([]byte, 1<<20)
		for ; bytes > 0; bytes -= len(p) {
			if _, err := body.Read(p); err != nil {
				t.Fatal(err)
			}
			now = now.Add(time.Second) // the fetch is busy with them
		}
	}
	newOne := func(limit float64) *network {
		n := newNetwork(limit, roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{Body: slowBody{&now}}, nil
		}))
		n.clock = func() time.Time { return now }
		return n
	}
	check := func(what string, n *network, rate, remote float64) {
		t.Helper()
		got := n.get()
		if got == nil {
			t.Fatalf("%s: nothing is known", what)
		}
		if got.Rate < 0.999*rate || got.Rate > 1.001*rate || got.Remote != remote {
			t.Errorf("%s: %+v, want the rate %g of %g", what, got, rate, remote)
		}
	}

	n := newOne(0)
	if got := n.get(); got != nil {
		t.Errorf("at the start: %+v", got)
	}
	a := peer(n, "a")
	read(a, windowBytes-1<<20)
	if got := n.get(); got != nil {
		t.Errorf("before the end of a window: %+v", got)
	}
	read(a, 1<<20)
	check("one peer", n, rate, 0.5)
	b := peer(n, "b") // while its fetch is busy, a does not wait for the network alone
	read(a, windowBytes)
	check("a busy fetch", n, windowBytes/1e-6, 2.0/3)
	b.Close()
	b.Close()
	for range windows {
		read(a, windowBytes)
	}
	check("only the last windows count", n, rate, 2.0/3)

	check("a limit", newOne(5), 5, 0)
	n = newOne(2 * rate)
	read(peer(n, "a"), windowBytes)
	check("a limit that the network does not reach", n, rate, 0.5)
}
