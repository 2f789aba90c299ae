package attemptlog

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestIncrements: a reader that asks for what was written since its last answer gets all of it that is
// kept, and a line for what is missing.
func TestIncrements(t *testing.T) {
	dir, logs := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		logs++
		const limit = 64
		log := filepath.Join(dir, strconv.Itoa(logs))
		w, err := newWriter(log, limit)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		written, seen := "", 0
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			for range rapid.IntRange(0, 9).Draw(t, "records") {
				written += fmt.Sprintf("%03d.", len(written)/4)
			}
			if _, err := w.Write([]byte(written[w.written:])); err != nil {
				t.Fatal(err)
			}
			want := written[seen:]
			if begins, err := piecesOf(log); err != nil {
				t.Fatal(err)
			} else if len(begins) > 0 && begins[0] > limit/2 && seen < int(begins[0]) {
				want = fmt.Sprintf("%s\n[%d bytes were left out here: of a long log the first and the last part are kept]\n%s",
					written[min(seen, limit/2):limit/2], begins[0]-limit/2, written[begins[0]:])
			}
			answer := get(t, log, "from="+strconv.Itoa(seen))
			if got := answer.Body.String(); got != want {
				t.Fatalf("from %d: %q, want %q", seen, got, want)
			}
			if seen, err = strconv.Atoi(answer.Header().Get(EndHeader)); err != nil || seen != len(written) {
				t.Fatalf("the log ends at %d, %v; want %d", seen, err, len(written))
			}
		}
		if answer := get(t, log, "from=1000000"); answer.Body.Len() > 0 || answer.Code != http.StatusOK {
			t.Fatalf("after the end: %d %q", answer.Code, answer.Body)
		}
		if got, want := get(t, log, "tail=4").Body.String(), written[max(len(written)-4, 0):]; got != want {
			t.Fatalf("tail %q, want %q", got, want)
		}
	})
}

// get requests a part of a log.
func get(t *rapid.T, log, query string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/?"+query, nil)
	p, err := ParsePart(r.URL.Query())
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	Serve(w, r, log, p, time.Second)
	return w
}

func TestBadParts(t *testing.T) {
	for query, want := range map[string]string{
		"tail=-1": "tail must not be negative, got -1", "from=x": `from must be a number of bytes, got "x"`, "from=1&tail=0": "not both",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParsePart(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}
