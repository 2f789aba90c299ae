package pages

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/identity"
	"github.com/quernmr/quern/jobtracker/glance"
)

// maxMade limits the pages that are kept: some MB.
const maxMade = 64

// made shares pages among the open windows of a user. A request says by Cache-Control: max-age=SECONDS how old its page may
// be: live.js does for its regular reloads. For other requests the page is made.
type made struct {
	epoch func() (epoch uint64, leads bool)
	table *glance.Table[page, *shown]
}

// page names a page as a user sees it: users may see different jobs.
type page struct{ user, uri string }

// shown is a page, and when its making began: later changes may be missing.
type shown struct {
	html  []byte
	began time.Time
}

// newMade makes the table of pages. An API that knows no terms has one.
func newMade(api http.Handler) *made {
	m := &made{epoch: func() (uint64, bool) { return 1, true }}
	if a, ok := api.(interface{ Term() (uint64, bool) }); ok {
		m.epoch = a.Term
	}
	m.table = glance.NewTable[page](maxMade, nil, func(*shown, time.Duration) time.Duration { return mostPause })
	return m
}

// get returns the page of a request, which make makes if there is none that is young enough. A page of a former term
// is never returned.
func (m *made) get(r *http.Request, make func(r *http.Request) (*shown, error)) (*shown, error) {
	epoch, leads := m.epoch()
	if !leads || r.Method != http.MethodGet {
		return make(r)
	}
	return m.table.GetSince(r.Context(), page{userOf(r), r.URL.RequestURI()}, epoch, time.Now().Add(-maxAge(r)), func(ctx context.Context) (*shown, error) {
		return make(r.WithContext(ctx))
	})
}

// maxAge is how old the answer to a request may be.
func maxAge(r *http.Request) time.Duration {
	text, ok := strings.CutPrefix(r.Header.Get("Cache-Control"), "max-age=")
	seconds, err := strconv.ParseUint(text, 10, 16)
	if !ok || err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// userOf is the role and name in a request's certificate; empty: it has none.
func userOf(r *http.Request) string {
	if peer, ok := identity.PeerOf(r.TLS); ok {
		return peer.String()
	}
	return ""
}
