package hdfs

import (
	"errors"
	"io/fs"
	"time"

	client "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/dfs"
)

// protectedWriter writes to DataNodes that require authentication, which only the library's
// own writer supports. It fails with its DataNode.
type protectedWriter struct {
	own    *writer
	conn   *conn
	out    *client.FileWriter
	closed bool
}

func (w *writer) byLibrary() (dfs.Writer, error) {
	p := &protectedWriter{own: w}
	err := w.cluster.try(func(one *conn, _ earlierTries) (err error) {
		if p.out, err = w.createByLibrary(one); err == nil {
			w.cluster.mu.Lock()
			one.users++
			w.cluster.mu.Unlock()
			p.conn = one
		}
		return err
	})
	if err != nil {
		w.forget()
		return nil, failure("create", w.name, err)
	}
	return p, nil
}

func (w *writer) createByLibrary(one *conn) (*client.FileWriter, error) {
	if w.mode == openModes.file { // the library's default mode
		return withDialer(one.client, w.link.dial).Create(w.path)
	}
	defaults, err := one.client.ServerDefaults()
	if err != nil {
		return nil, err
	}
	return withDialer(one.client, w.link.dial).CreateFile(w.path, defaults.Replication, defaults.BlockSize, fs.FileMode(w.mode))
}

func (p *protectedWriter) Write(b []byte) (int, error) {
	if p.closed {
		return 0, failure("write", p.own.name, fs.ErrClosed)
	}
	n, err := p.out.Write(b)
	return n, failure("write", p.own.name, err)
}

func (p *protectedWriter) end() {
	p.closed = true
	p.own.cluster.release(p.conn, false)
	p.own.forget()
}

func (p *protectedWriter) Close() error {
	if p.closed {
		return failure("close", p.own.name, fs.ErrClosed)
	}
	defer p.end()
	err := p.out.Close()
	began := time.Now()
	for client.IsErrReplicating(err) && time.Since(began) < p.own.cluster.fs.options.RetryFor {
		if e := p.own.cluster.fs.wait(100 * time.Millisecond); e != nil {
			return failure("close", p.own.name, errors.Join(err, e))
		}
		err = p.out.Close()
	}
	return failure("close", p.own.name, err)
}

func (p *protectedWriter) Abort() error {
	if p.closed {
		return failure("abort", p.own.name, fs.ErrClosed)
	}
	defer p.end()
	p.own.link.close()
	_ = p.out.Close() // the connection is closed; this ends its goroutines
	return failure("abort", p.own.name, p.own.discard())
}
