package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/wire"
)

var testJob = wire.JobID{Start: 1700000000000, N: 12}

// resolver serves one file as map 7, attempt 1000, of testJob.
func resolver(file string) func(wire.JobID, int, int) (string, error) {
	return func(job wire.JobID, m, attempt int) (string, error) {
		if job != testJob || m != 7 || attempt != 1000 {
			return "", fmt.Errorf("no output of map %d attempt %d: %w", m, attempt, fs.ErrNotExist)
		}
		return file, nil
	}
}

// mapOutput writes a segment file of several blocks, one of them with a large record.
func mapOutput(t *testing.T) (file string, want []rec) {
	t.Helper()
	var recs []rec
	for i := range 4000 {
		recs = append(recs, rec{i % 2, fmt.Sprintf("key-%d", i*7919%4000), strings.Repeat("v", i%50)})
	}
	recs = append(recs, rec{1, "key-2", strings.Repeat("large", 60_000)}, rec{3, "alone", ""})
	cfg, _ := collect(t, Config{Partitions: 4, Memory: 1 << 20}, recs)
	return cfg.File, sorted(recs)
}

func partitionOf(recs []rec, p int) []rec {
	var some []rec
	for _, r := range recs {
		if r.partition == p {
			r.partition = 0
			some = append(some, r)
		}
	}
	return some
}

func TestFetch(t *testing.T) {
	file, want := mapOutput(t)
	server := httptest.NewServer(Handler(resolver(file), new(meter.Count)))
	defer server.Close()
	index, err := ReadIndex(file)
	if err != nil {
		t.Fatal(err)
	}
	for p, part := range index.Partitions {
		url := URL(server.URL, testJob, 7, 1000, p)
		local := filepath.Join(t.TempDir(), "part")
		got, err := Fetch(t.Context(), url, local, FetchOptions{Client: server.Client()})
		if err != nil {
			t.Fatal(err)
		}
		checkSegment(t, local, 1, partitionOf(want, p))
		if got != (Fetched{wire.Segment{Map: 7, Attempt: 1000, File: local, Offset: 8, Length: part.Length}, part.Records, part.Digest}) {
			t.Errorf("partition %d: %+v of %+v", p, got, part)
		}
		// A merge can read the URL itself, together with a file.
		m, err := Merge(t.Context(), []wire.Segment{{URL: url}, got.Segment}, MergeOptions{Client: server.Client()})
		if err != nil {
			t.Fatal(err)
		}
		recs, err := readAll(m, 0)
		if once := partitionOf(want, p); err != nil || !slices.Equal(recs, sorted(append(once, once...))) {
			t.Errorf("partition %d: %d records by URL and file, %v", p, len(recs), err)
		}
		m.Close()
	}
}

// fault is a fault of the network within the body of a response.
type fault struct {
	flip  int // change this byte, if > 0
	cut   int // break the connection here, if > 0
	stall int // send nothing after this byte, if > 0
	drip  int // send single bytes slowly after this byte, if > 0
}

