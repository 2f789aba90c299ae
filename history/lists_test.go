package history

import (
	"errors"
	"slices"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// TestPages: pages have each history once, newest first, without the long parts, and skip damaged ones.
func TestPages(t *testing.T) {
	f := mem.New(1 << 20)
	const n = 2*PageLength + 7
	var want []string
	for i := 1; i <= n; i++ {
		name := writeRecord(t, f, i, firstDay.AddDate(0, 0, i/10))
		if i%9 == 0 {
			if err := errors.Join(f.Remove(name), f.RemoveAll(dfs.Dir(name)+"/index")); err != nil {
				t.Fatal(err)
			}
			w, err := f.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want = append(want, job(i).String())
	}
	slices.Reverse(want)
	var got []string
	skipped, pages := 0, 0
	for after := (wire.JobID{}); ; {
		p, err := ReadPage(t.Context(), f, staging, Query{After: after})
		if err != nil {
			t.Fatal(err)
		}
		pages++
		skipped += len(p.Skipped)
		for _, r := range p.Records {
			got = append(got, r.Job.ID.String())
			if r.Attempts != nil || r.Plans != nil || r.Job.Counters != nil || r.Job.Troubles != nil || r.Job.Partitions != nil || r.Job.HotKeys != nil || r.Job.SlotTime != nil || r.Owner != "ann" {
				t.Errorf("%+v", r)
			}
		}
		if after = p.Next; after.IsZero() {
			break
		}
	}
	if !slices.Equal(got, want) || skipped != n/9 || pages != 3 {
		t.Errorf("%d pages have %d histories and skip %d: %q, want %q", pages, len(got), skipped, got, want)
	}
	if p, err := ReadPage(t.Context(), f, staging, Query{After: job(999)}); err != nil || len(p.Records) > 0 || !p.Next.IsZero() {
		t.Errorf("after a job whose day is removed: %+v, %v", p, err)
	}
	if p, err := ReadPage(t.Context(), mem.New(1<<20), staging, Query{}); err != nil || len(p.Records) > 0 {
		t.Errorf("without histories: %+v, %v", p, err)
	}
}

// TestTwoFilesOfAJob: a job with files of two days is listed once. Else a page that ends with the older file
// would be followed by the same page again.
func TestTwoFilesOfAJob(t *testing.T) {
	f := mem.New(1 << 20)
	writeRecord(t, f, 1000, firstDay)
	for day := 1; day <= 2; day++ {
		ended := firstDay.AddDate(0, 0, day)
		writeRecord(t, f, 1, ended) // the last one of its page
		for i := 1; i < PageLength; i++ {
			writeRecord(t, f, 100*day+i, ended)
		}
	}
	var listed []wire.JobID
	for after, pages := (wire.JobID{}), 1; ; pages++ {
		p, err := ReadPage(t.Context(), f, staging, Query{After: after})
		if err != nil || pages > 3 {
			t.Fatalf("page %d after %v: %v", pages, after, err)
		}
		for _, r := range p.Records {
			listed = append(listed, r.Job.ID)
		}
		if after = p.Next; after.IsZero() {
			break
		}
	}
	if len(listed) != 2*PageLength || listed[PageLength-1] != job(1) || listed[2*PageLength-1] != job(1000) {
		t.Errorf("%d histories: %v", len(listed), listed)
	}
}
