// Package profiles keeps what the last succeeded job of each name has shown, so that the next
// one begins with it. A [Known] is bounded, in profiles and in trackers: those of the oldest
// jobs go first. It is one leader's, does no I/O, and is not safe for concurrent use.
package profiles

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/wire"
)

// Known is profiles by the names of jobs.
type Store struct {
	byName      map[string]*history.Profile
	loading     map[string]bool // whose history is being read
	size        int             // see sizeOf
	maxProfiles int             // profiles
	maxSize     int             // size, if there is more than one
}

// New keeps at most so many profiles, and about so many trackers in all of them.
func New(most, trackers int) *Store {
	return &Store{byName: make(map[string]*history.Profile), loading: make(map[string]bool), maxProfiles: most, maxSize: trackers}
}

// Of is the profile of a name, or nil.
func (k *Store) Get(name string) *history.Profile { return k.byName[name] }

// All yields them in no order.
func (k *Store) All() iter.Seq[*history.Profile] { return maps.Values(k.byName) }

// Latest lists at most n of them, those of the newest jobs first.
func (k *Store) Latest(n int) []*history.Profile {
	all := slices.SortedFunc(k.All(), func(a, b *history.Profile) int { return b.Job.Compare(a.Job) })
	return all[:min(n, len(all))]
}

// Loading says whether the history of the last job of a name is being read.
func (k *Store) Loading(name string) bool { return k.loading[name] }

// Load notes that it is.
func (k *Store) BeginLoad(name string) { k.loading[name] = true }

// Loaded notes that it was, or could not be. It says whether it was being read.
func (k *Store) EndLoad(name string) bool {
	was := k.loading[name]
	delete(k.loading, name)
	return was
}

// Keep puts a profile in the place of an earlier one of the name.
func (k *Store) Put(name string, x *history.Profile) {
	k.drop(name)
	k.byName[name] = x
	k.size += sizeOf(x)
	for len(k.byName) > k.maxProfiles || k.size > k.maxSize && len(k.byName) > 1 {
		names := slices.Collect(maps.Keys(k.byName))
		k.drop(slices.MinFunc(names, func(a, b string) int {
			return cmp.Or(k.byName[a].Job.Compare(k.byName[b].Job), cmp.Compare(a, b))
		}))
	}
}

func (k *Store) drop(name string) {
	if old := k.byName[name]; old != nil {
		k.size -= sizeOf(old)
		delete(k.byName, name)
	}
}

func sizeOf(p *history.Profile) (trackers int) {
	trackers = 1
	for i := range p.Phases {
		trackers += len(p.Phases[i].Trackers)
	}
	return trackers
}

// Files lists the URLs where the history of a job may be that has ended at a time by the clock
// of the leader then: it is named by the day, which another clock may take for the one
// before or after.
func HistoryFiles(staging string, job wire.JobID, ended time.Time) (files []string) {
	for _, off := range []time.Duration{0, -time.Hour, time.Hour} {
		if name := history.Name(staging, ended.Add(off), job); !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	return files
}
