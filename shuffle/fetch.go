package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/quernmr/quern/wire"
)

// Fetched is a partition of a map output, copied to a local segment file.
type Fetched struct {
	Segment wire.Segment
	Records int64
	Digest  uint64
}

// FetchOptions configures [Fetch]. The zero value is valid.
type FetchOptions struct {
	Client *http.Client  // nil: http.DefaultClient
	Stall  time.Duration // longest wait for the next [StallBytes]; 0: [DefaultStall]

	// Token, if not empty, is the job's token, which authorizes the request.
	Token string

	// Pace, if not nil, limits the rate: after n bytes it blocks until the next may be
	// read. Its time does not count as a stall. An error ends the fetch.
	Pace func(ctx context.Context, n int) error
}

// Fetch copies a partition from the URL of a [Handler] into a new segment file. It verifies
// every block on arrival, and all of them against the digest in the server's index. It
// requests a short or damaged block once more, and fails with [ErrStalled] if the next
// [StallBytes] take longer than o.Stall. After an error it removes the file. Errors are
//
//   - [CorruptError]: the server's data is damaged;
//   - [UnreadableError]: the data cannot be read; it matches fs.ErrNotExist if the server
//     does not have it;
//   - others: the local file cannot be written.
func Fetch(ctx context.Context, from, file string, o FetchOptions) (Fetched, error) {
	s := segmentAt(from)
	r, info, err := openRemote(ctx, s, o)
	if err != nil {
		return Fetched{}, err
	}
	defer r.in.close()
	var want Fetched
	if want.Records, want.Digest, err = info.summary(); err != nil {
		return Fetched{}, r.explain(err)
	}
	w, err := createSegment(file, CreateFile)
	if err != nil {
		return Fetched{}, writeError("fetch "+from, err)
	}
	defer w.abort()
	if err := copyBlocks(w, r); err != nil {
		return Fetched{}, err
	}
	got := Fetched{Records: w.current.Records, Digest: w.current.Digest}
	if got != want {
		return Fetched{}, r.explain(damaged(0, "%d records have digest %016x, index says %d and %016x",
			got.Records, got.Digest, want.Records, want.Digest))
	}
	s.URL = ""
	if got.Segment, err = w.finishSingle(s); err != nil {
		return Fetched{}, fmt.Errorf("fetch %s: %w", from, err)
	}
	return got, nil
}

// writeError is the error of a local file. It hides a missing directory, which must not look like a lost map output.
func writeError(doing string, err error) error {
	if Exhausted(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return fmt.Errorf("%s: %v", doing, err)
}

// copyBlocks appends all blocks of r.
func copyBlocks(w *segmentWriter, r *blockReader) error {
	var big []byte
	for {
		payload, err := r.wholeBlock(&big)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.addBlock(payload); errors.Is(err, errBadRecord) {
			return r.explain(damaged(r.at, "%v", err))
		} else if err != nil {
			return err
		}
	}
}

// segmentAt returns the segment at a URL made by [URL]. For other URLs, it leaves the map
// and the attempt unknown.
func segmentAt(from string) wire.Segment {
	s := wire.Segment{Map: -1, URL: from}
	u, err := url.Parse(from)
	if err != nil {
		return s
	}
	parts := strings.Split(strings.TrimPrefix(u.Path, pathPrefix), "/")
	if len(parts) != 4 {
		return s
	}
	m, errMap := parseNumber(parts[1])
	attempt, errAttempt := parseNumber(parts[2])
	if errMap == nil && errAttempt == nil {
		s.Map, s.Attempt = m, attempt
	}
	return s
}
