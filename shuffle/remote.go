package shuffle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// DefaultStall is the default of the longest wait for the next [StallBytes], or for the rest.
const DefaultStall = 30 * time.Second

// StallBytes is the number of bytes that counts as progress. A server that sends only a few
// bytes at a time is stalled.
const StallBytes = 64 << 10

// remoteTries is the number of requests for a block. A second request helps if the network
// damaged the block, but not if the server's disk did.
const remoteTries = 2

// ErrStalled reports a URL that delivered too little for too long.
var ErrStalled = errors.New("no progress")

// A fetch with a limited rate reads paceBytes at a time. After a pause above maxPaceWait it
// makes a new request, because the server closes connections after sendWait.
const (
	paceBytes   = 32 << 10
	maxPaceWait = sendWait / 3
)

// remoteInput reads a stream from a URL. To read from another offset than the end of the
// last read, it makes a new request for the range from that offset.
type remoteInput struct {
	ctx    context.Context
	client *http.Client
	seg    wire.Segment
	stall  time.Duration
	token  string
	pace   func(ctx context.Context, n int) error // see FetchOptions
	size   int64                                  // -1: not known yet
	stream bool                                   // the answer to a batch: it has no ranges and no length
	paused bool                                   // a stream has waited so long that the server may have closed it
	info   partitionInfo                          // from the first response

	body   io.ReadCloser
	at     int64 // of the body's next byte
	cancel context.CancelCauseFunc
	timer  *time.Timer // calls cancel; runs only during open and read

	stallLeft time.Duration // remaining time for the next StallBytes
	stallRead int           // bytes read of the next StallBytes
}

// partitionInfo is a server's description of a partition, empty if the server gives none.
type partitionInfo struct{ records, digest string }

// openRemote requests a segment's URL. A segment without a length extends to the end of the
// content.
func openRemote(ctx context.Context, s wire.Segment, o FetchOptions) (*blockReader, partitionInfo, error) {
	in := newRemoteInput(ctx, s, o)
	if s.Length > 0 {
		in.size = s.Length
	}
	r := &blockReader{ctx: ctx, seg: s, in: in, tries: remoteTries}
	if err := in.open(0); err != nil {
		return nil, partitionInfo{}, r.explain(err)
	}
	r.size = in.size
	return r, in.info, nil
}

func newRemoteInput(ctx context.Context, s wire.Segment, o FetchOptions) *remoteInput {
	client, stall := cmp.Or(o.Client, http.DefaultClient), cmp.Or(o.Stall, DefaultStall)
	return &remoteInput{ctx: ctx, client: client, seg: s, stall: stall, token: o.Token, pace: o.Pace, size: -1}
}

func (r *remoteInput) readAt(p []byte, at int64) error {
	if r.at != at {
		r.endRequest()
	}
	for len(p) > 0 {
		if r.body == nil {
			if err := r.open(at); err != nil {
				return err
			}
		}
		n, err := r.read(p)
		at += int64(n)
		p = p[n:]
		if err != nil && len(p) > 0 {
			return r.endWithError(err)
		}
		if err := r.wait(n); err != nil {
			return r.endWithError(err)
		}
	}
	return nil
}

// read reads the next bytes until stallLeft is used up.
func (r *remoteInput) read(p []byte) (int, error) {
	if r.pace != nil {
		p = p[:min(len(p), paceBytes)]
	}
	r.timer.Reset(r.stallLeft)
	began := time.Now()
	n, err := r.body.Read(p)
	r.timer.Stop()
	r.stallLeft -= time.Since(began)
	if r.stallRead += n; r.stallRead >= StallBytes {
		r.stallLeft, r.stallRead = r.stall, 0
	}
	r.at += int64(n)
	return n, err
}

// wait waits until pace allows the next read. This time does not count as a stall.
func (r *remoteInput) wait(n int) error {
	if r.pace == nil || n == 0 {
		return nil
	}
	began := time.Now()
	err := r.pace(r.ctx, n)
	switch long := time.Since(began) > maxPaceWait; {
	case err != nil || !long:
	case r.stream:
		r.paused = true
	default:
		r.endRequest()
	}
	return err
}

