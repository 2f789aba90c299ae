package hdfs_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs"
	"github.com/quernmr/quern/integration/hdfs/minicluster"
)

// cutter cuts a connection to a NameNode at one request: before the request, or before its
// answer.
type cutter struct {
	nameNode string

	mu           sync.Mutex
	requests     int
	methods      []string
	cutAt        int // request to be cut, from 1; 0: none
	afterRequest bool
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil || addr != c.nameNode {
		return conn, err
	}
	return &cutConn{Conn: conn, cutter: c}, nil
}

type cutConn struct {
	net.Conn
	cutter     *cutter
	greetings  int // first writes: "hrpc", then the client's identity
	dropAnswer bool
}

func (c *cutConn) Write(p []byte) (int, error) {
	if c.greetings < 2 {
		c.greetings++
		return c.Conn.Write(p)
	}
	c.cutter.mu.Lock()
	c.cutter.requests++
	c.cutter.methods = append(c.cutter.methods, method(p))
	cut, after := c.cutter.requests == c.cutter.cutAt, c.cutter.afterRequest
	c.cutter.mu.Unlock()
	if cut && !after {
		c.Conn.Close()
		return 0, errors.New("cut before the request")
	}
	c.dropAnswer = cut
	return c.Conn.Write(p)
}

// method returns the method's name in a request. A request is its length, then two headers with
// length prefixes. The second header begins with the name.
func method(p []byte) string {
	p = p[4:]
	n, size := binary.Uvarint(p)
	p = p[size+int(n):]
	_, size = binary.Uvarint(p)
	p = p[size+1:]
	n, size = binary.Uvarint(p)
	return string(p[size : size+int(n)])
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.dropAnswer && err == nil {
		c.Conn.Close() // the answer has arrived, so the NameNode has done the request
		return 0, errors.New("cut before the answer")
	}
	return n, err
}

// Row 30: a connection is cut at any request of a task, before it or before its answer. The
// calls' results stay the same.
func TestEveryRequestCut(t *testing.T) {
	c := cluster(t)
	cut := &cutter{nameNode: c.NameNodes[0].Addr()}
	run := func() {
		f := client(t, c, func(o *hdfs.Options) { o.Dial = cut.dial })
		defer f.Close()
		top := newDir(t, c, f)
		if err := commit(f, top); err != nil {
			t.Errorf("request %d cut (after: %v): %v", cut.cutAt, cut.afterRequest, err)
		}
	}
	run()
	requests := cut.requests
	t.Logf("%d requests", requests)
	for i := range requests {
		for _, after := range []bool{false, true} {
			cut.requests, cut.cutAt, cut.afterRequest = 0, i+1, after
			run()
		}
	}
}

// commit makes the calls of a task, of a job's commit and of a reader.
func commit(f dfs.FS, top string) error {
	at := func(name string) string { return dfs.Join(top, name) }
	if err := f.Mkdir(at("a")); err != nil {
		return err
	}
	content := bytes.Repeat([]byte("0123456789abcde\n"), (blockSize+1<<10)/16)
	w, err := f.Create(at("a/part"))
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	// A repeated rename fails if the first one succeeded and its answer was lost.
	if err := f.RenameDir(at("a"), at("t")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.RenameFile(at("t/part"), at("part")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	got, err := readAll(f, at("part"))
	if err != nil {
		return err
	}
	if !bytes.Equal(got, content) {
		return fmt.Errorf("the file has %d bytes, or others, want %d", len(got), len(content))
	}
	if err := f.Remove(at("t")); err != nil {
		return err
	}
	infos, err := f.List(top)
	if err != nil {
		return err
	}
	if len(infos) != 1 {
		return fmt.Errorf("left behind: %v", infos)
	}
	return f.RemoveAll(top)
}

// If a server is not a NameNode, an address has no server or a host is unknown, the error says
// so.
func TestNoNameNode(t *testing.T) {
	c := cluster(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	f := client(t, c, func(o *hdfs.Options) { o.FirstRetryFor = 200 * time.Millisecond })
	for name, want := range map[string]string{
		"hdfs://" + c.NameNodes[0].HTTPAddr() + "/x": "no NameNode",
		"hdfs://" + closed.Addr().String() + "/x":    "connection refused",
		"hdfs://nosuchservice.invalid/x":             "neither a nameservice",
	} {
		_, err := f.Stat(name)
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(want)) || !bytes.Contains([]byte(err.Error()), []byte(name)) {
			t.Errorf("Stat of %s: %v, want %q", name, err, want)
		}
	}
}

// An answer with a huge length is refused.
func TestHugeLength(t *testing.T) {
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listen.Close()
	go func() {
		for {
			conn, err := listen.Accept()
			if err != nil {
				return
			}
			conn.Write(binary.BigEndian.AppendUint32(nil, 1<<31))
			t.Cleanup(func() { conn.Close() })
		}
	}()
	f := hdfs.New(hdfs.Options{User: minicluster.Superuser, FirstRetryFor: time.Second})
	defer f.Close()
	if _, err := f.Stat("hdfs://" + listen.Addr().String() + "/x"); err == nil {
		t.Error("an answer of 2 GiB was accepted")
	}
}