type faultyWriter struct {
	http.ResponseWriter
	fault
	sent int
	done <-chan struct{}
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	for i, b := range p {
		w.sent++
		if w.drip > 0 && w.sent > w.drip {
			w.ResponseWriter.(http.Flusher).Flush()
			select {
			case <-time.After(5 * time.Millisecond):
			case <-w.done:
				return i, io.ErrClosedPipe
			}
		}
		switch w.sent {
		case w.flip:
			b ^= 1
		case w.cut:
			w.ResponseWriter.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case w.stall:
			w.ResponseWriter.(http.Flusher).Flush()
			<-w.done
			return i, io.ErrClosedPipe
		}
		if _, err := w.ResponseWriter.Write([]byte{b}); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// faultyServer serves file. The n-th response has the n-th fault, or else the last fault.
func faultyServer(t *testing.T, file string, faults ...fault) *httptest.Server {
	good := Handler(resolver(file), new(meter.Count))
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := min(int(n.Add(1)), len(faults)) - 1
		good.ServeHTTP(&faultyWriter{ResponseWriter: w, fault: faults[i], done: r.Context().Done()}, r)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestFetchFaults(t *testing.T) {
	file, want := mapOutput(t)
	const corrupt, unreadable = "corrupt", "unreadable"
	for _, tc := range []struct {
		name   string
		faults []fault
		class  string // of the error; empty: none
		text   string
	}{
		{"flipped once", []fault{{flip: 100_000}, {}}, "", ""},
		{"flipped once in a header", []fault{{flip: 3}, {}}, "", ""},
		{"cut once", []fault{{cut: 100_000}, {}}, "", ""},
		{"cut at once", []fault{{cut: 1}, {}}, "", ""},
		{"cut in two blocks", []fault{{cut: 10_000}, {cut: 70_000}, {}}, "", ""},
		{"flipped always", []fault{{flip: 20}}, corrupt, "attempt 1000 is corrupt at offset 12: block of"},
		{"cut always", []fault{{cut: 20}}, unreadable, "unexpected EOF"},
		{"flipped, then cut", []fault{{flip: 20}, {cut: 20}}, unreadable, "unexpected EOF"},
		{"stalled", []fault{{stall: 50_000}}, unreadable, "no progress"},
		{"dripping", []fault{{drip: 50_000}}, unreadable, "no progress"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := faultyServer(t, file, tc.faults...)
			dir := t.TempDir()
			stall := 10 * time.Second
			if tc.text == "no progress" {
				stall = 100 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a fetch without end fails by its text
			defer cancel()
			_, err := Fetch(ctx, URL(server.URL, testJob, 7, 1000, 1), filepath.Join(dir, "part"), FetchOptions{Client: server.Client(), Stall: stall})
			if tc.class == "" {
				if err != nil {
					t.Fatal(err)
				}
				checkSegment(t, filepath.Join(dir, "part"), 1, partitionOf(want, 1))
				return
			}
			var c *CorruptError
			var u *UnreadableError
			if errors.As(err, &c) != (tc.class == corrupt) || errors.As(err, &u) != (tc.class == unreadable) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("got %v", err)
			}
			if leftover := files(t, dir); leftover != nil {
				t.Errorf("leftover files: %v", leftover)
			}
		})
	}
}

// TestFetchFromDamagedDisk distinguishes damage on the server's disk from a missing output.
func TestFetchFromDamagedDisk(t *testing.T) {
	file, _ := mapOutput(t)
	server := httptest.NewServer(Handler(resolver(file), new(meter.Count)))
	defer server.Close()
	fetch := func(m int) error {
		_, err := Fetch(t.Context(), URL(server.URL, testJob, m, 1000, 1), filepath.Join(t.TempDir(), "part"), FetchOptions{Client: server.Client()})
		return err
	}
	var unreadable *UnreadableError
	if err := fetch(8); !errors.As(err, &unreadable) || !strings.Contains(err.Error(), "404") {
		t.Errorf("missing: %v", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{len(data) - 60, len(data) / 2} { // in the index, in partition 1
		data[at] ^= 4
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *CorruptError
		if err := fetch(7); !errors.As(err, &corrupt) || corrupt.Segment.Map != 7 || corrupt.Segment.URL == "" {
			t.Errorf("damaged at %d: %v", at, err)
		}
		data[at] ^= 4
	}
}

// TestFetchMissing checks that a 404 matches fs.ErrNotExist, and that other errors do not.
func TestFetchMissing(t *testing.T) {
	file, _ := mapOutput(t)
	server := httptest.NewServer(Handler(resolver(file), new(meter.Count)))
	defer server.Close()
	for _, tc := range []struct {
		url     string
		missing bool
	}{
		{URL(server.URL, testJob, 8, 1000, 1), true},
		{URL(server.URL, testJob, 7, 1000, 4), true},
		{server.URL + "/shuffle/job/7/1000/1", false},
	} {
		dir := t.TempDir()
		_, fetched := Fetch(t.Context(), tc.url, filepath.Join(dir, "part"), FetchOptions{Client: server.Client()})
		_, merged := Merge(t.Context(), []wire.Segment{{URL: tc.url}}, MergeOptions{Client: server.Client()})
		for _, err := range []error{fetched, merged} {
			var u *UnreadableError
			if !errors.As(err, &u) || errors.Is(err, fs.ErrNotExist) != tc.missing {
				t.Errorf("%s: %v", tc.url, err)
			}
		}
		if leftover := files(t, dir); leftover != nil {
			t.Errorf("leftover files: %v", leftover)
		}
	}
	_, err := Fetch(t.Context(), URL(server.URL, testJob, 7, 1000, 1), filepath.Join(t.TempDir(), "no", "part"), FetchOptions{Client: server.Client()})
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a missing directory: %v", err)
	}
}

func TestFetchCanceled(t *testing.T) {
	file, _ := mapOutput(t)
	server := faultyServer(t, file, fault{stall: 50_000})
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	client := &http.Client{Transport: cancelAfterAnswer{server.Client().Transport, func() { cancel(enough) }}}
	if _, err := Fetch(ctx, URL(server.URL, testJob, 7, 1000, 1), filepath.Join(t.TempDir(), "part"), FetchOptions{Client: client}); !errors.Is(err, enough) {
		t.Fatal(err)
	}
}

type cancelAfterAnswer struct {
	http.RoundTripper
	cancel func()
}

func (c cancelAfterAnswer) RoundTrip(r *http.Request) (*http.Response, error) {
	defer c.cancel()
	return c.RoundTripper.RoundTrip(r)
}

func TestHandler(t *testing.T) {
	file, _ := mapOutput(t)
	h := Handler(resolver(file), new(meter.Count))
	s := wholePartition(t, file, 1)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data = data[s.Offset:][:s.Length]
	size := len(data)
	good := URL("", testJob, 7, 1000, 1)
	for _, tc := range []struct {
		method, path, ranges string
		status               int
		from, to             int
	}{
		{"GET", good, "", 200, 0, size},
		{"HEAD", good, "", 200, 0, 0},
		{"GET", good, "bytes=0-0", 206, 0, 1},
		{"GET", good, "bytes=5-", 206, 5, size},
		{"GET", good, "bytes=5-99999999999", 206, 5, size},
		{"GET", good, "bytes=-7", 206, size - 7, size},
		{"GET", good, fmt.Sprintf("bytes=%d-", size), 416, 0, 0},
		{"GET", good, "bytes=1-2,4-5", 200, 0, size},
		{"GET", good, "bytes=9-1", 200, 0, size},
		{"GET", good, "lines=1-2", 200, 0, size},
		{"GET", URL("", testJob, 7, 1000, 2), "", 200, 0, 0},
		{"GET", URL("", testJob, 7, 1000, 4), "", 404, 0, 0},
		{"GET", URL("", testJob, 7, 1001, 1), "", 404, 0, 0},
		{"GET", "/shuffle/job_x/7/1000/1", "", 400, 0, 0},
		{"GET", "/shuffle/" + testJob.String() + "/+7/1000/1", "", 400, 0, 0},
		{"GET", "/shuffle/" + testJob.String() + "/7/1000/-1", "", 400, 0, 0},
		{"GET", "/shuffle/" + testJob.String() + "/7/1000/1/x", "", 404, 0, 0},
		{"GET", "/shuffle/" + testJob.String() + "/..%2f7/1000/1", "", 400, 0, 0},
		{"POST", good, "", 405, 0, 0},
	} {
		r := httptest.NewRequest(tc.method, tc.path, nil)
		if tc.ranges != "" {
			r.Header.Set("Range", tc.ranges)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		ok := w.Code == 200 || w.Code == 206
		if w.Code != tc.status || ok && w.Body.String() != string(data[tc.from:tc.to]) {
			t.Errorf("%s %s %s: %d with %d bytes", tc.method, tc.path, tc.ranges, w.Code, w.Body.Len())
		}
		if ok && (w.Header().Get("Quern-Digest") == "" || w.Header().Get("Quern-Records") == "") {
			t.Errorf("%s %s: no index entry in %v", tc.method, tc.path, w.Header())
		}
	}
}

// spyListener records the readers that its connections get to send.
type spyListener struct {
	net.Listener
	sent chan io.Reader
}

type spyConn struct {
	*net.TCPConn
	sent chan io.Reader
}

func (l *spyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &spyConn{c.(*net.TCPConn), l.sent}, nil
}

func (c *spyConn) ReadFrom(r io.Reader) (int64, error) {
	c.sent <- r
	return c.TCPConn.ReadFrom(r)
}

// TestHandlerUsesSendfile checks that the connection gets the file itself, for sendfile.
func TestHandlerUsesSendfile(t *testing.T) {
	file, _ := mapOutput(t)
	server := httptest.NewUnstartedServer(Handler(resolver(file), new(meter.Count)))
	spy := &spyListener{server.Listener, make(chan io.Reader, 1)}
	server.Listener = spy
	server.Start()
	defer server.Close()
	if _, err := Fetch(t.Context(), URL(server.URL, testJob, 7, 1000, 1), filepath.Join(t.TempDir(), "part"), FetchOptions{Client: server.Client()}); err != nil {
		t.Fatal(err)
	}
	limited, ok := (<-spy.sent).(*io.LimitedReader)
	if !ok {
		t.Fatal("the connection got no limited reader")
	}
	if _, ok := limited.R.(*os.File); !ok {
		t.Fatalf("the connection got a %T", limited.R)
	}
}

// direct is an http.RoundTripper that calls a handler.
type direct struct {
	handler http.Handler
	ranges  []string // Range header of each request
}

func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	d.ranges = append(d.ranges, r.Header.Get("Range"))
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	answer := w.Result()
	answer.Request = r
	return answer, nil
}

// TestFetchPace checks that a fetch calls Pace after small reads, that its waits do not
// count as stalls, and that it makes a new request after a long wait.
func TestFetchPace(t *testing.T) {
	file, want := mapOutput(t)
	synctest.Test(t, func(t *testing.T) {
		for _, wait := range []time.Duration{time.Second, 2 * maxPaceWait} {
			network := &direct{handler: Handler(resolver(file), new(meter.Count))}
			local := filepath.Join(t.TempDir(), "part")
			paced, waits := 0, 0
			got, err := Fetch(t.Context(), URL("http://server", testJob, 7, 1000, 1), local, FetchOptions{
				Client: &http.Client{Transport: network}, Stall: 10 * time.Millisecond,
				Pace: func(ctx context.Context, n int) error {
					if n < 1 || n > paceBytes {
						t.Errorf("paced %d bytes at once", n)
					}
					paced += n
					if n == paceBytes {
						waits++
						<-time.After(wait)
					}
					return ctx.Err()
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			checkSegment(t, local, 1, partitionOf(want, 1))
			if int64(paced) != got.Segment.Length {
				t.Errorf("paced %d bytes of %d", paced, got.Segment.Length)
			}
			requests := 1
			if wait > maxPaceWait {
				requests += waits
			}
			if waits < 2 || len(network.ranges) != requests {
				t.Errorf("%d waits of %v: requested %v", waits, wait, network.ranges)
			}
		}
	})
}

// TestFetchPaceFails checks that an error of Pace ends the fetch unchanged.
func TestFetchPaceFails(t *testing.T) {
	file, _ := mapOutput(t)
	server := httptest.NewServer(Handler(resolver(file), new(meter.Count)))
	defer server.Close()
	dir := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err := Fetch(ctx, URL(server.URL, testJob, 7, 1000, 1), filepath.Join(dir, "part"), FetchOptions{
		Client: server.Client(), Pace: func(ctx context.Context, _ int) error {
			cancel(enough)
			return context.Cause(ctx)
		},
	})
	if !errors.Is(err, enough) || files(t, dir) != nil {
		t.Errorf("got %v, leftover files %v", err, files(t, dir))
	}
}
