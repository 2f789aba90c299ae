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

// Fetched is a partition of a map output in a local segment file.
type Fetched struct {
	Segment wire.Segment
	Records int64
	Digest  uint64
}

// FetchOptions are how to fetch. The zero value will do.
type FetchOptions struct {
	Client *http.Client  // nil: http.DefaultClient
	Stall  time.Duration // how long the URL may take for the next [StallBytes]; 0: [DefaultStall]

	// Token, when not empty, is the job's and shows that what is asked for may be had.
	Token string

	// Pace is called after so many bytes and returns when the next may be read; an
	// error ends the fetch. The time it takes is no stall. Nil: no pace is kept.
	Pace func(ctx context.Context, n int) error
}

// Fetch copies what a [Handler] serves at from into a new segment file with one
// partition. Every block is verified as it arrives, and the whole against the
// digest in the server's index. A block that arrives short or damaged is asked
// for once more; a URL that takes longer than o.Stall for the
// next [StallBytes] has failed by [ErrStalled]. A [CorruptError] says that what
// the server has is damaged, an [UnreadableError] that it cannot be had, with
// fs.ErrNotExist in its chain when the server answers that it does not have it; any
// other error is the local file's. After an error the file is gone.
func Fetch(ctx context.Context, from, file string, o FetchOptions) (Fetched, error) {
	s := segmentAt(from)
	r, told, err := openRemote(ctx, s, o)
	if err != nil {
		return Fetched{}, err
	}
	defer r.in.close()
	var want Fetched
	if want.Records, want.Digest, err = told.summary(); err != nil {
		return Fetched{}, r.explain(err)
	}
	w, err := createSegment(file)
	if err != nil {
		// Not wrapped: that the local directory is missing must not look like a loss.
		return Fetched{}, fmt.Errorf("fetch %s: %v", from, err)
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

// segmentAt is the segment at a URL that [URL] made; of another's map and
// attempt nothing is known.
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
