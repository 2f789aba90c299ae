// Package ui is the local proxy of mrsubmit ui. A browser on this machine sees the pages of a cluster
// through it, with the certificate of the user who has started it.
//
// # Who may use it
//
// Every user of the machine can connect to a loopback port, and every web page in the user's browser
// can send requests to it. So the proxy demands three things of a request:
//
//	U1  Its Host is the proxy's address. A page of another site that resolves its own name to
//	    127.0.0.1 has another Host.
//	U2  It has the session's cookie. A browser gets the cookie for the token in the address that
//	    mrsubmit opens. A token works once.
//	U3  It is GET or HEAD: the proxy changes nothing.
//
// The cookie is not sent on to the cluster.
//
// Logs of attempts come from task trackers, which demand the user's certificate and token. The proxy
// reads them itself, and answers with plain text, which a browser neither renders nor executes.
package ui

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// Config configures a proxy. Leader and Transport must be set.
type Config struct {
	// Leader finds the job tracker that leads: host:port of its API.
	Leader    func(ctx context.Context) (addr string, err error)
	Transport http.RoundTripper
	Secure    bool // the cluster uses TLS

	// Log opens a log of an attempt: "stdout" or "stderr". Task trackers have the logs, and demand the
	// user's certificate and token.
	Log func(ctx context.Context, job, attempt, stream string) (io.ReadCloser, error)
}

// Proxy serves the pages of a cluster at a loopback address.
type Proxy struct {
	listener net.Listener
	server   *http.Server
	token    string
}

const (
	cookie     = "quern-ui"
	headerWait = 10 * time.Second
)

// Listen makes a proxy at a loopback port; 0: any free one.
func Listen(port int, cfg Config) (*Proxy, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	p := &Proxy{listener: l, token: rand.Text()}
	g := &gate{host: l.Addr().String(), token: p.token, session: rand.Text(), next: newPages(cfg)}
	p.server = &http.Server{Handler: g, ReadHeaderTimeout: headerWait, MaxHeaderBytes: 64 << 10}
	return p, nil
}

// URL is the address for the browser. It works once.
func (p *Proxy) URL() string {
	return "http://" + p.listener.Addr().String() + "/?" + url.Values{"token": {p.token}}.Encode()
}

// Serve serves until Close. It returns nil then.
func (p *Proxy) Serve() error {
	if err := p.server.Serve(p.listener); err != http.ErrServerClosed {
		return fmt.Errorf("serve the browser: %w", err)
	}
	return nil
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() error { return p.server.Close() }

// gate admits requests by the rules U1 to U3.
type gate struct {
	host    string
	session string
	next    http.Handler

	mu    sync.Mutex
	token string // empty: it has been used
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Host != g.host:
		http.Error(w, "this address is for "+g.host, http.StatusMisdirectedRequest)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "pages of mrsubmit ui change nothing", http.StatusMethodNotAllowed)
	case r.URL.Query().Has("token"):
		g.enter(w, r)
	case !g.admitted(r):
		http.Error(w, "open the address that mrsubmit ui has printed; it works once, so start mrsubmit ui again for another browser", http.StatusForbidden)
	default:
		r.Header.Del("Cookie")
		g.next.ServeHTTP(w, r)
	}
}

// enter exchanges the token for the cookie, and removes it from the address bar.
func (g *gate) enter(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	valid := g.token != "" && equal(g.token, r.URL.Query().Get("token"))
	if valid {
		g.token = ""
	}
	g.mu.Unlock()
	if !valid && !g.admitted(r) {
		http.Error(w, "the token of this address has been used or is wrong; start mrsubmit ui again", http.StatusForbidden)
		return
	}
	if valid {
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	http.Redirect(w, r, r.URL.Path, http.StatusSeeOther)
}

func (g *gate) admitted(r *http.Request) bool {
	c, err := r.Cookie(cookie)
	return err == nil && equal(c.Value, g.session)
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// forwarder sends requests to the leader, and finds it again when it has changed.
type forwarder struct {
	Config
	mu   sync.Mutex
	addr string // of the leader; empty: not known
}

func newForwarder(cfg Config) http.Handler {
	scheme := "http"
	if cfg.Secure {
		scheme = "https"
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme = scheme
			r.Out.Host = ""
		},
		Transport:     &forwarder{Config: cfg},
		FlushInterval: -1, // events
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "mrsubmit ui: "+err.Error(), http.StatusBadGateway)
		},
	}
}

// tries bounds the job trackers that a request asks.
const tries = 3

// RoundTrip implements http.RoundTripper. Its requests have no body, see U3, so they can be repeated.
func (f *forwarder) RoundTrip(r *http.Request) (*http.Response, error) {
	var last error
	for range tries {
		addr, err := f.leader(r.Context())
		if err != nil {
			return nil, err
		}
		out := r.Clone(r.Context())
		out.URL.Host, out.Host = addr, addr
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
