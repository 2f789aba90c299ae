package attemptlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

func TestExpiredLogs(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	logs := func(n int, bytes int64, age time.Duration) JobLogs {
		return JobLogs{job: wire.JobID{Start: 1, N: n}, dir: fmt.Sprint(n), bytes: bytes, lastWrite: now.Add(-age)}
	}
	all := []JobLogs{
		logs(1, 10, 5*time.Hour), logs(2, 20, 50*time.Hour), logs(3, 30, 30*time.Hour),
		logs(4, 40, 1*time.Hour), logs(5, 50, 90*time.Hour),
	}
	live := map[wire.JobID]bool{{Start: 1, N: 5}: true}
	for _, c := range []struct {
		age   time.Duration
		limit int64
		want  string
	}{
		{100 * time.Hour, 1000, ""},
		{40 * time.Hour, 1000, "2"},
		{100 * time.Hour, 150, ""},
		{100 * time.Hour, 149, "2"},
		{100 * time.Hour, 100, "2 3"},
		{40 * time.Hour, 110, "2 3"},
		{100 * time.Hour, 0, "2 3 1 4"},
	} {
		if got := strings.Join(Expired(slices.Clone(all), live, now.Add(-c.age), c.limit), " "); got != c.want {
			t.Errorf("%v %d: %q, want %q", c.age, c.limit, got, c.want)
		}
	}
}

// TestFind: the logs of a job are as old as its last write, and as large as all its files.
func TestFind(t *testing.T) {
	dir, job := t.TempDir(), wire.JobID{Start: 1, N: 1}
	newest := time.Unix(1_000_000, 0)
	logs := filepath.Join(dir, job.String(), "attempt")
	if err := os.MkdirAll(logs, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"stderr": time.Hour, "stderr+10": 0, "stdout": 2 * time.Hour} {
		file := filepath.Join(logs, name)
		if err := errors.Join(os.WriteFile(file, []byte("0123456789"), 0o666), os.Chtimes(file, time.Time{}, newest.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	for _, above := range []string{logs, filepath.Dir(logs)} {
		if err := os.Chtimes(above, time.Time{}, newest.Add(-3*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "notes"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	want := JobLogs{job: job, dir: filepath.Dir(logs), bytes: 30, lastWrite: newest}
	if all, err := Find(dir); err != nil || len(all) != 1 || !all[0].lastWrite.Equal(newest) || all[0].bytes != want.bytes || all[0].job != job || all[0].dir != want.dir {
		t.Errorf("found %+v, %v, want %+v", all, err, want)
	}
	if all, err := Find(filepath.Join(dir, "none")); err != nil || len(all) > 0 {
		t.Errorf("without a directory %+v, %v", all, err)
	}
}
