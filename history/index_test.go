package history

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/wire"
)

// pages reads all pages of a list. It fails if an error is skipped.
func pages(t testing.TB, f dfs.FS, selects func(*Record) bool) (all []*Record) {
	t.Helper()
	for q := (Query{Select: selects}); ; {
		p, err := ReadPage(t.Context(), f, staging, q)
		if err != nil || len(p.Skipped) > 0 {
			t.Fatalf("%v, skipped %v", err, p.Skipped)
		}
		all = append(all, p.Records...)
		if q.After = p.Next; q.After.IsZero() {
			return all
		}
	}
}

// someRecord draws a record.
func someRecord(rnd *rand.Rand, n int) *Record {
	r := record(n)
	r.Owner, r.Job.Name = []string{"ann", "bob"}[rnd.IntN(2)], fmt.Sprintf("name%d", rnd.IntN(5))
	r.Job.State, r.Job.Settings.Pool = []wire.State{wire.Succeeded, wire.Failed, wire.Killed}[rnd.IntN(3)], []string{"", "etl"}[rnd.IntN(2)]
	r.Submitted = 1_700_000_000_000 + int64(rnd.IntN(1e9))
	if rnd.IntN(3) == 0 {
		r.Job.Flow = wire.FlowID{Start: 1_700_000_000_000, N: 1 + rnd.IntN(n)}
	}
	return r
}

// TestListsMatchRecords: lists from indexes equal lists from the records alone, whatever is missing or damaged, before
// and after Sweep.
func TestListsMatchRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		f := mem.New(1 << 20)
		var records []*Record
		for i := range rapid.IntRange(1, 30).Draw(t, "jobs") {
			r := someRecord(rnd, i+1)
			if err := Write(f, Name(staging, firstDay.AddDate(0, 0, rnd.IntN(3)), r.Job.ID), r); err != nil {
				t.Fatal(err)
			}
			records = append(records, r)
		}
		for day := range 3 {
			dir := fmt.Sprintf("%s/history/2026/03/%02d/index", staging, day+1)
			files, _ := f.List(dir)
			for _, file := range files {
				switch rnd.IntN(6) {
				case 0:
					must(t, f.Remove(file.Name))
				case 1:
					must(t, f.Remove(file.Name))
					must(t, create(f, file.Name, []byte(indexMagic+"damaged")))
				}
			}
		}
		selects := func(r *Record) bool { return r.Owner == "ann" && r.Job.Settings.Pool == "etl" }
		for _, when := range []string{"before a sweep", "after it", "after another one"} {
			var got, want []string
			for q := (Query{Select: selects}); ; {
				p, err := ReadPage(t.Context(), f, staging, q)
				if err != nil || len(p.Skipped) > 0 {
					t.Fatalf("%v, skipped %v", err, p.Skipped)
				}
				for _, r := range p.Records {
					if !reflect.DeepEqual(r, records[r.Job.ID.N-1].summary()) {
						t.Fatalf("%s: %+v, want %+v", when, r, records[r.Job.ID.N-1].summary())
					}
					got = append(got, r.Job.ID.String())
				}
				if q.After = p.Next; q.After.IsZero() {
					break
				}
			}
			for _, r := range records {
				if selects(r) {
					want = append(want, r.Job.ID.String())
				}
			}
			if slices.Sort(got); !slices.Equal(got, want) { // the days were drawn
				t.Fatalf("%s: %q, want %q", when, got, want)
			}
			must(t, Sweep(f, staging, firstDay.AddDate(0, 0, 4), 0, 0))
		}
	})
}

func must(t interface{ Fatal(...any) }, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// TestListsReadIndexes: a list reads no record that has a summary.
func TestListsReadIndexes(t *testing.T) {
	f := mem.New(1 << 20)
	for i := range 45 {
		writeRecord(t, f, i+1, firstDay.AddDate(0, 0, i/20))
	}
	must(t, f.SetFaults("open **/job_*"))
	if all := pages(t, f, nil); len(all) != 45 || all[0].Job.ID != job(45) || all[0].Job.Error != "oops" {
		t.Errorf("%d jobs", len(all))
	}
	if p, err := ReadFlow(t.Context(), f, staging, wire.FlowID{Start: job(1).Start, N: 7}); err != nil || len(p.Records)+len(p.Skipped) > 0 {
		t.Errorf("a flow without jobs: %+v, %v", p, err)
	}
}

// TestSweepRepairs: Sweep makes the indexes again that are missing or damaged, and those of older builds. The index of
// a day that is over becomes one file.
func TestSweepRepairs(t *testing.T) {
	index := func(day int) string { return fmt.Sprintf("%s/history/2026/03/%02d/index", staging, day) }
	for name, spoil := range map[string]func(f *mem.FS){
		"whole":   func(f *mem.FS) {},
		"missing": func(f *mem.FS) { must(t, f.RemoveAll(index(1))) },
		"damaged": func(f *mem.FS) {
			files, err := f.List(index(1))
			must(t, err)
			must(t, f.Remove(files[1].Name))
			must(t, create(f, files[1].Name, []byte(indexMagic)))
		},
		"one file missing": func(f *mem.FS) {
			files, err := f.List(index(1))
			must(t, err)
			must(t, f.Remove(files[1].Name))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := mem.New(1 << 20)
			for i := range 12 {
				writeRecord(t, f, i+1, firstDay.AddDate(0, 0, i/6))
			}
			spoil(f)
			must(t, Sweep(f, staging, firstDay.AddDate(0, 0, 1).Add(12*time.Hour), 0, 0))
			if files, err := f.List(index(1)); err != nil || len(files) != 1 {
				t.Errorf("the index of a day that is over: %v, %v", files, err)
			}
			if files, err := f.List(index(2)); err != nil || len(files) < 2 {
				t.Errorf("the index of today: %v, %v", files, err)
			}
			must(t, f.SetFaults("open **/job_*"))
			if all := pages(t, f, nil); len(all) != 12 {
				t.Errorf("%d jobs are in the indexes", len(all))
			}
		})
	}
}

