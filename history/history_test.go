package history

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/internal/membound"
	"github.com/quernmr/quern/wire"
)

const staging = "mem://s/staging"

var firstDay = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func job(n int) wire.JobID { return wire.JobID{Start: 1_700_000_000_000, N: n} }

func record(n int) *Record {
	return &Record{
		Job: wire.JobStatus{
			ID: job(n), Name: "count", State: wire.Failed, Error: "oops", Troubles: []string{"a", "b"},
			Counters: wire.Counters{"g": {"N": 7}}, Maps: wire.TaskCounts{Total: 3, Done: 2}, Elapsed: time.Minute,
			Partitions: &wire.PartitionSizes{Total: 2}, HotKeys: []wire.HotKey{{Key: "the", Bytes: 7}}, SlotTime: &wire.SlotTime{Total: 3},
		},
		Plan:  wire.JobPlan{Name: "count", Reduces: 2, Properties: map[string]string{"x": "y"}},
		Owner: "ann", Submitted: 5, Ended: 9,
		Attempts: []wire.AttemptStatus{{
			Attempt: wire.AttemptID{Task: wire.TaskID{Job: job(n), Kind: wire.Map, N: 1}, N: 1000},
			Tracker: "t1", Addr: "h:1", State: wire.AttemptFailed, Began: 5, Launched: 4, Took: 3, Error: "oops",
		}},
		Omitted: 2,
		Plans: []Planned{
			{At: 5, Phase: wire.Map, Scheduling: wire.Scheduling{Scheduler: "hmhs"}, Target: 2, Place: 1, Places: 3, End: 9, Queues: []Queued{{"t1", 4, 2}}},
			{At: 6, Phase: wire.Map, Share: 0.25, ShareRank: 1},
		},
		PlansSince: 5, PlansSinceReason: "they were an earlier leader's",
	}
}

func writeRecord(t *testing.T, f dfs.FS, n int, ended time.Time) string {
	t.Helper()
	name := Name(staging, ended, job(n))
	if err := Write(f, name, record(n)); err != nil {
		t.Fatal(err)
	}
	return name
}

func listedJobs(t *testing.T, f dfs.FS) []string {
	t.Helper()
	var list []string
	for e, err := range entries(f, staging) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.Day.Format("0102 ")+fmt.Sprint(e.Job.N))
	}
	return list
}

func TestWriteAndFind(t *testing.T) {
	f := mem.New(1 << 20)
	if got := listedJobs(t, f); got != nil {
		t.Errorf("an empty staging directory lists %v", got)
	}
	name := writeRecord(t, f, 1, firstDay.Add(23*time.Hour))
	if want := staging + "/history/2026/03/01/job_1700000000000_0001"; name != want {
		t.Errorf("the file is %s", name)
	}
	other := record(1)
	other.Owner = "bob"
	if err := Write(f, name, other); err != nil {
		t.Fatal(err)
	}
	got, err := Find(f, staging, job(1))
	if err != nil || !reflect.DeepEqual(got, record(1)) {
		t.Errorf("found %+v, %v", got, err)
	}
	if _, err := Find(f, staging, job(2)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a job without a history: %v", err)
	}
}

