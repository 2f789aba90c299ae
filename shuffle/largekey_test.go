package shuffle

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/wire"
)

// largeKeys returns records with keys that differ only after the part that a merge holds.
// Their sizes are around the limits of further reads.
func largeKeys() []rec {
	var recs []rec
	for _, same := range []int{keyGuess - 1, keyGuess, blockTarget, blockTarget + keyGuess - 4, 3 * blockTarget} {
		for i, tail := range []string{"", "b", "a", "", "\x00", strings.Repeat("k", 100_000), "a"} {
			recs = append(recs, rec{0, strings.Repeat("k", same) + tail, strconv.Itoa(i)})
		}
	}
	return append(recs, rec{0, "", "none"}, rec{0, "kk", "short"}, rec{0, strings.Repeat("k", 100), strings.Repeat("v", blockTarget)})
}

// TestLargeKeys checks that all bytes of large keys count for their order, and that a merge
// does not hold them.
func TestLargeKeys(t *testing.T) {
	recs := largeKeys()
	cfg, _ := collect(t, Config{Partitions: 1, Memory: 1 << 10}, recs)
	checkSegment(t, cfg.File, 1, sorted(recs))
	server := httptest.NewServer(Handler(resolver(cfg.File), new(meter.Count)))
	defer server.Close()
	m, err := Merge(t.Context(), []wire.Segment{wholePartition(t, cfg.File, 0), {URL: URL(server.URL, testJob, 7, 1000, 0)}, wholePartition(t, cfg.File, 0)},
		MergeOptions{Client: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var got []rec
	for m.Next() {
		got = append(got, rec{0, string(m.Key()), string(m.Value())})
		for _, r := range m.readers {
			if cap(r.buf) > 100<<10 {
				t.Fatalf("a source holds %d bytes", cap(r.buf))
			}
		}
	}
	if want := sorted(slices.Repeat(recs, 3)); m.Err() != nil || !slices.Equal(got, want) {
		t.Fatalf("%d records of %d, %v", len(got), len(want), m.Err())
	}
}

// TestLargeKeyDamaged damages or cuts a key in a part that only comparisons read. The merge
// must return an error before it delivers the key.
func TestLargeKeyDamaged(t *testing.T) {
	recs := []rec{{0, strings.Repeat("k", 200_000) + "1", ""}, {0, strings.Repeat("k", 200_000) + "2", ""}}
	cfg, _ := collect(t, Config{Partitions: 1, Memory: 1 << 20}, recs)
	whole, intact := wholePartition(t, cfg.File, 0), filepath.Join(t.TempDir(), "intact")
	data, err := os.ReadFile(cfg.File)
	if err == nil {
		err = os.WriteFile(intact, data, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	good := whole
	good.File = intact
	damaged := slices.Clone(data)
	damaged[100_000] = 'z'
	for name, content := range map[string][]byte{"changed": damaged, "cut": data[:100_000]} {
		if err := os.WriteFile(cfg.File, content, 0o666); err != nil {
			t.Fatal(err)
		}
		var got []rec
		m, err := Merge(t.Context(), []wire.Segment{whole, good}, MergeOptions{})
		if err == nil {
			got, err = readAll(m, 0)
			m.Close()
		}
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || corrupt.Segment.File != cfg.File || len(got) > 2 || len(got) > 0 && got[0] != recs[0] {
			t.Errorf("%s: %d records, then %v", name, len(got), err)
		}
	}
}
