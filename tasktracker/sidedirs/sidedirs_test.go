package sidedirs

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestStore compares the store with the uses themselves.
func TestStore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := []string{"/a", "/b", "/c"}
		type use struct {
			staging string
			source  Source
			dir     string
		}
		var (
			s       Store
			uses    []use
			removed = make(map[string]bool)
			latest  = make(map[Source]string)
			first   = make(map[string]time.Time) // use of a directory
			now     time.Time
			name    = rapid.SampledFrom([]string{"1", "2", "3"})
		)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 6).Draw(t, "hours")) * time.Hour)
			staging := name.Draw(t, "staging")
			if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				var before []string
				for _, u := range uses {
					if u.staging == staging && !slices.Contains(before, u.dir) {
						before = append(before, u.dir)
					}
				}
				uses = slices.DeleteFunc(uses, func(u use) bool { return u.staging == staging })
				unused := slices.DeleteFunc(before, func(dir string) bool {
					return slices.ContainsFunc(uses, func(u use) bool { return u.dir == dir })
				})
				if got := s.Release(staging); !slices.Equal(got, unused) {
					t.Fatalf("release of %s: %q, want %q", staging, got, unused)
				}
				for _, dir := range unused {
					removed[dir] = true
				}
				continue
			}
			good := rapid.SliceOfDistinct(rapid.SampledFrom(all), func(d string) string { return d }).Draw(t, "disks")
			u := use{staging, Source{name.Draw(t, "holder"), name.Draw(t, "url")}, ""}
			u.dir = s.Use(u.staging, u.source, good, now)
			if u.dir == "" && len(good) == 0 {
				continue
			}
			if removed[u.dir] || !slices.Contains(good, u.dir[:2]) {
				t.Fatalf("%v got %s, disks %q", u, u.dir, good)
			}
			if _, used := first[u.dir]; !used {
				first[u.dir] = now
			}
			if now.Sub(first[u.dir]) >= maxAge {
				t.Fatalf("%v got %s after %v", u, u.dir, now.Sub(first[u.dir]))
			}
			last := latest[u.source]
			for _, other := range uses {
				if other.source != u.source && other.dir == u.dir {
					t.Fatalf("%v and %v share a directory", u, other)
				}
			}
			if last != "" && !removed[last] && slices.Contains(good, last[:2]) && now.Sub(first[last]) < maxAge && u.dir != last {
				t.Fatalf("%v got not %s", u, last)
			}
			uses, latest[u.source] = append(uses, u), u.dir
		}
	})
}