// TestWritePowerCut cuts the power at each call. The file must be complete or missing. It
// must be complete if a writer has reported success.
func TestWritePowerCut(t *testing.T) {
	name := Name(staging, firstDay, job(1))
	for calls, met := 0, true; met; calls++ {
		for seed := range uint64(10) {
			f := mem.New(1 << 20)
			f.Settle()
			if err := f.SetFaults(fmt.Sprintf("any ** after=%d times=1", calls)); err != nil {
				t.Fatal(err)
			}
			failed := Write(f, name, record(1))
			met = f.Calls() > calls
			again := failed != nil && seed%2 == 0
			if again {
				if err := Write(f, name, record(1)); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.SetFaults(""); err != nil {
				t.Fatal(err)
			}
			f.PowerCut(rand.New(rand.NewPCG(seed, uint64(calls))))
			got, err := Read(f, name)
			if p, pageErr := ReadPage(t.Context(), f, staging, Query{}); pageErr != nil || len(p.Skipped) > 0 || len(p.Records) == 1 != (err == nil) {
				t.Fatalf("call %d: read %v, listed %+v, %v", calls, err, p, pageErr)
			}
			if errors.Is(err, fs.ErrNotExist) && failed != nil && !again {
				continue
			}
			if err != nil || !reflect.DeepEqual(got, record(1)) {
				t.Fatalf("call %d: wrote %v, read %v, %v", calls, failed, got, err)
			}
		}
	}
}

// TestOlderPlans reads a record of an older build, which has Plans instead of a PlanLog.
func TestOlderPlans(t *testing.T) {
	body, err := wire.Marshal(record(1))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := parse(body); err != nil || !reflect.DeepEqual(r, record(1)) {
		t.Errorf("read %+v, %v", r, err)
	}
}

func TestListIsNewestFirst(t *testing.T) {
	f := mem.New(1 << 20)
	for i, at := range []time.Time{firstDay, firstDay.Add(time.Hour), firstDay.AddDate(0, 1, 0), firstDay.AddDate(-1, 0, 0), firstDay.AddDate(0, 0, 1)} {
		writeRecord(t, f, i+1, at)
	}
	for _, name := range []string{"/history/2026/03/01/.writing", "/history/2026/03/01/notes.txt", "/history/2026/x"} {
		w, err := f.Create(staging + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.MkdirAll(staging + "/history/2026/13/77"); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(listedJobs(t, f)), "[0401 3 0302 5 0301 2 0301 1 0301 4]"; got != want {
		t.Errorf("listed %s, not %s", got, want)
	}
}

func TestSweep(t *testing.T) {
	f := mem.New(1 << 20)
	var size int64
	for i := range 10 {
		d := day{name: dfs.Dir(writeRecord(t, f, i+1, firstDay.AddDate(0, 0, i)))}
		bytes, err := d.bytes(f)
		if err != nil {
			t.Fatal(err)
		}
		size = max(size, bytes)
	}
	now := firstDay.AddDate(0, 0, 9).Add(12 * time.Hour)
	check := func(what string, keep time.Duration, limit int64, want string) {
		t.Helper()
		if err := Sweep(f, staging, now, keep, limit); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(listedJobs(t, f)); got != want {
			t.Errorf("%s: left are %s, not %s", what, got, want)
		}
	}
	check("nothing to do", 0, 0, "[0310 10 0309 9 0308 8 0307 7 0306 6 0305 5 0304 4 0303 3 0302 2 0301 1]")
	check("six days", 6*24*time.Hour, 100*size, "[0310 10 0309 9 0308 8 0307 7 0306 6 0305 5 0304 4]")
	check("room for three", 0, 3*size, "[0310 10 0309 9 0308 8]")
	check("no room", time.Hour, 1, "[0310 10]")
	if infos, err := f.List(staging + "/history/2026/03"); err != nil || len(infos) != 1 {
		t.Errorf("days left: %v %v", infos, err)
	}
}

// TestSweepFails checks that a day which cannot be removed is reported, and that the other days
// are removed.
func TestSweepFails(t *testing.T) {
	f := mem.New(1 << 20)
	for i := range 4 {
		writeRecord(t, f, i+1, firstDay.AddDate(0, 0, i))
	}
	if err := f.SetFaults("removeall /staging/history/2026/03/01 error=eacces"); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(f, staging, firstDay.AddDate(0, 1, 0), time.Hour, 0); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the error is %v", err)
	}
	if got := fmt.Sprint(listedJobs(t, f)); got != "[0304 4 0301 1]" {
		t.Errorf("left are %s", got)
	}
}

// TestPrivate checks that only the user can read a history: it has the token for the logs.
func TestPrivate(t *testing.T) {
	top := t.TempDir()
	if err := Write(local.New(), Name("file://"+top+"/staging", firstDay, job(1)), record(1)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"staging", "staging/history/2026/03/01", "staging/history/2026/03/01/" + job(1).String()} {
		if info, err := os.Stat(filepath.Join(top, name)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	files, err := filepath.Glob(top + "/staging/history/2026/03/01/index/*")
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%s: %v, %v", files[0], info.Mode(), err)
	}
}

// TestSweepEmptiesMonths checks that a month and year are removed with their last day.
func TestSweepEmptiesMonths(t *testing.T) {
	f := mem.New(1 << 20)
	writeRecord(t, f, 1, firstDay.AddDate(-1, 0, 0))
	writeRecord(t, f, 2, firstDay)
	if err := Sweep(f, staging, firstDay, time.Hour, 0); err != nil {
		t.Fatal(err)
	}
	if infos, err := f.List(staging + "/history"); err != nil || len(infos) != 1 {
		t.Errorf("years left: %v %v", infos, err)
	}
}

// TestWriteFails fails each call of a write, with and without its effect. The file must be
// complete or missing, and a second write must complete it.
func TestWriteFails(t *testing.T) {
	for _, op := range []string{"stat", "mkdirall", "create", "write", "close", "renamefile"} {
		for _, how := range []string{"", " done", " torn=7"} {
			if how == " torn=7" && op != "write" {
				continue
			}
			t.Run(op+how, func(t *testing.T) {
				f := mem.New(1 << 20)
				if err := f.SetFaults(op + " ** times=1" + how); err != nil {
					t.Fatal(err)
				}
				name := Name(staging, firstDay, job(1))
				wrote := Write(f, name, record(1))
				if err := f.SetFaults(""); err != nil {
					t.Fatal(err)
				}
				if _, err := Read(f, name); err != nil && (wrote == nil || !errors.Is(err, fs.ErrNotExist)) {
					t.Fatalf("written: %v; read: %v", wrote, err)
				}
				if err := Write(f, name, record(1)); err != nil {
					t.Fatalf("second write: %v", err)
				}
				if got, err := Read(f, name); err != nil || !reflect.DeepEqual(got, record(1)) {
					t.Errorf("read %+v, %v", got, err)
				}
				infos, err := f.List(dfs.Dir(name))
				infos = slices.DeleteFunc(infos, func(i dfs.Info) bool { return dfs.Base(i.Name) == indexName })
				if err != nil || len(infos) != 1 {
					t.Errorf("left: %v %v", infos, err)
				}
			})
		}
	}
}

// TestReadFails fails each call of a read. The error must not report damage.
func TestReadFails(t *testing.T) {
	f, name := mem.New(1<<20), Name(staging, firstDay, job(1))
	if err := Write(f, name, record(1)); err != nil {
		t.Fatal(err)
	}
	for _, op := range []string{"open", "read"} {
		failed := 0
		for ; ; failed++ {
			if err := f.SetFaults(fmt.Sprintf("%s ** times=1 after=%d", op, failed)); err != nil {
				t.Fatal(err)
			}
			_, err := Read(f, name)
			if err == nil {
				break
			}
			if !errors.Is(err, syscall.EIO) || errors.Is(err, ErrNotHistory) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s number %d fails: %v", op, failed, err)
			}
		}
		if failed == 0 {
			t.Errorf("%s never failed", op)
		}
	}
}

func TestDamaged(t *testing.T) {
	data, err := encode(record(1))
	if err != nil {
		t.Fatal(err)
	}
	whole, err := decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		bad := bytes.Clone(data[:rapid.IntRange(0, len(data)-1).Draw(t, "length")])
		if rapid.Bool().Draw(t, "flip") {
			bad = bytes.Clone(data)
			bad[rapid.IntRange(14, len(bad)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		// Unused bits of deflate's last byte have no meaning.
		if r, err := decode(bytes.NewReader(bad)); !errors.Is(err, ErrNotHistory) && (err != nil || !reflect.DeepEqual(r, whole)) {
			t.Fatalf("decoded %+v: %v", r, err)
		}
	})
}

// Memory that a file may take, also one that unpacks to much, and a record without its compression.
var (
	decodeBound = membound.Bound{Free: 64 << 20, PerByte: 64 * maxRatio}
	parseBound  = membound.Bound{Free: 8 << 20, PerByte: 256}
)

// TestUnpacksToMuch: a small file that unpacks to very much is refused early.
func TestUnpacksToMuch(t *testing.T) {
	var file bytes.Buffer
	file.WriteString(magic)
	zip := gzip.NewWriter(&file)
	if _, err := zip.Write(make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	membound.Bound{Free: 128 << 20}.Check(t, file.Len(), func() {
		if _, err := decode(bytes.NewReader(file.Bytes())); !errors.Is(err, ErrNotHistory) || !strings.Contains(err.Error(), "unpack to more than") {
			t.Error(err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	data, err := encode(record(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		decodeBound.Check(t, len(data), func() {
			if _, err := decode(bytes.NewReader(data)); err != nil && !errors.Is(err, ErrNotHistory) {
				t.Error(err)
			}
		})
	})
}

// FuzzParse skips the compression, because its checksum would hide the fuzzer's changes.
func FuzzParse(f *testing.F) {
	body, err := wire.Marshal(record(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Fuzz(func(t *testing.T, body []byte) {
		var r *Record
		var err error
		parseBound.Check(t, len(body), func() { r, err = parse(body) })
		if err != nil {
			return
		}
		again, err := wire.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parse(again); err != nil {
			t.Errorf("marshalled again: %v", err)
		}
	})
}
