package profiles

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/wire"
)

func profile(job, trackers int) *history.Profile {
	p := &history.Profile{Job: wire.JobID{N: job}}
	p.Phases[0].Trackers = make(map[string]*history.Sum)
	for i := range trackers {
		p.Phases[0].Trackers[fmt.Sprint(i)] = new(history.Sum)
	}
	return p
}

// TestPut compares a Store with a list of profiles, oldest job first.
func TestPut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const maxProfiles, maxTrackers = 4, 10
		k := New(maxProfiles, maxTrackers)
		type kept struct {
			name string
			*history.Profile
		}
		var list []kept
		for job := range rapid.IntRange(1, 30).Draw(t, "jobs") {
			name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f"}).Draw(t, "name")
			x := profile(job, rapid.IntRange(0, 12).Draw(t, "trackers"))
			k.Put(name, x)
			list = append(slices.DeleteFunc(list, func(y kept) bool { return y.name == name }), kept{name, x})
			size := func() (n int) {
				for _, y := range list {
					n += 1 + len(y.Phases[0].Trackers)
				}
				return n
			}
			for len(list) > maxProfiles || size() > maxTrackers && len(list) > 1 {
				list = list[1:]
			}
			var want []*history.Profile
			for _, y := range slices.Backward(list) {
				want = append(want, y.Profile)
				if k.Get(y.name) != y.Profile {
					t.Fatalf("job %d of name %s is not kept", y.Job.N, y.name)
				}
			}
			if got := k.Latest(100); !slices.Equal(got, want) {
				t.Fatalf("%d profiles are kept, want %d", len(got), len(want))
			}
			if got := k.Latest(1); got[0] != x {
				t.Fatalf("the latest is of job %v, want %d", got[0].Job, job)
			}
		}
	})
}

func TestLoading(t *testing.T) {
	k := New(1, 1)
	if k.Loading("a") || k.EndLoad("a") {
		t.Error("an empty Store reads a history")
	}
	k.BeginLoad("a")
	if !k.Loading("a") || k.Loading("b") || !k.EndLoad("a") || k.EndLoad("a") {
		t.Error("BeginLoad and EndLoad do not note a load exactly once")
	}
}

func TestFiles(t *testing.T) {
	job := wire.JobID{Start: 1, N: 2}
	noon := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	if files := HistoryFiles("hdfs://n/s", job, noon); !slices.Equal(files, []string{history.Name("hdfs://n/s", noon, job)}) {
		t.Errorf("at noon: %v", files)
	}
	midnight := noon.Add(12 * time.Hour)
	want := []string{history.Name("hdfs://n/s", midnight, job), history.Name("hdfs://n/s", midnight.Add(-time.Hour), job)}
	if files := HistoryFiles("hdfs://n/s", job, midnight); !slices.Equal(files, want) || files[0] == files[1] {
		t.Errorf("at midnight: %v", files)
	}
}
