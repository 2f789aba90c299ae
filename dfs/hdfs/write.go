package hdfs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	client "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs/sasl"
)

const (
	maxKept         = 32 << 20         // bytes kept of a block, for writing it to other DataNodes
	keptPiece       = 256 << 10        // size of the pieces that are kept; a growing buffer would be copied repeatedly
	maxRewritePause = 4 * time.Second  // longest pause before writing a block again
	badNodeTime     = 10 * time.Minute // after a failed write, a DataNode gets no blocks for this time
	flagReplicate   = 0x80             // flag: replicated, not erasure-coded, independent of the directory's policy
)

// badNode is a DataNode with a failed write.
type badNode struct {
	node proto.Message
	at   time.Time
}

// writer writes a file block by block. If a block's DataNodes fail, it abandons the block
// and writes the kept bytes to others.
type writer struct {
	cluster   *cluster
	name      string // URL
	path      string
	settings  dfs.Creation
	mode      uint32
	id        uint64
	blockSize int64
	appending bool // the file was there before
	link      *link

	block    proto.Message // LocatedBlock; nil: none yet
	previous proto.Message // the previous block, an ExtendedBlock
	out      blockWriter   // nil between blocks
	written  int64         // bytes of the block
	kept     int64         // bytes of the block in pieces; less than written if the block exceeds maxKept
	pieces   [][]byte
	err      error // the first one
	closed   bool
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
	w := &writer{cluster: c, name: name, path: path, settings: settings, mode: 0o666 & allowed, link: &link{cluster: c}}
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
	w.blockSize = cmp.Or(w.settings.BlockSize, w.cluster.conf.size("dfs.blocksize"), defaults.BlockSize)
	replication := cmp.Or(w.settings.Replication, w.cluster.conf.size("dfs.replication"), int64(defaults.Replication))
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
	for n < len(p) && w.err == nil {
		piece := p[n:]
		if room := w.blockSize - w.written; int64(len(piece)) > room {
			piece = piece[:room]
		}
		if w.err = w.add(piece); w.err == nil {
			n += len(piece)
		}
		if w.err == nil && w.written == w.blockSize {
			w.err = w.finish()
		}
	}
	return n, failure("write", w.name, w.err)
}

// add writes bytes of the current block.
func (w *writer) add(p []byte) error {
	if w.out == nil {
		if err := w.begin(); err != nil {
			return err
		}
	}
	w.written += int64(len(p))
	w.keep(p)
	if _, err := w.out.Write(p); err != nil {
		return w.rewriteBlock(err, false)
	}
	return nil
}

// keep copies bytes of the block, up to maxKept.
func (w *writer) keep(p []byte) {
	if w.written > maxKept {
		return
	}
	for len(p) > 0 {
		i, at := w.kept/keptPiece, w.kept%keptPiece
		if i == int64(len(w.pieces)) {
			w.pieces = append(w.pieces, make([]byte, keptPiece))
		}
		n := copy(w.pieces[i][at:], p)
		w.kept, p = w.kept+int64(n), p[n:]
	}
}

// writeKept writes the kept bytes.
func (w *writer) writeKept() error {
	for remaining, i := w.kept, 0; remaining > 0; i++ {
		piece := w.pieces[i][:min(remaining, keptPiece)]
		if _, err := w.out.Write(piece); err != nil {
			return err
		}
		remaining -= int64(len(piece))
	}
	return nil
}

// finish waits until the block's replicas have it.
func (w *writer) finish() error {
	if w.out == nil {
		return nil
	}
	if err := w.out.Close(); err != nil {
		if err := w.rewriteBlock(err, true); err != nil {
			return err
		}
	}
	w.previous = part(w.block, "b")
	w.previous.ProtoReflect().Set(w.previous.ProtoReflect().Descriptor().Fields().ByName("numBytes"), value(uint64(w.written)))
	w.out, w.written, w.kept = nil, 0, 0
	w.link.close()
	return nil
}

// begin requests a block, preferably on DataNodes that have not failed.
func (w *writer) begin() error {
	request := func(exclude []proto.Message) (proto.Message, error) {
		resp := message("AddBlockResponse")
		var previous any
		if w.previous != nil {
			previous = w.previous
		}
		err := w.cluster.call("addBlock", message("AddBlockRequest", "src", w.path, "clientName", w.cluster.name,
			"previous", previous, "excludeNodes", exclude, "fileId", w.id), resp)
		if err != nil {
			return nil, err
		}
		return part(resp, "block"), nil
	}
	exclude := w.cluster.excluded()
	block, err := request(exclude)
	if err != nil && len(exclude) > 0 {
		block, err = request(nil)
	}
	if err != nil {
		return err
	}
	w.block = block
	w.out = newBlockWriter(w.cluster.name, block, w.blockSize, w.cluster.byName, w.link.dial)
	return nil
}

