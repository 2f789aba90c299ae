package shuffle

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/meter"
)

// deflate is a codec for tests. If wrong is not nil, Unpack returns it as its result.
type deflate struct{ wrong *[]byte }

func (deflate) Pack(dst, block []byte) []byte {
	to := bytes.NewBuffer(dst)
	w, err := flate.NewWriter(to, flate.BestSpeed)
	if err == nil {
		_, err = w.Write(block)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		panic(err) // a buffer never fails
	}
	return to.Bytes()
}

func (d deflate) Unpack(dst, packed []byte, limit int) ([]byte, error) {
	if *d.wrong != nil {
		return *d.wrong, nil
	}
	to := bytes.NewBuffer(dst)
	_, err := io.Copy(to, io.LimitReader(flate.NewReader(bytes.NewReader(packed)), int64(limit)+1))
	return to.Bytes(), err
}

// withCodec adds a codec for one test.
func withCodec(t *testing.T) (wrong *[]byte) {
	wrong = new([]byte)
	codecs = append(codecs, namedCodec{"test", 200, deflate{wrong}})
	t.Cleanup(func() { codecs = codecs[:len(codecs)-1] })
	return wrong
}

// TestCodec checks that packed blocks are spilled, merged, served and fetched like unpacked
// ones.
func TestCodec(t *testing.T) {
	withCodec(t)
	var recs []rec
	for i := range 20_000 {
		recs = append(recs, rec{i % 3, fmt.Sprintf("key-%d", i*7919%20_000), strings.Repeat("v", i%50)})
	}
	recs = append(recs, rec{1, "key-2", strings.Repeat("large", 60_000)})
	for range 100_000 { // more than one record per packed byte
		recs = append(recs, rec{2, "", ""})
	}
	for name, memory := range map[string]int64{"spills": 200_000, "memory": 16 << 20} {
		t.Run(name, func(t *testing.T) {
			unpacked, before := collect(t, Config{Partitions: 4, Memory: memory}, recs)
			packed, after := collect(t, Config{Partitions: 4, Memory: memory, Codec: "test"}, recs)
			checkSegment(t, unpacked.File, 4, sorted(recs))
			index := checkSegment(t, packed.File, 4, sorted(recs))
			if after.Digest != before.Digest || after.Stats != before.Stats || after.Bytes > before.Bytes*3/4 {
				t.Errorf("packed %+v, unpacked %+v", after, before)
			}
			server := httptest.NewServer(Handler(resolver(packed.File), new(meter.Count)))
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

// TestCodecs checks that every codec restores the blocks that it packs, in several goroutines at once,
// appends to dst, and gives more than limit bytes or an error for a block that is larger.
func TestCodecs(t *testing.T) {
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			var all sync.WaitGroup
			for seed := range uint64(4) {
				all.Go(func() {
					r := rand.New(rand.NewPCG(seed, 1))
					for range 50 {
						block := bytes.Repeat([]byte{byte(r.Uint32()), 1, 2}, 1+r.IntN(blockTarget/3))
						for range r.IntN(1000) {
							block[r.IntN(len(block))] = byte(r.Uint32())
						}
						packed := c.Pack([]byte("before"), block)
						if again := c.Pack([]byte("before"), block); !bytes.HasPrefix(packed, []byte("before")) || !bytes.Equal(packed, again) {
							t.Errorf("packed %d bytes to %d and to %d", len(block), len(packed), len(again))
						}
						got, err := c.Unpack([]byte("before"), packed[6:], blockTarget)
						if err != nil || string(got[:6]) != "before" || !bytes.Equal(got[6:], block) {
							t.Errorf("%d bytes: unpacked %d, %v", len(block), len(got)-6, err)
						}
					}
				})
			}
			all.Wait()
			large := c.Pack(nil, make([]byte, 100*blockTarget))
			membound.Bound{Free: 4 << 20}.Check(t, len(large), func() {
				if got, err := c.Unpack(nil, large, blockTarget); err == nil && len(got) <= blockTarget {
					t.Errorf("a block of %d bytes unpacks to %d without an error", 100*blockTarget, len(got))
				}
			})
		})
	}
}

// TestBadCodec checks that NewCollector refuses an unknown codec. A reader must report wrong
// output of Unpack, or an unknown codec, as damage.
func TestBadCodec(t *testing.T) {
	_, err := NewCollector(Config{Partitions: 1, Memory: 1 << 20, Codec: "other"})
	if err == nil || !strings.Contains(err.Error(), `codec "other"`) {
		t.Errorf("unknown codec: %v", err)
	}
	wrong := withCodec(t)
	cfg, _ := collect(t, Config{Partitions: 1, Memory: 1 << 20, Codec: "test"}, []rec{{0, "k", strings.Repeat("v", 1000)}})
	read := func(file, want string) {
		t.Helper()
		_, err := readWhole(t.Context(), file)
		damage, ok := errors.AsType[*CorruptError](err)
		if !ok || !strings.Contains(damage.Reason, want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	*wrong = make([]byte, blockTarget+1)
	read(cfg.File, "by test: it has 65537 bytes")
	*wrong = []byte{}
	read(cfg.File, "by test: it has 0 bytes")
	*wrong = []byte("records that do not fill it")
	read(cfg.File, errBadRecord.Error())
	*wrong = nil
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
		file, original := filepath.Join(t.TempDir(), "changed"), block[change]
		block[change] = 0xff
		putBlockHeader(data[at:], uint32(len(block))|packedBlock, checksum(block))
		if err := os.WriteFile(file, data, 0o666); err != nil {
			t.Fatal(err)
		}
		read(file, want)
		block[change] = original
	}
	r := &blockReader{ctx: t.Context(), in: &fileInput{file: strings.NewReader(strings.Repeat("x", 2*blockTarget))}, size: 2 * blockTarget}
	putBlockHeader(r.header[:], (blockTarget+1)|packedBlock, 0)
	r.haveHeader = true
	if _, _, err := r.next(); err == nil || !strings.Contains(err.Error(), "block of 65537 bytes") {
		t.Errorf("packed large block: %v", err)
	}
}

// TestMaxRecords checks index entries of the largest possible files, with codecs too.
func TestMaxRecords(t *testing.T) {
	withCodec(t)
	for length, want := range map[int64]int64{0: 0, 3: 3 * blockTarget, 1 << 50: math.MaxInt64 / blockTarget * blockTarget, math.MaxInt64: math.MaxInt64 / blockTarget * blockTarget} {
		if got := maxRecords(length); got != want {
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
