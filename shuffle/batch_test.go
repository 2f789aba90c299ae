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
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/wire"
)

// batchOutputs are map outputs for tests: the attempt of a map is its number plus 1000.
type batchOutputs []string

func (x batchOutputs) file(job wire.JobID, m, attempt int) (string, error) {
	if job != testJob || m >= len(x) || attempt != 1000+m || x[m] == "" {
		return "", fmt.Errorf("no output of map %d attempt %d: %w", m, attempt, fs.ErrNotExist)
	}
	return x[m], nil
}

// batch selects partitions of all outputs.
func (x batchOutputs) batch(partitions ...int) *Batch {
	b := &Batch{Job: testJob, Partitions: partitions}
	for m := range x {
		b.Outputs = append(b.Outputs, BatchOutput{m, 1000 + m})
	}
	return b
}

func batchInto(t tester) BatchOptions {
	return BatchOptions{File: filepath.Join(tempDir(t), "batch"), Largest: func() Largest { return NewLargest(2, 1) }}
}

// smallOutputs writes outputs with some records in each of four partitions.
func smallOutputs(t tester, maps, records int, codec string) batchOutputs {
	var x batchOutputs
	for m := range maps {
		var recs []rec
		for i := range records {
			recs = append(recs, rec{(i + m) % 4, fmt.Sprintf("key-%d", i*7919%50), fmt.Sprint(m, strings.Repeat("v", i%30))})
		}
		cfg, _ := collect(t, Config{Partitions: 4, Memory: 1 << 20, Codec: codec}, recs)
		x = append(x, cfg.File)
	}
	return x
}

// checkRuns compares runs with merges of the same partitions.
func checkRuns(t tester, x batchOutputs, got Gathered) {
	t.Helper()
	for _, r := range got.Runs {
		var files []string
		for _, o := range r.Outputs {
			files = append(files, x[o])
		}
		want := readSegments(t, r.Partition, MergeOptions{}, files...)
		m, err := Merge(context.Background(), []wire.Segment{r.Segment}, MergeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		recs, err := readAll(m, r.Partition)
		m.Close()
		if err != nil || !slices.Equal(recs, want) {
			t.Fatalf("partition %d of outputs %v: %d records, %v, want %d", r.Partition, r.Outputs, len(recs), err, len(want))
		}
	}
}

// TestBatch compares batches, fetched and read, with merges of the same outputs.
func TestBatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := smallOutputs(rt, rapid.IntRange(1, 5).Draw(rt, "maps"), rapid.IntRange(0, 40).Draw(rt, "records"), rapid.SampledFrom(CodecNames()).Draw(rt, "codec"))
		partitions := rapid.SliceOfNDistinct(rapid.IntRange(0, 3), 1, 4, rapid.ID).Draw(rt, "partitions")
		slices.Sort(partitions)
		b := x.batch(partitions...)
		server := httptest.NewServer(Handler(x.file, new(meter.Count)))
		defer server.Close()
		into := batchInto(rt)
		fetched, err := FetchBatch(t.Context(), server.URL, b, into, FetchOptions{Client: server.Client()})
		if err != nil || fetched.Ended != len(x) || len(fetched.Failed)+len(fetched.Large) > 0 {
			rt.Fatalf("%+v, %v", fetched, err)
		}
		checkRuns(rt, x, fetched)
		if len(fetched.Runs) > 0 {
			if _, err := Verify(t.Context(), into.File); err != nil {
				rt.Fatal(err)
			}
		}
		records := 0
		for _, file := range x {
			index, err := ReadIndex(file)
			if err != nil {
				rt.Fatal(err)
			}
			for _, p := range partitions {
				if index.Partitions[p].Records > 0 {
					records++
				}
			}
		}
		for _, r := range fetched.Runs {
			records -= len(r.Outputs)
		}
		if records != 0 {
			rt.Fatalf("%d partitions with records are in no run", records)
		}
		into.File = filepath.Join(tempDir(rt), "batch")
		read, err := ReadBatch(b, into, x.file)
		if err != nil {
			rt.Fatal(err)
		}
		checkRuns(rt, x, read)
		for i := range read.Runs {
			read.Runs[i].Segment.File = fetched.Runs[i].Segment.File
		}
		if !reflect.DeepEqual(read, fetched) {
			rt.Fatalf("read %+v, fetched %+v", read, fetched)
		}
	})
}

