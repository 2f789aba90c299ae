package hdfs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"

	client "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/hdfs/sasl"
)

const maxSkip = 64 << 10 // skip up to this many bytes by reading instead of reconnecting

// file reads a file. It keeps one stream open and continues in it while offsets are
// consecutive. For any other offset it reconnects.
type file struct {
	cluster *cluster
	path    string
	info    dfs.Info
	id      uint64 // of the file, independent of its name

	mu     sync.Mutex
	conn   *pooledConn
	link   *link
	reader *client.FileReader // nil: must be opened again
	at     int64              // offset of reader
	next   int64              // offset of the next Read
	reads  []dfs.Read
	closed bool
}

var _ dfs.Metered = (*file)(nil)

func (f *FS) Open(name string) (dfs.File, error) {
	c, path, name, err := f.resolve("open", name)
	if err != nil {
		return nil, err
	}
	r := &file{cluster: c, path: path, info: dfs.Info{Name: name}, link: &link{cluster: c}}
	forgetFailures(time.Now().Add(-f.options.RetryNodeAfter))
	if err := r.open(); err != nil {
		return nil, failure("open", name, err)
	}
	return r, nil
}

// open opens the file. If it was open before, open checks that it is the same file.
func (r *file) open() error {
	return r.cluster.retry(func(conn *pooledConn, _ retryState) error {
		reader, err := withDialer(conn.client, r.link.dial).Open(r.path)
		if err != nil {
			return err
		}
		status := reader.Stat().Sys().(*client.FileStatus)
		info := describe(r.info.Name, status)
		switch {
		case info.Dir:
			err = syscall.EISDIR
		case status.GetFileEncryptionInfo() != nil:
			err = fmt.Errorf("encrypted files: %w", ErrUnsupported)
		case status.GetEcPolicy() != nil:
			// HDFS sends names only of custom policies.
			policy := cmp.Or(status.GetEcPolicy().GetName(), fmt.Sprint(status.GetEcPolicy().GetId()))
			err = fmt.Errorf("erasure-coded files (policy %s): %w", policy, ErrUnsupported)
		case r.id != 0 && (status.GetFileId() != r.id || info.Size != r.info.Size || !info.Modified.Equal(r.info.Modified)):
			err = dfs.ErrChanged
		}
		if err != nil {
			return &permanentError{err}
		}
		r.info, r.id, r.reader, r.at = info, status.GetFileId(), reader, 0
		readByID(reader, r.id)
		r.keepOpen(conn)
		return nil
	})
}

// keepOpen prevents that the client is closed as idle: the library requests block locations
// only at the first read.
func (r *file) keepOpen(conn *pooledConn) {
	r.cluster.mu.Lock()
	conn.users++
	r.cluster.mu.Unlock()
	r.conn = conn
}

func (r *file) closeReader(isBroken bool) {
	if r.reader != nil {
		r.reader.Close()
	}
	r.link.close()
	if r.conn != nil {
		r.cluster.release(r.conn, isBroken)
	}
	r.reader, r.conn = nil, nil
}

func (r *file) Info() dfs.Info { return r.info }

func (r *file) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.readSome(p, r.next)
	r.next += int64(n)
	if err != nil && err != io.EOF {
		err = failure("read", r.info.Name, err)
	}
	return n, err
}

func (r *file) ReadAt(p []byte, off int64) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if off < 0 {
		return 0, failure("read", r.info.Name, fs.ErrInvalid)
	}
	for n < len(p) {
		m, err := r.readSome(p[n:], off+int64(n))
		n += m
		if err == io.EOF {
			return n, err
		}
		if err != nil {
			return n, failure("read", r.info.Name, err)
		}
	}
	return n, nil
}

