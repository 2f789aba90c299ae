package shuffle

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quernmr/quern/meter"
)

// TestFetchOtherPartition checks that the records must have the digest that the server tells,
// and that a partition must not change while it is fetched.
func TestFetchOtherPartition(t *testing.T) {
	file, _ := mapOutput(t)
	good := Handler(resolver(file), new(meter.Count))
	for name, tc := range map[string]struct {
		digests []string // of the first answers; empty: the right one
		cut     int      // break the first connection here, if > 0
		says    string
	}{
		"other records":     {[]string{"0123456789abcdef"}, 0, "index says"},
		"changed partition": {[]string{"", "0123456789abcdef"}, 100_000, "partition changed"},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				i := int(n.Add(1)) - 1
				digest, cut := tc.digests[min(i, len(tc.digests)-1)], 0
				if i == 0 {
					cut = tc.cut
				}
				good.ServeHTTP(&faultyWriter{ResponseWriter: &otherDigest{w, digest}, fault: fault{cut: cut}}, r)
			}))
			defer server.Close()
			_, err := Fetch(t.Context(), URL(server.URL, testJob, 7, 1000, 1), filepath.Join(t.TempDir(), "part"), FetchOptions{Client: server.Client()})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

// otherDigest changes the digest that an answer tells.
type otherDigest struct {
	http.ResponseWriter
	digest string
}

func (w *otherDigest) WriteHeader(code int) {
	w.change()
	w.ResponseWriter.WriteHeader(code)
}

func (w *otherDigest) Write(p []byte) (int, error) {
	w.change()
	return w.ResponseWriter.Write(p)
}

func (w *otherDigest) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

func (w *otherDigest) change() {
	if w.digest != "" {
		w.Header().Set(headerDigest, w.digest)
	}
}

// TestFetchToken checks that a fetch sends the job's token, and nothing if it has none.
func TestFetchToken(t *testing.T) {
	file, _ := mapOutput(t)
	good := Handler(resolver(file), new(meter.Count))
	for token, want := range map[string]string{"secret": "Bearer secret", "": ""} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Authorization"); got != want {
				t.Errorf("token %q is sent as %q, want %q", token, got, want)
			}
			good.ServeHTTP(w, r)
		}))
		if _, err := Fetch(t.Context(), URL(server.URL, testJob, 7, 1000, 1), filepath.Join(t.TempDir(), "part"), FetchOptions{Client: server.Client(), Token: token}); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}
