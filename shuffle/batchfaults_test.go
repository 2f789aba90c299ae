package shuffle

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/wire"
)

// unreadable is a file that fails after some reads.
type unreadable struct {
	io.ReaderAt
	reads *int
}

func (u unreadable) ReadAt(p []byte, at int64) (int, error) {
	if *u.reads--; *u.reads < 0 {
		return 0, errors.New("input/output error")
	}
	return u.ReaderAt.ReadAt(p, at)
}

// TestBatchUnreadable: blocks that the server cannot read fail only their own output, wholly.
func TestBatchUnreadable(t *testing.T) {
	for reads := range 2 {
		checkUnreadable(t, reads)
	}
}

func checkUnreadable(t *testing.T, reads int) {
	x := spreadOutputs(t, 3)
	b := x.batch(0, 2)
	var answer bytes.Buffer
	s := batchSender{to: bufio.NewWriter(&answer), indexes: newIndexCache()}
	for m, o := range b.Outputs {
		var err error
		if m == 1 {
			f, errOpen := os.Open(x[m])
			if errOpen != nil {
				t.Fatal(errOpen)
			}
			defer f.Close()
			left := reads
			_, err = s.partitions(b, indexOf(t, x[m]), unreadable{f, &left})
			if left != -1 {
				t.Fatalf("%d reads are left of %d", left, reads)
			}
		} else {
			_, err = s.output(b, o, x.file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.to.Flush(); err != nil {
		t.Fatal(err)
	}
	r := &batchReader{from: &answer, batch: b}
	if err := r.read(); err != nil {
		t.Fatal(err)
	}
	got, err := r.write(batchInto(t))
	if err != nil || got.Ended != 3 || len(got.Failed) != 1 || got.Failed[0].BatchPair != (BatchPair{1, -1}) {
		t.Fatalf("%+v, %v", got, err)
	}
	_, corrupt := errors.AsType[*CorruptError](got.Failed[0].Err)
	if corrupt || errors.Is(got.Failed[0].Err, fs.ErrNotExist) || !strings.Contains(got.Failed[0].Err.Error(), "input/output error") {
		t.Errorf("%v", got.Failed[0].Err)
	}
	for _, r := range got.Runs {
		if slices.Contains(r.Outputs, 1) {
			t.Errorf("after %d reads, partition %d has records of the unreadable output", reads, r.Partition)
		}
	}
	checkRuns(t, x, got)
}

// TestBatchHeldBack: a server cannot hold small partitions back, so that each needs a request of its own.
func TestBatchHeldBack(t *testing.T) {
	x := smallOutputs(t, 1, 40, "")
	answer := answerTo(t, x, x.batch(0, 2))
	header := (*[sectionHeader]byte)(answer)
	body := answer[sectionHeader:][:binary.BigEndian.Uint32(header[1:])]
	body[fieldAt(body, 1)] ^= 1 // the lowest bit of the length
	binary.BigEndian.PutUint32(header[5:], sectionSum(header, body))
	r := &batchReader{from: bytes.NewReader(answer), batch: x.batch(0, 2)}
	if err := r.read(); err == nil || !strings.Contains(err.Error(), "follows: false") || r.ended > 0 {
		t.Errorf("%d outputs ended, %v", r.ended, err)
	}
}

// TestBatchHot: the largest groups of a run are those of its records, however well their blocks are packed.
func TestBatchHot(t *testing.T) {
	var recs []rec
	for i := range 2000 {
		recs = append(recs, rec{0, "hot", strings.Repeat("v", 20)}, rec{1, fmt.Sprint(i), ""})
	}
	cfg, _ := collect(t, Config{Partitions: 2, Memory: 1 << 20, Codec: "zstd"}, recs)
	into := batchInto(t)
	into.Largest = func() Largest { return NewLargest(2, 4<<10) }
	got, err := ReadBatch(batchOutputs{cfg.File}.batch(0), into, batchOutputs{cfg.File}.file)
	if err != nil || len(got.Runs) != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	largest := got.Runs[0].Largest
	groups := largest.Groups()
	packed := indexOf(t, cfg.File).Partitions[0].Length
	if want := int64(2000 * (2 + 3 + 20)); packed >= 4<<10 || len(groups) != 1 || string(groups[0].Key) != "hot" || groups[0].Bytes != want || largest.Read() != want {
		t.Errorf("packed %d bytes: %+v of %d bytes", packed, groups, largest.Read())
	}
}

// streamed is an http.RoundTripper: a response has what the handler has flushed.
type streamed struct{ handler http.Handler }

type flushedWriter struct {
	header http.Header
	*bufio.Writer
}

func (w *flushedWriter) Header() http.Header { return w.header }
func (w *flushedWriter) WriteHeader(int)     {}
func (w *flushedWriter) Flush()              { _ = w.Writer.Flush() }

func (x streamed) RoundTrip(r *http.Request) (*http.Response, error) {
	body, to := io.Pipe()
	w := &flushedWriter{make(http.Header), bufio.NewWriterSize(to, 1<<20)}
	context.AfterFunc(r.Context(), func() { body.CloseWithError(r.Context().Err()) })
	go func() {
		defer to.Close()
		defer func() { _ = recover() }() // http.ErrAbortHandler
		x.handler.ServeHTTP(w, r)
		w.Flush()
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: body, Request: r, ContentLength: -1}, nil
}

// TestBatchSlow: a server that needs long for each output has not stalled while it sends some of them.
func TestBatchSlow(t *testing.T) {
	x := smallOutputs(t, 10, 12, "")
	synctest.Test(t, func(t *testing.T) {
		for _, slow := range []time.Duration{2 * time.Second, 10 * time.Second} {
			handler := Handler(func(job wire.JobID, m, attempt int) (string, error) {
				<-time.After(slow)
				return x.file(job, m, attempt)
			}, new(meter.Count))
			client := &http.Client{Transport: streamed{handler}}
			got, err := FetchBatch(t.Context(), "http://server", x.batch(0, 1, 2, 3), batchInto(t), FetchOptions{Client: client, Stall: 5 * time.Second})
			if stalls := slow > 5*time.Second; errors.Is(err, ErrStalled) != stalls || (got.Ended == len(x)) == stalls {
				t.Errorf("%v for each output: %d ended, %v", slow, got.Ended, err)
			}
		}
		<-time.After(time.Hour) // the servers end
	})
}

// spreadOutputs writes outputs of 600 KB, with two small partitions too far from each other to be read together.
func spreadOutputs(t tester, maps int) batchOutputs {
	var x batchOutputs
	for m := range maps {
		recs := []rec{{0, "first", fmt.Sprint(m)}, {1, "between", strings.Repeat("v", 600<<10)}, {2, "last", fmt.Sprint(m)}}
		cfg, _ := collect(t, Config{Partitions: 4, Memory: 1 << 20}, recs)
		x = append(x, cfg.File)
	}
	return x
}

// TestBatchWindow: a server of an answer holds one window of it, and gives the receiver a new deadline for each.
func TestBatchWindow(t *testing.T) {
	x := spreadOutputs(t, 12)
	w := &deadlineWriter{header: make(http.Header)}
	url := x.batch(0, 1, 2).url("http://server")
	Handler(x.file, new(meter.Count)).ServeHTTP(w, httptest.NewRequest(http.MethodGet, url, nil))
	if w.bytes < 12*600<<10 || w.most > maxBatchPartition {
		t.Errorf("of %d bytes, %d had one deadline; want at most %d", w.bytes, w.most, maxBatchPartition)
	}
	var answer bytes.Buffer
	s := batchSender{to: bufio.NewWriter(&answer), indexes: newIndexCache()}
	if err := s.send(x.batch(0, 1, 2), x.file); err != nil || cap(s.window) > maxBatchPartition {
		t.Errorf("%d bytes of blocks were in memory, %v; want at most %d", cap(s.window), err, maxBatchPartition)
	}
}

// deadlineWriter is an http.ResponseWriter that counts the bytes, and the most after one deadline.
type deadlineWriter struct {
	header             http.Header
	bytes, since, most int
}

func (w *deadlineWriter) Header() http.Header { return w.header }
func (w *deadlineWriter) WriteHeader(int)     {}

func (w *deadlineWriter) SetWriteDeadline(time.Time) error {
	w.since = 0
	return nil
}

func (w *deadlineWriter) Write(p []byte) (int, error) {
	w.bytes += len(p)
	w.since += len(p)
	w.most = max(w.most, w.since)
	return len(p), nil
}

func indexOf(t tester, file string) *Index {
	t.Helper()
	index, err := ReadIndex(file)
	if err != nil {
		t.Fatal(err)
	}
	return index
}