// TestBatchBlames: a failure names its map and partition, and the other partitions are there.
func TestBatchBlames(t *testing.T) {
	x := smallOutputs(t, 5, 40, "")
	index, err := ReadIndex(x[1])
	if err != nil {
		t.Fatal(err)
	}
	damage(t, x[1], index.Partitions[2].Offset+blockHeader+3)
	info, err := os.Stat(x[3])
	if err != nil {
		t.Fatal(err)
	}
	damage(t, x[3], info.Size()-20)
	x[4] = ""
	server := httptest.NewServer(Handler(x.file, new(meter.Count)))
	defer server.Close()
	got, err := FetchBatch(t.Context(), server.URL, x.batch(0, 2), batchInto(t), FetchOptions{Client: server.Client()})
	if err != nil || got.Ended != 5 || len(got.Failed) != 3 || len(got.Runs) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	checkRuns(t, x, got)
	if !slices.Equal(got.Runs[0].Outputs, []int32{0, 1, 2}) || !slices.Equal(got.Runs[1].Outputs, []int32{0, 2}) {
		t.Errorf("the runs have the outputs %v and %v", got.Runs[0].Outputs, got.Runs[1].Outputs)
	}
	for i, want := range []BatchPair{{1, 2}, {3, -1}, {4, -1}} {
		f := got.Failed[i]
		corrupt, isCorrupt := errors.AsType[*CorruptError](f.Err)
		if f.BatchPair != want || isCorrupt != (want.Output < 4) || errors.Is(f.Err, fs.ErrNotExist) == isCorrupt {
			t.Errorf("failure %+v: %v, want %+v", f.BatchPair, f.Err, want)
		}
		if isCorrupt && (corrupt.Segment.Map != want.Output || corrupt.Segment.Attempt != 1000+want.Output) {
			t.Errorf("%v blames map %d attempt %d", f.Err, corrupt.Segment.Map, corrupt.Segment.Attempt)
		}
	}
}

// damage changes a byte of a file.
func damage(t tester, file string, at int64) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[at] ^= 1
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// answerTo returns the bytes of an answer.
func answerTo(t tester, x batchOutputs, b *Batch) []byte {
	var answer bytes.Buffer
	s := batchSender{to: bufio.NewWriter(&answer), indexes: newIndexCache()}
	if err := s.send(b, x.file); err != nil {
		t.Fatal(err)
	}
	return answer.Bytes()
}

// TestBatchEveryByteCorrupted: whichever byte of an answer is changed, or where it ends, no wrong record is delivered.
func TestBatchEveryByteCorrupted(t *testing.T) {
	x := smallOutputs(t, 3, 12, "snappy")
	x = append(x, "")
	b := x.batch(0, 1, 3)
	answer := answerTo(t, x, b)
	into := batchInto(t)
	for i := range answer {
		for _, cut := range []bool{false, true} {
			changed := slices.Clone(answer)
			if changed[i] ^= 0x40; cut {
				changed = answer[:i]
			}
			r := &batchReader{from: bytes.NewReader(changed), batch: b}
			failed := r.read()
			got, err := r.write(into)
			if err != nil {
				t.Fatal(err)
			}
			if failed == nil && len(got.Failed) < 2 { // the missing output fails always
				t.Fatalf("byte %d of %d, cut %v: the change is not noticed", i, len(answer), cut)
			}
			if failed != nil && got.Ended == len(x) {
				t.Fatalf("byte %d: %v, and all outputs have ended", i, failed)
			}
			checkRuns(t, x, got)
		}
	}
}

// TestBatchSums: blocks without damage that are not those of the index, as of another output, are blamed on theirs.
func TestBatchSums(t *testing.T) {
	x := smallOutputs(t, 2, 40, "")
	b := x.batch(0, 2)
	for field, varints := range map[string]int{"records": 2, "digest": 3} { // by the varints before it in an entry
		answer := answerTo(t, x, b)
		header := (*[sectionHeader]byte)(answer)
		body := answer[sectionHeader:][:binary.BigEndian.Uint32(header[1:])]
		body[fieldAt(body, varints)] ^= 1
		binary.BigEndian.PutUint32(header[5:], sectionSum(header, body))
		r := &batchReader{from: bytes.NewReader(answer), batch: b}
		if err := r.read(); err != nil {
			t.Fatal(err)
		}
		got, err := r.write(batchInto(t))
		if err != nil || got.Ended != 2 || len(got.Failed) != 1 || got.Failed[0].BatchPair != (BatchPair{0, 0}) {
			t.Fatalf("%s: %+v, %v", field, got, err)
		}
		if _, corrupt := errors.AsType[*CorruptError](got.Failed[0].Err); !corrupt {
			t.Errorf("%s: %v", field, got.Failed[0].Err)
		}
		checkRuns(t, x, got)
	}
}

// fieldAt returns the offset of a field of the first entry of a table, after n varints.
func fieldAt(body []byte, n int) (at int) {
	for range n {
		_, size := binary.Uvarint(body[at:])
		at += size
	}
	return at
}