// readSome reads at least one byte at an offset, from any DataNode that stores it.
func (r *file) readSome(p []byte, off int64) (int, error) {
	if r.closed {
		return 0, fs.ErrClosed
	}
	if len(p) == 0 {
		return 0, nil
	}
	if off >= r.info.Size {
		return 0, io.EOF
	}
	began := time.Now()
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		n, err := r.readOnce(p, off)
		if n > 0 {
			return n, nil
		}
		if errors.Is(err, dfs.ErrChanged) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrUnsupported) || errors.Is(err, sasl.ErrWeaker) {
			return 0, err
		}
		if time.Since(began)+pause > r.cluster.fs.options.ReadRetryFor {
			return 0, r.blockError(off, err)
		}
		if e := r.cluster.fs.wait(pause); e != nil {
			return 0, errors.Join(err, e)
		}
		forgetFailures(time.Now()) // all DataNodes have failed
	}
}

// tryRead reads once. After a failure it opens the file again, because its blocks may
// have moved.
func (r *file) readOnce(p []byte, off int64) (int, error) {
	if r.reader == nil {
		if err := r.open(); err != nil {
			return 0, err
		}
	}
	if err := r.seek(off); err != nil {
		return 0, r.failed(err)
	}
	if r.info.BlockSize > 0 && off%r.info.BlockSize == 0 {
		forgetFailures(time.Now().Add(-r.cluster.fs.options.RetryNodeAfter))
	}
	n, err := r.read(p)
	if n > 0 {
		return n, nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return 0, r.failed(err)
}

func (r *file) failed(err error) error {
	dialErrs := r.link.failures()
	_, answered := remoteError(err)
	connErr := r.conn.lastError()
	if answered {
		_, err = classify(err, nil)
	} else if connErr != nil {
		err = errors.Join(err, connErr)
	}
	r.closeReader(connErr != nil)
	if errors.Is(err, fs.ErrNotExist) {
		if e := r.open(); e != nil { // checks whether another file has the name now
			return e
		}
	}
	if dialErrs == nil || errors.Is(dialErrs, err) {
		return err
	}
	return errors.Join(dialErrs, err)
}

// read reads at r.at and counts the bytes and time per DataNode.
func (r *file) read(p []byte) (int, error) {
	began := time.Now()
	n, err := r.reader.Read(p)
	r.at += int64(n)
	addr := r.link.current()
	i := slices.IndexFunc(r.reads, func(r dfs.Read) bool { return r.Addr == addr })
	if i < 0 {
		i = len(r.reads)
		r.reads = append(r.reads, dfs.Read{Addr: addr})
	}
	r.reads[i].Bytes += int64(n)
	r.reads[i].Time += time.Since(began)
	return n, err
}

// seek moves to an offset. It skips short gaps itself: after the library's own skips, the
// library continues at a wrong offset if a DataNode fails. It does nothing for the current
// offset, because the library would reconnect.
func (r *file) seek(off int64) error {
	if gap := off - r.at; gap > 0 && gap <= maxSkip && r.at > 0 {
		skipped := make([]byte, gap)
		for r.at < off {
			n, err := r.read(skipped[:off-r.at])
			if n == 0 {
				return errors.Join(err, io.ErrUnexpectedEOF)
			}
		}
	}
	if off == r.at {
		return nil
	}
	// Go backwards first: that ends the stream, so that nothing is skipped in it.
	if _, err := r.reader.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := r.reader.Seek(off, io.SeekStart); err != nil {
		return err
	}
	r.at = off
	return nil
}

// blockError adds the unreadable block's number to an error.
func (r *file) blockError(off int64, cause error) error {
	resp := message("GetBlockLocationsResponse")
	req := message("GetBlockLocationsRequest", "src", r.path, "offset", uint64(off), "length", uint64(1))
	if err := r.cluster.call("getBlockLocations", req, resp); err != nil || !has(resp, "locations") {
		return errors.Join(cause, err)
	}
	for _, block := range parts(part(resp, "locations"), "blocks") {
		return fmt.Errorf("block blk_%d at offset %d, with %d live replicas: %w", field(part(block, "b"), "blockId").Uint(),
			field(block, "offset").Uint(), field(block, "locs").List().Len(), cause)
	}
	return cause
}

func (r *file) Reads() []dfs.Read {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reads)
}

func (r *file) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return failure("close", r.info.Name, fs.ErrClosed)
	}
	r.closed = true
	r.closeReader(false)
	return nil
}
