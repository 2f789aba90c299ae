package shuffle

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// deflate is a codec for tests; lies says what Unpack gives instead.
type deflate struct{ lies *[]byte }

func (deflate) Pack(dst, block []byte) []byte {
	to := bytes.NewBuffer(dst)
	w, err := flate.NewWriter(to, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(block)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err) // a buffer takes all
	}
	return to.Bytes()
}

func (d deflate) Unpack(dst, packed []byte, most int) ([]byte, error) {
	if *d.lies != nil {
		return *d.lies, nil
	}
	to := bytes.NewBuffer(dst)
	_, err := io.Copy(to, io.LimitReader(flate.NewReader(bytes.NewReader(packed)), int64(most)+1))
	return to.Bytes(), err
}

// withCodec lists a codec for the time of a test.
func withCodec(t *testing.T) (lies *[]byte) {
	lies = new([]byte)
	codecs = append(codecs, namedCodec{"test", 200, deflate{lies}})
	t.Cleanup(func() { codecs = codecs[:len(codecs)-1] })
	return lies
}

// TestCodec: what a codec packs is spilled, merged, served and fetched as without it.
func TestCodec(t *testing.T) {
	withCodec(t)
	var recs []rec
	for i := range 20_000 {
		recs = append(recs, rec{i % 3, fmt.Sprintf("key-%d", i*7919%20_000), strings.Repeat("v", i%50)})
	}
	recs = append(recs, rec{1, "key-2", strings.Repeat("large", 60_000)})
	for range 100_000 { // more than one in a byte
		recs = append(recs, rec{2, "", ""})
	}
	for name, memory := range map[string]int64{"spills": 200_000, "memory": 16 << 20} {
		t.Run(name, func(t *testing.T) {
			plain, before := collect(t, Config{Partitions: 4, Memory: memory}, recs)
			packed, after := collect(t, Config{Partitions: 4, Memory: memory, Codec: "test"}, recs)
			checkSegment(t, plain.File, 4, sorted(recs))
			index := checkSegment(t, packed.File, 4, sorted(recs))
			if after.Digest != before.Digest || after.Stats != before.Stats || after.Bytes > before.Bytes*3/4 {
				t.Errorf("%+v packed, %+v plain", after, before)
			}
			server := httptest.NewServer(Handler(resolver(packed.File)))
			defer server.Close()
			for p := range index.Partitions {
				local := filepath.Join(t.TempDir(), "part")
				if _, err := Fetch(t.Context(), URL(server.URL, testJob, 7, 1000, p), local, FetchOptions{Client: server.Client()}); err != nil {
					t.Fatal(err)
				}
				checkSegment(t, local, 1, partitionOf(sorted(recs), p))
			}
		})
	}
}

// TestBadCodec: a codec that is not there is refused, one that unpacks something else or is
// unknown to the reader is damage.
func TestBadCodec(t *testing.T) {
	_, err := NewCollector(Config{Partitions: 1, Memory: 1 << 20, Codec: "other"})
	if err == nil || !strings.Contains(err.Error(), `codec "other"`) {
		t.Errorf("unknown codec: %v", err)
	}
	lies := withCodec(t)
	cfg, _ := collect(t, Config{Partitions: 1, Memory: 1 << 20, Codec: "test"}, []rec{{0, "k", strings.Repeat("v", 1000)}})
	read := func(file, want string) {
		t.Helper()
		_, err := readWhole(t.Context(), file)
		damage, ok := errors.AsType[*CorruptError](err)
		if !ok || !strings.Contains(damage.Reason, want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	*lies = make([]byte, blockTarget+1)
	read(cfg.File, "by test: it has 65537 bytes")
	*lies = []byte{}
	read(cfg.File, "by test: it has 0 bytes")
	*lies = []byte("records that do not fill it")
	read(cfg.File, errBadRecord.Error())
	*lies = nil
	if index, err := Verify(t.Context(), cfg.File); err != nil || index.Partitions[0].Records != 1 {
		t.Errorf("%+v, %v", index, err)
	}
	data, err := os.ReadFile(cfg.File)
	if err != nil {
		t.Fatal(err)
	}
	at := len(magic)
	block := data[at+blockHeader : at+int(wholePartition(t, cfg.File, 0).Length)]
	for change, want := range []string{"codec 255, which this build does not know", "by test: flate"} {
		file, kept := filepath.Join(t.TempDir(), "changed"), block[change]
		block[change] = 0xff
		putBlockHeader(data[at:], uint32(len(block))|packedBlock, checksum(block))
		if err := os.WriteFile(file, data, 0o666); err != nil {
			t.Fatal(err)
		}
		read(file, want)
		block[change] = kept
	}
	r := &blockReader{ctx: t.Context(), in: &fileInput{file: strings.NewReader(strings.Repeat("x", 2*blockTarget))}, size: 2 * blockTarget}
	putBlockHeader(r.header[:], (blockTarget+1)|packedBlock, 0)
	r.ahead = true
	if _, _, err := r.next(); err == nil || !strings.Contains(err.Error(), "block of 65537 bytes") {
		t.Errorf("a large block that is packed: %v", err)
	}
}

// TestMostRecords: an index entry as large as a file can be is checked, with codecs too.
func TestMostRecords(t *testing.T) {
	withCodec(t)
	for length, want := range map[int64]int64{0: 0, 3: 3 * blockTarget, 1 << 50: math.MaxInt64 / blockTarget * blockTarget, math.MaxInt64: math.MaxInt64 / blockTarget * blockTarget} {
		if got := mostRecords(length); got != want {
			t.Errorf("%d records in %d bytes, want %d", got, length, want)
		}
	}
	const header = int64(len(magic))
	length := math.MaxInt64 - header
	table := appendIndex(nil, &Index{Partitions: []Partition{{Offset: header, Length: length, Records: 7}}})
	if index, err := parseIndex(table[:entryBytes], header+length); err != nil || index.Partitions[0].Records != 7 {
		t.Errorf("%+v, %v", index, err)
	}
}
