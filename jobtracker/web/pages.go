package web

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/wire"
)

// cursor returns the id after which the next page begins; empty: there is no next page.
func cursor[T interface {
	comparable
	fmt.Stringer
}](next T) string {
	var none T
	if next == none {
		return ""
	}
	return next.String()
}

func badCursor(err error) error { return fmt.Errorf("%w: %w", core.ErrCursor, err) }

// afterJob returns the job after which a requested page begins. It fails if this job tracker does not
// lead.
func (h *handler) afterJob(r *http.Request) (after wire.JobID, err error) {
	if _, err := h.requireLeader(); err != nil {
		return after, err
	}
	if text := r.URL.Query().Get("after"); text != "" {
		if after, err = wire.ParseJobID(text); err != nil {
			return after, badCursor(err)
		}
	}
	return after, nil
}

// pageRequest requests the page after an id; empty: the first page.
func pageRequest(path, after string) request {
	if after != "" {
		path += "?after=" + url.QueryEscape(after)
	}
	return request{method: http.MethodGet, path: path}
}

// allPages reads a list page by page.
func allPages[T any](read func(after string) (page []T, next string, err error)) ([]T, error) {
	all := []T{}
	for after := ""; ; {
		page, next, err := read(after)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		switch next {
		case "":
			return all, nil
		case after:
			return nil, fmt.Errorf("%w: the page after %s names itself as the next one", errForeign, after)
		}
		after = next
	}
}
