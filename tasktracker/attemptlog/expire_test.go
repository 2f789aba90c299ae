package attemptlog

import (
	"fmt"
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
