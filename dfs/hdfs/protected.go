package hdfs

import (
	"errors"
	"io/fs"
	"time"

	client "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/dfs"
)

// protectedWriter writes to DataNodes that require authentication, which only the library's
// own writer supports. It fails if its DataNode fails.
type protectedWriter struct {
	base   *writer
	conn   *pooledConn
	out    *client.FileWriter
	closed bool
}

func (w *writer) newProtectedWriter() (dfs.Writer, error) {
	p := &protectedWriter{base: w}
	err := w.cluster.retry(func(conn *pooledConn, _ retryState) (err error) {
		if p.out, err = w.createByLibrary(conn); err == nil {
			w.cluster.mu.Lock()
			conn.users++
			w.cluster.mu.Unlock()
			p.conn = conn
		}
		return err
	})
	if err != nil {
		w.unregister()
		return nil, failure("create", w.name, err)
	}
	return p, nil
}

func (w *writer) createByLibrary(conn *pooledConn) (*client.FileWriter, error) {
	if w.mode == openModes.file { // the library's default mode
		return withDialer(conn.client, w.link.dial).Create(w.path)
	}
	defaults, err := conn.client.ServerDefaults()
	if err != nil {
		return nil, err
	}
	return withDialer(conn.client, w.link.dial).CreateFile(w.path, defaults.Replication, defaults.BlockSize, fs.FileMode(w.mode))
}

func (p *protectedWriter) Write(b []byte) (int, error) {
	if p.closed {
		return 0, failure("write", p.base.name, fs.ErrClosed)
	}
	n, err := p.out.Write(b)
	return n, failure("write", p.base.name, err)
}

func (p *protectedWriter) end() {
	p.closed = true
	p.base.cluster.release(p.conn, false)
	p.base.unregister()
}

func (p *protectedWriter) Close() error {
	if p.closed {
		return failure("close", p.base.name, fs.ErrClosed)
	}
	defer p.end()
	err := p.out.Close()
	began := time.Now()
	for client.IsErrReplicating(err) && time.Since(began) < p.base.cluster.fs.options.RetryFor {
		if e := p.base.cluster.fs.wait(100 * time.Millisecond); e != nil {
			return failure("close", p.base.name, errors.Join(err, e))
		}
		err = p.out.Close()
	}
	return failure("close", p.base.name, err)
}

func (p *protectedWriter) Abort() error {
	if p.closed {
		return failure("abort", p.base.name, fs.ErrClosed)
	}
	defer p.end()
	p.base.link.close()
	_ = p.out.Close() // the connection is closed; this ends its goroutines
	return failure("abort", p.base.name, p.base.discard())
}
