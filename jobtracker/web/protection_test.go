package web

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/web/seek"
)

// TestOnlyOneEndUsesTLS: a request fails at once if only the client or only the job tracker uses TLS,
// and the error says which flag to change.
func TestOnlyOneEndUsesTLS(t *testing.T) {
	none := http.NotFoundHandler()
	for _, c := range []struct {
		start  func(http.Handler) *httptest.Server
		config *tls.Config
		want   string
	}{
		{httptest.NewServer, &tls.Config{InsecureSkipVerify: true}, "give -insecure here, too"},
		{httptest.NewTLSServer, nil, "leave out -insecure"},
	} {
		server := c.start(none)
		client := NewClient([]string{server.Listener.Addr().String()})
		client.Patience = time.Hour
		client.Secure(c.config)
		if uncertain, err := client.send(t.Context(), request{method: http.MethodPost, path: "/v1/x"}, &struct{}{}); uncertain || !errors.Is(err, seek.ErrProtection) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %v, want %q", uncertain, err, c.want)
		}
		client.Close()
		server.Close()
	}
}
