// Package listentest tests servers against clients that connect and then wait, for packages that
// listen on a port.
package listentest

import (
	"io"
	"net"
	"testing"
	"time"
)

// patience limits waits.
const patience = 60 * time.Second

// Held has waiting connections.
type Held struct {
	n      int
	closed chan struct{} // a value for each connection that the server has closed
}

// Hold opens n connections to an address. Each sends a text, and then nothing until the test ends.
func Hold(t testing.TB, addr string, n int, sent string) *Held {
	t.Helper()
	h := &Held{n, make(chan struct{}, n)}
	for range n {
		conn, err := net.DialTimeout("tcp", addr, patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		io.WriteString(conn, sent) // fails if the server has closed it already
		go func() {
			conn.Read(make([]byte, 1)) // any end is fine
			h.closed <- struct{}{}
		}()
	}
	return h
}

// AwaitLeft waits until the server has closed all but these connections.
func (h *Held) AwaitLeft(t testing.TB, left int) {
	t.Helper()
	timeout := time.After(patience)
	for ; h.n > left; h.n-- {
		select {
		case <-h.closed:
		case <-timeout:
			t.Fatalf("the server holds %d connections, want %d", h.n, left)
		}
	}
}