// rewriteBlock abandons the block and writes its kept bytes to other DataNodes. If whole is set,
// it also completes the block.
func (w *writer) rewriteBlock(cause error, whole bool) error {
	if errors.Is(cause, sasl.ErrWeaker) || errors.Is(cause, ErrUnsupported) {
		return cause // other DataNodes have the same configuration
	}
	for pause := 50 * time.Millisecond; pause < maxRewritePause; pause *= 2 {
		if err := w.cluster.fs.wait(pause); err != nil {
			return errors.Join(cause, err)
		}
		w.markBad(cause)
		w.link.close()
		_ = w.out.Close() // it has failed; this ends its goroutines
		w.out = nil
		if w.kept < w.written {
			return fmt.Errorf("cannot write a block again after %d bytes, at most %d are kept: %w", w.written, maxKept, cause)
		}
		if err := w.abandon(); err != nil {
			return errors.Join(cause, err)
		}
		if err := w.begin(); err != nil {
			return errors.Join(cause, err)
		}
		err := w.writeKept()
		if err == nil && whole {
			err = w.out.Close()
		}
		if err == nil {
			return nil
		}
		cause = err
	}
	return cause
}

func (w *writer) abandon() error {
	return w.cluster.call("abandonBlock", message("AbandonBlockRequest", "b", part(w.block, "b"), "src", w.path,
		"holder", w.cluster.name, "fileId", w.id), message("AbandonBlockResponse"))
}

// markBad marks the failed DataNode as bad. If the error does not tell which one failed, it
// is the first one: the writer's connection goes there.
func (w *writer) markBad(cause error) {
	nodes := parts(w.block, "locs")
	if len(nodes) == 0 {
		return
	}
	which := max(failedReplica(cause), 0)
	if failed := w.link.failedNode(); failed != "" {
		which = max(slices.IndexFunc(nodes, func(n proto.Message) bool { return w.cluster.nodeAddr(n) == failed }), 0)
	}
	node := nodes[min(which, len(nodes)-1)]
	w.cluster.mu.Lock()
	defer w.cluster.mu.Unlock()
	w.cluster.badNodes[w.cluster.nodeAddr(node)] = badNode{node, time.Now()}
}

// nodeAddr returns a DataNode's address as it appears in responses of other DataNodes.
func (c *cluster) nodeAddr(node proto.Message) string {
	id := part(node, "id")
	return fmt.Sprintf("%s:%d", field(id, "ipAddr").String(), field(id, "xferPort").Uint())
}

func (c *cluster) excluded() (nodes []proto.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for addr, bad := range c.badNodes {
		if time.Since(bad.at) > badNodeTime {
			delete(c.badNodes, addr)
			continue
		}
		nodes = append(nodes, bad.node)
	}
	return nodes
}

// Close returns when the file is complete: every block has the replicas that HDFS requires.
func (w *writer) Close() error {
	if w.closed {
		return failure("close", w.name, fs.ErrClosed)
	}
	w.closed = true
	defer w.unregister()
	if w.err == nil {
		w.err = w.finish()
	}
	if w.err == nil {
		w.err = w.complete()
	} else {
		w.discard()
	}
	return failure("close", w.name, w.err)
}

func (w *writer) complete() error {
	var last any
	if w.previous != nil {
		last = w.previous
	}
	began := time.Now()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		resp := message("CompleteResponse")
		err := w.cluster.call("complete", message("CompleteRequest", "src", w.path, "clientName", w.cluster.name,
			"last", last, "fileId", w.id), resp)
		if err != nil || field(resp, "result").Bool() {
			return err
		}
		if time.Since(began) > w.cluster.fs.options.RetryFor {
			return errors.New("too few DataNodes confirmed the last block")
		}
		if err := w.cluster.fs.wait(pause); err != nil {
			return err
		}
	}
}

// discard removes an unfinished file, or closes it without the block that was being appended.
func (w *writer) discard() error {
	w.link.close()
	unfinished := w.out != nil || w.written > 0
	if w.out != nil {
		_ = w.out.Close()
		w.out = nil
	}
	if w.appending {
		var err error
		if unfinished {
			err = w.abandon()
		}
		return errors.Join(err, w.complete())
	}
	_, err := w.cluster.remove(w.path, false)
	return err
}

// Abort removes the file: no reader can have used it. See Append for one that was there before.
func (w *writer) Abort() error {
	if w.closed {
		return failure("abort", w.name, fs.ErrClosed)
	}
	w.closed = true
	defer w.unregister()
	return failure("abort", w.name, w.discard())
}