// TestBatchBounds: an answer ends when it is full, and large partitions are not in it.
func TestBatchBounds(t *testing.T) {
	var x batchOutputs
	for range 4 {
		var recs []rec
		for i := range 5 {
			recs = append(recs, rec{i, "key", strings.Repeat("v", 900<<10)})
		}
		recs = append(recs, rec{5, "large", strings.Repeat("v", maxBatchPartition)})
		cfg, _ := collect(t, Config{Partitions: 6, Memory: 16 << 20}, recs)
		x = append(x, cfg.File)
	}
	got, err := ReadBatch(x.batch(0, 1, 2, 3, 4, 5), batchInto(t), x.file)
	if err != nil || got.Ended != 1 || len(got.Runs) != 5 || !slices.Equal(got.Large, []BatchPair{{0, 5}}) {
		t.Fatalf("%d outputs ended with %d runs, large are %v, %v", got.Ended, len(got.Runs), got.Large, err)
	}
	checkRuns(t, x, got)
}

// impatient is an http.RoundTripper: its responses end if the receiver does not read for sendWait.
type impatient struct{ direct }

func (x *impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := x.direct.RoundTrip(r)
	if err == nil {
		answer.Body = &impatientBody{answer.Body, time.Now()}
	}
	return answer, err
}

type impatientBody struct {
	io.ReadCloser
	last time.Time
}

func (b *impatientBody) Read(p []byte) (int, error) {
	waited := time.Since(b.last)
	if b.last = time.Now(); waited > sendWait {
		return 0, errors.New("connection reset")
	}
	return b.ReadCloser.Read(p)
}

// TestBatchPace: a wait for the rate that the server does not survive is no failure of the server: what was answered before is
// there. A broken connection is one.
func TestBatchPace(t *testing.T) {
	x := smallOutputs(t, 60, 400, "")
	b := x.batch(0, 1, 2, 3)
	synctest.Test(t, func(t *testing.T) {
		for _, wait := range []time.Duration{time.Second, 2 * sendWait} {
			waits := 0
			client := &http.Client{Transport: &impatient{direct{handler: Handler(x.file, new(meter.Count))}}}
			got, err := FetchBatch(t.Context(), "http://server", b, batchInto(t), FetchOptions{Client: client, Stall: 10 * time.Millisecond,
				Pace: func(ctx context.Context, n int) error {
					if waits++; waits == 3 {
						<-time.After(wait)
					}
					return ctx.Err()
				}})
			if err != nil || len(got.Failed) > 0 || got.Ended == 0 || (got.Ended == len(x)) != (wait < sendWait) {
				t.Errorf("wait of %v: %d outputs ended, %v, %v", wait, got.Ended, got.Failed, err)
			}
			checkRuns(t, x, got)
		}
		broken := &impatient{direct{handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte{0, 0}) })}}
		if _, err := FetchBatch(t.Context(), "http://server", b, batchInto(t), FetchOptions{Client: &http.Client{Transport: broken}}); err == nil {
			t.Error("a broken connection is no failure")
		}
	})
}

// TestBatchURL: a request parses as it was, and others are refused.
func TestBatchURL(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := &Batch{Job: testJob, Partitions: rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 1, 20, rapid.ID).Draw(rt, "partitions")}
		slices.Sort(b.Partitions)
		for _, m := range rapid.SliceOfN(rapid.IntRange(0, 1<<20), 1, 5).Draw(rt, "maps") {
			b.Outputs = append(b.Outputs, BatchOutput{m, m % 7})
		}
		u, err := url.Parse(b.url("http://host"))
		if err != nil {
			rt.Fatal(err)
		}
		if got, err := parseBatch(testJob, u.Query()); err != nil || !reflect.DeepEqual(got, b) {
			rt.Fatalf("%s parses to %+v, %v", u, got, err)
		}
	})
	for _, query := range []string{
		"", "maps=1.1", "partitions=1", "maps=1&partitions=1", "maps=1.1&partitions=2,1", "maps=1.1&partitions=2-1", "maps=1.1&partitions=1,1",
		"maps=1.1&partitions=0-1000", "maps=1.1&partitions=0-900,901-1100", "maps=-1.1&partitions=1", "maps=1.1,&partitions=1",
		"maps=" + strings.Repeat("1.1,", BatchMaps) + "1.1&partitions=1",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := parseBatch(testJob, values); err == nil {
			t.Errorf("%q parses to %+v", query, b)
		}
	}
}

// FuzzBatch decodes answers.
func FuzzBatch(f *testing.F) {
	x := smallOutputs(f, 2, 12, "")
	b := x.batch(0, 1, 3)
	f.Add([]byte{})
	f.Add(answerTo(f, x, b))
	f.Add(answerTo(f, batchOutputs{"", x[1]}, b))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &batchReader{from: bytes.NewReader(data), batch: b}
		membound.Bound{Free: BatchBytes + 2*chunkBytes, PerByte: 64}.Check(t, len(data), func() { _ = r.read() })
		got, err := r.write(batchInto(t))
		if err != nil {
			t.Fatal(err) // nothing but the local file can fail
		}
		for _, run := range got.Runs {
			m, err := Merge(t.Context(), []wire.Segment{run.Segment}, MergeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := readAll(m, 0); err != nil {
				t.Fatal(err)
			}
			m.Close()
		}
	})
}
