package ui

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"sync"

	"github.com/quernmr/quern/listen"
)

// Cluster is how a forwarder reaches a cluster. Leader and Transport must be set.
type Cluster struct {
	// Leader finds the job tracker that leads: host:port of its API.
	Leader    func(ctx context.Context) (addr string, err error)
	Transport http.RoundTripper
	Secure    bool // the cluster uses TLS
}

func (c *Cluster) scheme() string {
	if c.Secure {
		return "https"
	}
	return "http"
}

// Forward makes the pages of a cluster: it sends requests to the leader, and finds it again when it has changed.
func Forward(c Cluster) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme = c.scheme()
			r.Out.Host = ""
			r.Out.GetBody = r.In.GetBody
		},
		Transport:     &forwarder{Cluster: c},
		FlushInterval: -1, // events
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			listen.Fail(w, r, "mrsubmit ui: "+err.Error(), http.StatusBadGateway)
		},
	}
}

// forwarder sends requests to the leader.
type forwarder struct {
	Cluster
	mu   sync.Mutex
	addr string // of the leader; empty: not known
}

// tries bounds the job trackers that a request asks.
const tries = 3

// RoundTrip implements http.RoundTripper. A request can be repeated: it reads, or sets the scheduler to what it
// names.
func (f *forwarder) RoundTrip(r *http.Request) (*http.Response, error) {
	var last error
	for range tries {
		addr, err := f.leader(r.Context())
		if err != nil {
			return nil, err
		}
		out := r.Clone(r.Context())
		out.URL.Host, out.Host = addr, addr
		if r.Header.Get("Origin") != "" { // the gate has compared it with the address of this process
			out.Header.Set("Origin", f.scheme()+"://"+addr)
		}
		if r.GetBody != nil {
			if out.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		answer, err := f.Transport.RoundTrip(out)
		if err != nil {
			last = err
			f.set("")
			continue
		}
		next, moved := movedTo(answer, addr)
		if !moved {
			return answer, nil
		}
		answer.Body.Close()
		last = fmt.Errorf("%s says that %s leads", addr, next)
		f.set(next)
	}
	return nil, last
}

// movedTo returns the job tracker to which a follower's answer points.
func movedTo(answer *http.Response, from string) (addr string, moved bool) {
	if answer.StatusCode != http.StatusTemporaryRedirect {
		return "", false
	}
	to, err := answer.Location()
	if err != nil || to.Host == from {
		return "", false
	}
	return to.Host, true
}

func (f *forwarder) leader(ctx context.Context) (string, error) {
	f.mu.Lock()
	addr := f.addr
	f.mu.Unlock()
	if addr != "" {
		return addr, nil
	}
	addr, err := f.Leader(ctx)
	if err != nil {
		return "", fmt.Errorf("find the leader: %w", err)
	}
	f.set(addr)
	return addr, nil
}

func (f *forwarder) set(addr string) {
	f.mu.Lock()
	f.addr = addr
	f.mu.Unlock()
}
