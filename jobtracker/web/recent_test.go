package web

import (
	"strings"
	"testing"
	"time"
)

// TestTruncateRecent: a limit keeps attempts that run, and then the last ends of all jobs.
func TestTruncateRecent(t *testing.T) {
	attempt := func(id, state string, end int64) Attempt {
		return Attempt{ID: id, State: state, Began: time.UnixMilli(end - 10), TookMillis: 10}
	}
	for limit, want := range map[int]string{
		0: "a1 a2 a3 b1 b2 c1", 1: "a1 truncated", 2: "a1 b1 truncated", 3: "a1 b1 c1 truncated", 4: "a1 a2 b1 c1 truncated", 6: "a1 a2 a3 b1 b2 c1", 7: "a1 a2 a3 b1 b2 c1",
	} {
		x := Recent{Items: []RecentJob{
			{"a", []Attempt{attempt("a1", "running", 100), attempt("a2", "failed", 900), attempt("a3", "killed", 500)}},
			{"b", []Attempt{attempt("b1", "ready", 100), attempt("b2", "succeeded", 800)}},
			{"c", []Attempt{attempt("c1", "succeeded", 1000)}},
		}}
		x.truncate(limit)
		var got []string
		for _, of := range x.Items {
			if len(of.Attempts) == 0 {
				t.Errorf("limit %d: job %s has no attempts", limit, of.Job)
			}
			for _, a := range of.Attempts {
				got = append(got, a.ID)
			}
		}
		if x.Truncated {
			got = append(got, "truncated")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("limit %d: %s, want %s", limit, got, want)
		}
	}
}
