// Package listentest tests servers against clients that connect and send nothing, for packages that
// listen on a port.
package listentest

import (
	"net"
	"testing"
	"time"
)

// patience limits waits.
const patience = 60 * time.Second

// Held has silent connections.
type Held struct {
	n      int
	closed chan struct{} // a value for each connection that the server has closed
}

// Hold opens n connections to an address, and sends nothing until the test ends.
func Hold(t testing.TB, addr string, n int) *Held {
	t.Helper()
	h := &Held{n, make(chan struct{}, n)}
	for range n {
		conn, err := net.DialTimeout("tcp", addr, patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
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
			t.Fatalf("the server holds %d silent connections, want %d", h.n, left)
		}
	}
}
