package hdfs_test

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// relay forwards calls to a NameNode and counts the answers. It can drop an answer, and closes the
// connection then.
type relay struct {
	listen net.Listener
	to     string
	drops  func(method string, n int) bool // the nth answer to a method; one call at a time

	mu                sync.Mutex
	answered, dropped map[string]int // by method
}

func newRelay(t *testing.T, to string, loses func(method string, n int) bool) *relay {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listen.Close() })
	r := &relay{listen: listen, to: to, drops: loses, answered: make(map[string]int), dropped: make(map[string]int)}
	go func() {
		for {
			conn, err := listen.Accept()
			if err != nil {
				return
			}
			go r.forward(conn)
		}
	}()
	return r
}

// url returns a file's URL through the relay.
func (r *relay) url(name string) string {
	return "hdfs://" + r.listen.Addr().String() + strings.TrimPrefix(name, "hdfs://"+r.to)
}

func (r *relay) port() int { return r.listen.Addr().(*net.TCPAddr).Port }

// calls returns the number of answers to a method, and the number of dropped ones.
func (r *relay) calls(method string) (answered, lost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answered[method], r.dropped[method]
}

func (r *relay) countAnswer(method string) (lose bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered[method]++
	if r.drops == nil || !r.drops(method, r.answered[method]) {
		return false
	}
	r.dropped[method]++
	return true
}

// forward forwards a connection: a greeting, the client's identity, then one call at a time.
func (r *relay) forward(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer to.Close()
	if _, err := io.CopyN(to, from, 7); err != nil {
		return
	}
	for greeted := false; ; greeted = true {
		call, err := frame(from)
		if err != nil {
			return
		}
		if _, err := to.Write(call); err != nil {
			return
		}
		if !greeted {
			continue // not a call
		}
		answer, err := frame(to)
		if err != nil || r.countAnswer(method(call)) {
			return
		}
		if _, err := from.Write(answer); err != nil {
			return
		}
	}
}

// frame reads a length and that many bytes, and returns all.
func frame(r io.Reader) ([]byte, error) {
	b := make([]byte, 4)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	b = append(b, make([]byte, binary.BigEndian.Uint32(b))...)
	_, err := io.ReadFull(r, b[4:])
	return b, err
}