// TestIndexFails: if the index cannot be written, the record is, and a list reads the record.
func TestIndexFails(t *testing.T) {
	for _, op := range []string{"mkdir", "create", "write", "close", "list"} {
		f := mem.New(1 << 20)
		must(t, f.SetFaults(op+" /staging/history/2026/03/01/index"))
		if op != "mkdir" && op != "list" {
			must(t, f.SetFaults(op+" /staging/history/2026/03/01/index/*"))
		}
		writeRecord(t, f, 1, firstDay)
		if all := pages(t, f, nil); len(all) != 1 {
			t.Errorf("%s fails: %d jobs", op, len(all))
		}
	}
}

// TestIndexesStaySmall: an index has few files, and each summary is rewritten a few times.
func TestIndexesStaySmall(t *testing.T) {
	f := mem.New(1 << 20)
	const jobs = 200
	for i := range jobs {
		writeRecord(t, f, i+1, firstDay)
		files, err := f.List(staging + "/history/2026/03/01/index")
		if err != nil || len(files) > 5*mergeAt {
			t.Fatalf("after %d jobs: %d files, %v", i+1, len(files), err)
		}
	}
	x := day{name: staging + "/history/2026/03/01"}
	if n := len(x.readIndex(f, nil)); n != jobs {
		t.Errorf("%d summaries", n)
	}
}

// interrupted is a file system. Before one of its calls, another job tracker does something.
type interrupted struct {
	dfs.FS
	calls int // until then
	do    func()
}

func (f *interrupted) call() {
	if f.calls--; f.calls == -1 {
		f.do()
	}
}

func (f *interrupted) Open(name string) (dfs.File, error) {
	f.call()
	return f.FS.Open(name)
}

func (f *interrupted) Create(name string) (dfs.Writer, error) {
	f.call()
	return f.FS.Create(name)
}

func (f *interrupted) Mkdir(name string) error {
	f.call()
	return f.FS.Mkdir(name)
}

func (f *interrupted) List(name string) ([]dfs.Info, error) {
	f.call()
	return f.FS.List(name)
}

func (f *interrupted) Remove(name string) error {
	f.call()
	return f.FS.Remove(name)
}

// TestConcurrent: job trackers that write, list and sweep at a time lose nothing. While one of them does so, before each
// of its calls, another one writes records, which merges files, or sweeps.
func TestConcurrent(t *testing.T) {
	for name, first := range map[string]func(f dfs.FS) error{
		"write": func(f dfs.FS) error { return Write(f, Name(staging, firstDay, job(8)), record(8)) }, // merges
		"sweep": func(f dfs.FS) error { return Sweep(f, staging, firstDay.AddDate(0, 0, 2), 0, 0) },
		"list": func(f dfs.FS) error {
			if p, err := ReadPage(t.Context(), f, staging, Query{}); err != nil || len(p.Records) < 7 || len(p.Skipped) > 0 {
				return fmt.Errorf("listed %+v: %w", p, err)
			}
			return nil
		},
	} {
		for other, second := range map[string]func(f dfs.FS){
			"writes": func(f dfs.FS) {
				for i := 11; i < 21; i++ {
					writeRecord(t, f, i, firstDay)
				}
			},
			"sweeps":                  func(f dfs.FS) { must(t, Sweep(f, staging, firstDay.AddDate(0, 0, 2), 0, 0)) },
			"writes the same history": func(f dfs.FS) { writeRecord(t, f, 8, firstDay) },
		} {
			for calls := 0; ; calls++ {
				whole := mem.New(1 << 20)
				for i := 1; i <= 7; i++ {
					writeRecord(t, whole, i, firstDay)
				}
				f := &interrupted{FS: whole, calls: calls, do: func() { second(whole) }}
				if err := first(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("%s, before its call %d another one %s: %v", name, calls, other, err)
				}
				want, err := whole.List(staging + "/history/2026/03/01")
				must(t, err)
				if all := pages(t, whole, nil); len(all) != len(want)-1 {
					t.Errorf("%s, before its call %d another one %s: listed %d of %d", name, calls, other, len(all), len(want)-1)
				}
				must(t, Sweep(whole, staging, firstDay.AddDate(0, 0, 2), 0, 0))
				must(t, whole.SetFaults("open **/job_*"))
				if all := pages(t, whole, nil); len(all) != len(want)-1 {
					t.Errorf("%s, before its call %d another one %s: the index has %d of %d", name, calls, other, len(all), len(want)-1)
				}
				if f.calls >= 0 {
					break
				}
			}
		}
	}
}

