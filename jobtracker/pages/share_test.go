package pages

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

// asUser requests a page as a user, who accepts a page of this age.
func asUser(user, path, age string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{URIs: []*url.URL{{Scheme: "quern", Host: "client", Path: "/" + user}}}}}
	if age != "" {
		r.Header.Set("Cache-Control", age)
	}
	return r
}

// TestShare: windows of a user share a page that is as young as they want, and nothing else is shared: users may see
// different jobs, and a new leader knows more.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		epoch, leads, count := uint64(1), true, 0
		m := newMade(http.NotFoundHandler())
		m.epoch = func() (uint64, bool) { return epoch, leads }
		get := func(r *http.Request) int {
			before := count
			want := userOf(r) + r.URL.RequestURI()
			p, err := m.get(r, func(r *http.Request) (*shown, error) {
				count++
				return &shown{[]byte(userOf(r) + r.URL.RequestURI()), time.Now()}, nil
			})
			if err != nil || string(p.html) != want {
				t.Fatalf("got %q, %v, want %q", p.html, err, want)
			}
			return count - before
		}
		if userOf(asUser("ann", "/", "")) == userOf(asUser("bob", "/", "")) {
			t.Fatal("the users of the test are one")
		}
		for i, c := range []struct {
			r      *http.Request
			passed time.Duration
			made   int
			before func()
		}{
			{r: asUser("ann", "/", ""), made: 1},
			{r: asUser("ann", "/", "max-age=2"), passed: time.Second, made: 0},
			{r: asUser("bob", "/", "max-age=2"), made: 1},
			{r: asUser("ann", "/jobs", "max-age=2"), made: 1},
			{r: asUser("ann", "/?a=b", "max-age=2"), made: 1},
			{r: asUser("ann", "/", "max-age=2"), passed: 2 * time.Second, made: 1},
			{r: asUser("ann", "/", ""), passed: time.Millisecond, made: 1},
			{r: asUser("ann", "/", "no-cache"), passed: time.Millisecond, made: 1},
			{r: asUser("ann", "/", "max-age=-1"), passed: time.Millisecond, made: 1},
			{r: asUser("ann", "/", "max-age=9"), passed: time.Millisecond, made: 0},
			{r: asUser("ann", "/", "max-age=9"), made: 1, before: func() { epoch++ }},
			{r: asUser("ann", "/", "max-age=9"), made: 1, before: func() { leads = false }},
		} {
			<-time.After(c.passed) // of the bubble's clock
			if c.before != nil {
				c.before()
			}
			if got := get(c.r); got != c.made {
				t.Errorf("request %d made %d pages, want %d", i, got, c.made)
			}
		}
	})
}

// TestShareFailure: an error is not kept.
func TestShareFailure(t *testing.T) {
	m, fail := newMade(http.NotFoundHandler()), errors.New("no")
	for _, want := range []error{fail, nil} {
		_, err := m.get(asUser("ann", "/", "max-age=9"), func(r *http.Request) (*shown, error) {
			if r.Context() == context.Background() {
				t.Error("the page is made without a limit of time")
			}
			return &shown{began: time.Now()}, want
		})
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}