// endWithError ends the request and adds the position to its error.
func (r *remoteInput) endWithError(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	err = fmt.Errorf("after %d of %d bytes: %w", r.at, r.size, err)
	r.endRequest()
	return err
}

// open requests the bytes from offset at.
func (r *remoteInput) open(at int64) error {
	ctx, cancel := context.WithCancelCause(r.ctx)
	r.cancel = cancel
	r.stallLeft, r.stallRead = r.stall, 0
	r.timer = time.AfterFunc(r.stall, func() { cancel(fmt.Errorf("%w for %v", ErrStalled, r.stall)) })
	defer r.timer.Stop()
	response, err := r.request(ctx, at)
	if err == nil {
		r.body, r.at = &causeReader{response.Body, ctx}, at
		err = r.checkResponse(response, at)
	} else if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		r.endRequest()
	}
	return err
}

func (r *remoteInput) request(ctx context.Context, at int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.seg.URL, nil)
	if err != nil {
		return nil, err
	}
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	from := r.seg.Offset + at
	switch {
	case r.seg.Length > 0:
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, r.seg.Offset+r.seg.Length-1))
	case from > 0:
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	return r.client.Do(request)
}

// checkResponse checks that the response matches the request.
func (r *remoteInput) checkResponse(response *http.Response, at int64) error {
	header := response.Header
	ranged := response.Request.Header.Get("Range") != ""
	switch {
	case header.Get(headerCorrupt) != "":
		return &CorruptError{Segment: r.seg, Reason: "the server says: " + r.errorText()}
	case response.StatusCode == http.StatusOK && !ranged:
	case response.StatusCode == http.StatusPartialContent && ranged:
		if got, want := header.Get("Content-Range"), fmt.Sprintf("bytes %d-", r.seg.Offset+at); !strings.HasPrefix(got, want) {
			return fmt.Errorf("requested the range %s, got %q", want, got)
		}
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden:
		// The server's data may be good, so this is no refusedError.
		return fmt.Errorf("the server refuses the token: %s: %s", response.Status, r.errorText())
	default:
		return &refusedError{response.StatusCode, response.Status + ": " + r.errorText()}
	}
	if r.stream {
		return nil
	}
	if response.ContentLength < 0 || r.size >= 0 && response.ContentLength != r.size-at {
		return fmt.Errorf("response of %d bytes from offset %d of %d", response.ContentLength, at, r.size)
	}
	info := partitionInfo{header.Get(headerRecords), header.Get(headerDigest)}
	if r.info == (partitionInfo{}) {
		r.info, r.size = info, at+response.ContentLength
	} else if r.info != info {
		return fmt.Errorf("partition changed from %v to %v", r.info, info)
	}
	return nil
}

// refusedError is a response without a partition.
type refusedError struct {
	code int
	text string
}

func (e *refusedError) Error() string { return e.text }

// Is makes a 404 match fs.ErrNotExist, as for a missing file.
func (e *refusedError) Is(target error) bool {
	return target == fs.ErrNotExist && e.code == http.StatusNotFound
}

// errorText returns the beginning of an error response.
func (r *remoteInput) errorText() string {
	b, err := io.ReadAll(io.LimitReader(r.body, 500))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b))
}

// endRequest ends the request, if there is one.
func (r *remoteInput) endRequest() {
	if r.body != nil {
		r.body.Close()
		r.body = nil
	}
	if r.cancel != nil {
		r.cancel(nil)
		r.cancel = nil
	}
}

func (r *remoteInput) close() error {
	r.endRequest()
	return nil
}

// causeReader returns the cause of a cancellation as the error.
type causeReader struct {
	io.ReadCloser
	ctx context.Context
}

func (r *causeReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err != nil && err != io.EOF && r.ctx.Err() != nil {
		err = context.Cause(r.ctx)
	}
	return n, err
}

// summary parses a server's description of a partition.
func (t partitionInfo) summary() (records int64, digest uint64, err error) {
	records, err = strconv.ParseInt(t.records, 10, 64)
	if err == nil {
		digest, err = strconv.ParseUint(t.digest, 16, 64)
	}
	if err != nil {
		err = fmt.Errorf("response without the partition's digest: %w", err)
	}
	return records, digest, err
}
