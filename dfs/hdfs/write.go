package hdfs

import (
	"cmp"
	"fmt"
	"io/fs"
	"strings"

	client "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/dfs"
)

const flagReplicate = 0x80 // flag: replicated, not erasure-coded, independent of the directory's policy

// writer writes a file. Write copies bytes into packets; the sender's goroutine sends them, and
// waits for NameNode and DataNodes while the caller goes on. A failure is returned by the next
// Write and by Close.
type writer struct {
	*sender
	name    string // URL
	packet  *packet
	written int64 // bytes of the current block, sent or not
	started bool  // the sender runs
	closed  bool
}

func newWriter(c *cluster, name, path string, settings dfs.Creation) *writer {
	return &writer{sender: newSender(c, path, settings), name: name}
}

func (f *FS) Create(name string) (dfs.Writer, error) { return f.create(name, dfs.Creation{}) }

func (f *FS) create(name string, settings dfs.Creation) (dfs.Writer, error) {
	c, path, name, err := f.resolve("create", name)
	if err != nil {
		return nil, err
	}
	allowed, err := c.allowed(settings)
	if err != nil {
		return nil, failure("create", name, err)
	}
	if !c.claim(path) {
		return nil, failure("create", name, fs.ErrExist)
	}
	w := newWriter(c, name, path, settings)
	w.mode = 0o666 & allowed
	c.addWriters(1)
	if err := c.retry(w.create); err != nil {
		w.unregister()
		return nil, failure("create", name, err)
	}
	return w, nil
}

// claim reports whether no other writer of this process has a path, and takes it; unregister returns it.
func (c *cluster) claim(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	isOpen := c.creating[path]
	c.creating[path] = true
	return !isOpen
}

// create makes the file. If an earlier call got no response, it may have made the file,
// which this client then has open. No other writer of this process has the path, so create
// replaces the file.
func (w *writer) create(conn *pooledConn, earlier retryState) error {
	defaults, err := conn.client.ServerDefaults() // the response is already there, see connect
	if err != nil {
		return err
	}
	blockSize, err := w.cluster.conf.size("dfs.blocksize")
	if err != nil {
		return err
	}
	copies, err := w.cluster.conf.size("dfs.replication")
	if err != nil {
		return err
	}
	w.blockSize = cmp.Or(w.settings.BlockSize, blockSize, defaults.BlockSize)
	replication := cmp.Or(w.settings.Replication, copies, int64(defaults.Replication))
	req := message("CreateRequest", "src", w.path, "masked", permission(w.mode), "clientName", w.cluster.name,
		"createFlag", uint32(1|flagReplicate), "createParent", false, "replication", uint32(replication), "blockSize", uint64(w.blockSize))
	resp := message("CreateResponse")
	err = conn.remote.Execute("create", req, resp)
	if answer, ok := remoteError(err); ok && earlier.mayHaveApplied && strings.Contains(answer.Message(), w.cluster.name) {
		drop := message("DeleteRequest", "src", w.path, "recursive", false)
		if err = conn.remote.Execute("delete", drop, message("DeleteResponse")); err == nil {
			err = conn.remote.Execute("create", req, resp)
		}
	}
	if err != nil {
		return err
	}
	if part(resp, "fs").(*client.FileStatus).GetFileEncryptionInfo() != nil {
		return &permanentError{fmt.Errorf("encrypted files: %w", ErrUnsupported)}
	}
	w.id = part(resp, "fs").(*client.FileStatus).GetFileId()
	return nil
}

// forget removes a writer from the cluster's state.
func (w *writer) unregister() {
	w.link.close()
	w.cluster.mu.Lock()
	delete(w.cluster.creating, w.path)
	w.cluster.mu.Unlock()
	w.cluster.addWriters(-1)
}

func (w *writer) Write(p []byte) (n int, err error) {
	if w.closed {
		return 0, failure("write", w.name, fs.ErrClosed)
	}
	if w.hasEnded() {
		return 0, failure("write", w.name, w.err)
	}
	for n < len(p) {
		if w.packet == nil {
			w.packet = w.newPacket()
		}
		rest := p[n:]
		added := w.packet.add(rest[:min(int64(len(rest)), w.blockSize-w.written)])
		n, w.written = n+added, w.written+int64(added)
		if w.written == w.blockSize {
			w.packet.endBlock, w.written = true, 0
		}
		if w.packet.endBlock || w.packet.size == packetSize {
			if err := w.pass(); err != nil {
				return n, failure("write", w.name, err)
			}
		}
	}
	return n, nil
}

// pass passes the packet to the sender. It waits while the queue is full.
func (w *writer) pass() error {
	if !w.started {
		w.started = true
		go w.run()
	}
	p := w.packet
	w.packet = nil
	select {
	case w.queue <- p:
		return nil
	case <-w.ended:
		return w.err
	}
}

// Close returns when the file is complete: every block has the replicas that HDFS requires.
func (w *writer) Close() error {
	if w.closed {
		return failure("close", w.name, fs.ErrClosed)
	}
	w.closed = true
	defer w.unregister()
	err := w.flush()
	if err == nil {
		err = w.complete()
	} else {
		w.discard()
	}
	return failure("close", w.name, err)
}

// flush waits until the DataNodes have all blocks.
func (w *writer) flush() error {
	if w.packet != nil {
		if err := w.pass(); err != nil {
			return err
		}
	}
	if !w.started {
		return nil
	}
	close(w.queue)
	<-w.ended
	return w.err
}

// Abort removes the file: no reader can have used it. See Append for one that was there before.
func (w *writer) Abort() error {
	if w.closed {
		return failure("abort", w.name, fs.ErrClosed)
	}
	w.closed = true
	defer w.unregister()
	close(w.aborted)
	w.link.end()
	if w.started {
		<-w.ended
	}
	return failure("abort", w.name, w.discard())
}
