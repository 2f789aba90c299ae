package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/quernmr/quern/jobtracker/core"
)

// Page is a part of a list. All lists have this form, some with more members.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // for ?after= of the next page; left out: this is the last page
}

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

// allPages reads a list page by page. A page is decoded into page, which has items and next.
func allPages[T, P any](ctx context.Context, c *Client, path string, query url.Values, part func(page *P) ([]T, string)) ([]T, error) {
	all := []T{}
	for after := ""; ; {
		items, next, err := onePage(ctx, c, path, query, after, part)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		if next == "" {
			return all, nil
		}
		after = next
	}
}

// onePage reads the page after an id; empty: the first page.
func onePage[T, P any](ctx context.Context, c *Client, path string, query url.Values, after string, part func(page *P) ([]T, string)) (items []T, next string, err error) {
	values := url.Values{}
	for name, list := range query {
		values[name] = list
	}
	if after != "" {
		values.Set(afterJob.name, after)
	}
	if len(values) > 0 {
		path += "?" + values.Encode()
	}
	page := new(P)
	if _, err := c.send(ctx, request{method: http.MethodGet, path: path}, page); err != nil {
		return nil, "", err
	}
	items, next = part(page)
	if next == after && next != "" {
		return nil, "", fmt.Errorf("%w: the page after %s names itself as the next one", errForeign, after)
	}
	return items, next, nil
}

// partOf returns the parts of a page without more members.
func partOf[T any](p *Page[T]) ([]T, string) { return p.Items, p.Next }
