package shuffle

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/wire"
)

// sortRecords makes n records of a random key of 10 bytes and a value of 90 bytes.
func sortRecords(n int) []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, n*100)
	for i := range data {
		data[i] = ' ' + byte(rng.Uint32()%95)
	}
	return data
}

func benchCollector(b *testing.B, memory int64, partitions int) *Collector {
	b.Helper()
	dir := b.TempDir()
	c, err := NewCollector(Config{Partitions: partitions, Memory: memory, Dir: dir, File: filepath.Join(dir, "output")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Discard)
	return c
}

func fillSort(b *testing.B, c *Collector, data []byte) {
	for i := 0; i < len(data); i += 100 {
		if err := c.Collect(int(data[i+9])%c.cfg.Partitions, data[i:i+10], data[i+10:i+100]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCollect(b *testing.B) {
	data := sortRecords(500_000)
	c := benchCollector(b, 64<<20, 4)
	b.SetBytes(int64(len(data)))
	for range 2 { // the first use of memory is slow
		fillSort(b, c, data)
		c.used, c.firstEntry = 0, len(c.index)
	}
	b.ResetTimer()
	for b.Loop() {
		fillSort(b, c, data)
		c.used, c.firstEntry = 0, len(c.index)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/500_000, "ns/record")
}

func BenchmarkSort(b *testing.B) {
	for _, n := range []int{500_000, 1_000_000} {
		b.Run(fmt.Sprintf("%dMB", n/10_000), func(b *testing.B) {
			data := sortRecords(n)
			c := benchCollector(b, int64(n)*120, 4)
			fillSort(b, c, data)
			unsorted := append([]entry(nil), c.index[c.firstEntry:]...)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				b.StopTimer()
				copy(c.index[c.firstEntry:], unsorted)
				b.StartTimer()
				c.sorter.sort(c.index[c.firstEntry:])
			}
		})
	}
}

// BenchmarkSortWords sorts many equal keys, short or long.
func BenchmarkSortWords(b *testing.B) {
	for _, prefix := range []string{"", "http://www.example.com/"} {
		b.Run("prefix-"+prefix, func(b *testing.B) {
			const n = 1_000_000
			rng := rand.New(rand.NewPCG(1, 2))
			zipf := rand.NewZipf(rng, 1.1, 2.7, 100_000)
			c := benchCollector(b, 64<<20, 4)
			for range n {
				key := fmt.Appendf(nil, "%s%x", prefix, zipf.Uint64()*2654435761%1e9)
				if err := c.Collect(int(key[len(key)-1])%4, key, key[:1]); err != nil {
					b.Fatal(err)
				}
			}
			unsorted := append([]entry(nil), c.index[c.firstEntry:]...)
			for b.Loop() {
				b.StopTimer()
				copy(c.index[c.firstEntry:], unsorted)
				b.StartTimer()
				c.sorter.sort(c.index[c.firstEntry:])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/record")
		})
	}
}

// BenchmarkSortAndWrite measures a spill without the disk.
func BenchmarkSortAndWrite(b *testing.B) {
	data := sortRecords(1_000_000)
	c := benchCollector(b, 120<<20, 4)
	fillSort(b, c, data)
	unsorted := append([]entry(nil), c.index[c.firstEntry:]...)
	null := filepath.Join(b.TempDir(), "null")
	if err := os.Symlink(os.DevNull, null); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		b.StopTimer()
		copy(c.index[c.firstEntry:], unsorted)
		b.StartTimer()
		c.sorter.sort(c.index[c.firstEntry:])
		if _, err := c.write(null, func(w *segmentWriter, p int) error { return c.writeRun(w, c.run(p)) }); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMapOutput measures a whole map output: allocate, collect, sort, write a file.
func BenchmarkMapOutput(b *testing.B) {
	data := sortRecords(1_000_000)
	for _, memory := range []int64{120 << 20, 20 << 20} {
		b.Run(fmt.Sprintf("100MB-in-%dMB", memory>>20), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				c := benchCollector(b, memory, 4)
				fillSort(b, c, data)
				if _, err := c.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMerge(b *testing.B) {
	const runs, each = 16, 50_000
	data := sortRecords(runs * each)
	var segments []wire.Segment
	for i := range runs {
		c := benchCollector(b, 16<<20, 1)
		fillSort(b, c, data[i*each*100:(i+1)*each*100])
		if _, err := c.Close(); err != nil {
			b.Fatal(err)
		}
		segments = append(segments, wholePartition(b, c.cfg.File, 0))
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		m, err := Merge(b.Context(), segments, MergeOptions{})
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for m.Next() {
			n++
		}
		if m.Err() != nil || n != runs*each {
			b.Fatal(n, m.Err())
		}
		m.Close()
	}
}

// BenchmarkMergeTo merges runs into one, with and without its largest groups: of records with different keys, and
// of words.
func BenchmarkMergeTo(b *testing.B) {
	const runs, each = 64, 10_000
	data := sortRecords(runs * each)
	for _, kind := range []string{"lines", "words"} {
		var segments []wire.Segment
		size := int64(0)
		for i := range runs {
			c := benchCollector(b, 4<<20, 1)
			if kind == "lines" {
				fillSort(b, c, data[100*i*each:100*(i+1)*each])
			} else {
				for n := range each {
					if err := c.Collect(0, fmt.Appendf(nil, "word%d", n%500), []byte{1}); err != nil {
						b.Fatal(err)
					}
				}
			}
			if _, err := c.Close(); err != nil {
				b.Fatal(err)
			}
			segments = append(segments, wholePartition(b, c.cfg.File, 0))
			size += segments[i].Length
		}
		for _, counted := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/counted=%v", kind, counted), func(b *testing.B) {
				b.SetBytes(size)
				file := filepath.Join(b.TempDir(), "merged")
				for b.Loop() {
					var largest *Largest
					if counted {
						l := NewLargest(8, 64<<10)
						largest = &l
					}
					if _, err := MergeTo(b.Context(), segments, file, MergeOptions{}, largest); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkFetch(b *testing.B) {
	data := sortRecords(500_000)
	c := benchCollector(b, 64<<20, 1)
	fillSort(b, c, data)
	if _, err := c.Close(); err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(Handler(resolver(c.cfg.File), new(meter.Count)))
	defer server.Close()
	file := filepath.Join(b.TempDir(), "part")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Fetch(b.Context(), URL(server.URL, testJob, 7, 1000, 0), file, FetchOptions{Client: server.Client()}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkServe serves small partitions of an output with many of them.
func BenchmarkServe(b *testing.B) {
	const partitions = 2000
	c := benchCollector(b, 1<<20, partitions)
	for i := range 4 * partitions {
		if err := c.Collect(i%partitions, strconv.AppendInt(nil, int64(i), 10), nil); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := c.Close(); err != nil {
		b.Fatal(err)
	}
	handler := Handler(resolver(c.cfg.File), new(meter.Count))
	i := 0
	for b.Loop() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, URL("", testJob, 7, 1000, i%partitions), nil))
		if w.Code != http.StatusOK || w.Body.Len() == 0 {
			b.Fatalf("partition %d: %d, %d bytes", i%partitions, w.Code, w.Body.Len())
		}
		i++
	}
}

func BenchmarkTable(b *testing.B) {
	sum := func(a, b int64) int64 { return a + b }
	for _, distinct := range []int{10, 2000, 500_000} {
		b.Run(fmt.Sprintf("%d-words", distinct), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 2))
			zipf := rand.NewZipf(rng, 1.1, 2.7, uint64(distinct-1))
			words := make([][]byte, distinct)
			for i := range words {
				words[i] = make([]byte, 2+rng.IntN(9))
				for j := range words[i] {
					words[i][j] = 'a' + byte(rng.IntN(26))
				}
			}
			text := make([][]byte, 1<<20)
			for i := range text {
				text[i] = words[zipf.Uint64()]
			}
			t, err := NewTable[int64](64<<20, batchRecords)
			if err != nil {
				b.Fatal(err)
			}
			defer t.Close()
			i := 0
			for b.Loop() {
				if t.Add(text[i&(1<<20-1)], 1) && !t.Fold(sum) {
					b.Fatal("full")
				}
				i++
			}
		})
	}
}