// indexFile is an index of two jobs.
func indexFile(t testing.TB) []byte {
	x := make(index)
	must(t, x.add(record(1)))
	must(t, x.add(record(2)))
	data, err := x.encode()
	must(t, err)
	return data
}

// TestDamagedIndex: a damaged file adds no summary.
func TestDamagedIndex(t *testing.T) {
	data := indexFile(t)
	rapid.Check(t, func(t *rapid.T) {
		bad := bytes.Clone(data[:rapid.IntRange(0, len(data)-1).Draw(t, "length")])
		if rapid.Bool().Draw(t, "flip") {
			bad = bytes.Clone(data)
			bad[rapid.IntRange(14, len(bad)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		x := make(index)
		err := x.decode(bytes.NewReader(bad), nil)
		if err != nil && (len(x) > 0 || !errors.Is(err, ErrNotHistory)) || err == nil && len(x) != 2 { // unused bits have no meaning
			t.Fatalf("%d summaries, %v", len(x), err)
		}
	})
}

// packed compresses an index without its checksum's protection: a fuzzer changes the content.
func packed(content []byte) []byte {
	out := bytes.NewBufferString(indexMagic)
	zip := gzip.NewWriter(out)
	_, _ = zip.Write(content)
	_ = zip.Close()
	return out.Bytes()
}

func FuzzIndex(f *testing.F) {
	zip, err := gzip.NewReader(bytes.NewReader(indexFile(f)[len(indexMagic):]))
	must(f, err)
	content, err := io.ReadAll(zip)
	must(f, err)
	f.Add(content)
	f.Fuzz(func(t *testing.T, content []byte) {
		data, x := packed(content), make(index)
		membound.Bound{Free: 8 << 20, PerByte: 256}.Check(t, len(content), func() {
			if err := x.decode(bytes.NewReader(data), nil); err != nil && !errors.Is(err, ErrNotHistory) {
				t.Error(err)
			}
		})
		for job := range x {
			if _, err := x.record(job); err != nil && !errors.Is(err, ErrNotHistory) {
				t.Error(err)
			}
		}
	})
}

// BenchmarkLists reads lists of 10,000 ended jobs, of one day and of 90 days: the first page, the page of a rare
// filter, the runs of a name, and the index of a new job.
func BenchmarkLists(b *testing.B) {
	const jobs = 10_000
	for _, days := range []int{1, 90} {
		f, top := local.New().Volatile(), "file://"+b.TempDir()
		rnd := rand.New(rand.NewPCG(1, 2))
		for i := range jobs {
			r := someRecord(rnd, i+1)
			if r.Job.Name = fmt.Sprintf("name%d", i%500); i == jobs/10 {
				r.Owner = "rare"
			}
			for range 20 { // maps
				r.Attempts = append(r.Attempts, r.Attempts[0])
			}
			must(b, Write(f, Name(top, firstDay.AddDate(0, 0, i*days/jobs), r.Job.ID), r))
		}
		for name, c := range map[string]struct {
			want    int
			selects func(*Record) bool
		}{
			"first-page":  {PageLength, nil},
			"rare-filter": {1, func(r *Record) bool { return r.Owner == "rare" }},
			"runs":        {PageLength, func(r *Record) bool { return r.Job.Name == "name7" }},
			"no-match":    {0, func(r *Record) bool { return strings.HasPrefix(r.Job.Name, "x") }},
		} {
			b.Run(fmt.Sprintf("days=%d/%s", days, name), func(b *testing.B) {
				for b.Loop() {
					if p, err := ReadPage(b.Context(), f, top, Query{Select: c.selects}); err != nil || len(p.Records) != c.want {
						b.Fatal(len(p.Records), err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("days=%d/write", days), func(b *testing.B) {
			n := jobs
			for b.Loop() {
				n++
				must(b, Write(f, Name(top, firstDay, job(n)), record(n)))
			}
		})
	}
}
