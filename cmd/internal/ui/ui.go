// Package ui shows pages to a browser on this machine: mrsubmit ui those of a cluster, with the certificate of the
// user who has started it, and mrsubmit run -ui those of an embedded run.
//
// # Who may use it
//
// Every user of the machine can connect to a loopback port, and every web page in the user's browser
// can send requests to it. So a request must pass these rules:
//
//	U1  Its Host is the proxy's address. A page of another site that resolves its own name to
//	    127.0.0.1 has another Host.
//	U2  It has the session's cookie. A browser gets the cookie for the token in the address that
//	    mrsubmit opens. A token works once. The cookie's name has the port, since browsers send
//	    the cookies of a host to all its ports.
//	U3  It is GET or HEAD, or the one change that pages have: POST of /scheduler. The change has the
//	    proxy's address as its Origin, which a browser sets and a page of another site cannot. It
//	    has the token of the form, which the job tracker checks.
//
// The cookie is not sent on to the cluster.
//
// Logs of attempts come from task trackers, which demand the user's certificate and token. The proxy
// reads them itself, and answers with plain text, which a browser neither renders nor executes.
package ui

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/quernmr/quern/listen"
)

// Config configures a proxy. Pages must be set.
type Config struct {
	Pages http.Handler // all pages but the texts of logs, and the API
	Log   OpenLog
}

// Proxy serves pages at a loopback address.
type Proxy struct {
	listener net.Listener
	server   *http.Server
	token    string
}

const (
	headerWait = 10 * time.Second
	maxChange  = 4 << 10 // bytes of the body of a change
)

// Listen makes a proxy at a loopback port; 0: any free one.
func Listen(port int, cfg Config) (*Proxy, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	p := &Proxy{listener: l, token: rand.Text()}
	g := &gate{host: l.Addr().String(), cookie: cookieOf(l.Addr().(*net.TCPAddr).Port), token: p.token, session: rand.Text(), next: withLogs(cfg)}
	p.server = &http.Server{Handler: g, ReadHeaderTimeout: headerWait, MaxHeaderBytes: 64 << 10}
	return p, nil
}

func cookieOf(port int) string { return fmt.Sprintf("quern-ui-%d", port) }

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
	cookie  string // its name
	session string // its value
	next    http.Handler

	mu    sync.Mutex
	token string // empty: it has been used
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case r.Host != g.host:
		listen.Fail(w, r, "this address is for "+g.host, http.StatusMisdirectedRequest)
	case !reads && (r.Method != http.MethodPost || r.URL.Path != "/scheduler"):
		listen.Fail(w, r, "pages change only the scheduler", http.StatusMethodNotAllowed)
	case reads && r.URL.Query().Has("token"):
		g.enter(w, r)
	case !g.admitted(r):
		listen.Fail(w, r, "open the address that mrsubmit has printed; it works once, so start mrsubmit again for another browser", http.StatusForbidden)
	case !reads && r.Header.Get("Origin") != "http://"+g.host:
		listen.Fail(w, r, "the request comes from another site", http.StatusForbidden)
	default:
		r.Header.Del("Cookie")
		if !reads && !keepBody(w, r) {
			return
		}
		g.next.ServeHTTP(w, r)
	}
}

// keepBody reads the body of a request, so that the forwarder can send it again.
func keepBody(w http.ResponseWriter, r *http.Request) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxChange))
	if err != nil {
		listen.Fail(w, r, "read the change: "+err.Error(), http.StatusBadRequest)
		return false
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody() // never fails
	r.ContentLength = int64(len(body))
	return true
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
		listen.Fail(w, r, "the token of this address has been used or is wrong; start mrsubmit again", http.StatusForbidden)
		return
	}
	if valid {
		http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	http.Redirect(w, r, "/"+strings.TrimLeft(r.URL.Path, `/\`), http.StatusSeeOther) // browsers read // as the begin of a host
}

func (g *gate) admitted(r *http.Request) bool {
	c, err := r.Cookie(g.cookie)
	return err == nil && equal(c.Value, g.session)
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
