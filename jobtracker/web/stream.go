package web

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/wire"
)

// streamProtocol is the protocol of a task tracker's upgraded connection.
const streamProtocol = "quern-stream/1"

// stream upgrades a connection and serves it until it ends.
func (h *handler) stream(w http.ResponseWriter, r *http.Request) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), streamProtocol) {
		w.Header().Set("Upgrade", streamProtocol)
		h.fail(w, r, &Error{Code: codeUpgrade, Text: "this route is for task trackers: it upgrades to " + streamProtocol, Untouched: true})
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		h.fail(w, r, fmt.Errorf("upgrade: %w", err))
		return
	}
	conn.SetDeadline(time.Now().Add(h.helloLimit)) // ignore the error: the next read or write returns it too
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+streamProtocol+"\r\n\r\n"); err != nil {
		conn.Close()
		return
	}
	conn.SetWriteDeadline(time.Time{})
	in := &deadlineUntilRead{conn: conn, in: buffered.Reader}
	peer, _ := identity.PeerOf(r.TLS)
	if err := h.Server.Attach(wire.NewConn(in, conn, conn.Close), peer.Name); err != nil {
		h.Logger.Warn("a tracker's stream ended", "addr", conn.RemoteAddr().String(), "error", err)
	}
}

// deadlineUntilRead removes the deadline of a connection after the first byte.
type deadlineUntilRead struct {
	conn net.Conn
	in   io.Reader
	read bool
}

func (p *deadlineUntilRead) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	if n > 0 && !p.read {
		p.read = true
		p.conn.SetReadDeadline(time.Time{}) // ignore the error: the next read returns it too
	}
	return n, err
}

// dialWait limits the time to connect, streamWait the time to connect and upgrade.
const (
	dialWait   = 2 * time.Second
	streamWait = 10 * time.Second
)

// DialStream opens a task tracker's stream to the job tracker at host:port addr within 10 s: many others may dial too. With
// config it uses mutual TLS.
func DialStream(ctx context.Context, addr string, config *tls.Config) (*wire.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, streamWait)
	defer cancel()
	dialer := net.Dialer{Timeout: dialWait}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("stream to job tracker: %w", err)
	}
	if config != nil {
		if conn, err = identity.Connect(ctx, conn, config); err != nil {
			return nil, fmt.Errorf("stream to job tracker %s: %w", addr, err)
		}
	}
	// If ctx ends, close the connection to interrupt reads and writes.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	in, err := upgrade(conn, addr)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("stream to job tracker %s: %w", addr, err)
	}
	return wire.NewConn(in, conn, conn.Close), nil
}

func upgrade(conn net.Conn, addr string) (*bufio.Reader, error) {
	r, err := http.NewRequest(http.MethodGet, "http://"+addr+"/v1/stream", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", streamProtocol)
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	head := &capped{in: conn, remaining: maxHeader}
	in := bufio.NewReader(head)
	answer, err := http.ReadResponse(in, r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusSwitchingProtocols || !strings.EqualFold(answer.Header.Get("Upgrade"), streamProtocol) {
		if p := new(Error); json.NewDecoder(answer.Body).Decode(p) == nil && p.Text != "" { // head limits its bytes
			return nil, fmt.Errorf("%s: %w", answer.Status, p)
		}
		return nil, fmt.Errorf("the server does not upgrade to %s: %s", streamProtocol, answer.Status)
	}
	head.lifted = true
	return in, nil
}

// capped limits the bytes to read until lifted is set.
type capped struct {
	in        io.Reader
	remaining int
	lifted    bool
}

func (c *capped) Read(p []byte) (int, error) {
	if c.lifted {
		return c.in.Read(p)
	}
	if c.remaining == 0 {
		return 0, fmt.Errorf("the answer is longer than %d bytes", maxHeader)
	}
	n, err := c.in.Read(p[:min(len(p), c.remaining)])
	c.remaining -= n
	return n, err
}
