// Package profiles keeps a profile of the last succeeded job of each name: its estimates serve the
// next job of this name at its start. A [Store] is bounded, in profiles and in trackers, and drops
// the profiles of the oldest jobs first. It has no I/O and is not safe for concurrent use.
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

// Store holds profiles by job name.
type Store struct {
	byName      map[string]*history.Profile
	loading     map[string]bool // names: the history of their last job is being read
	size        int             // see sizeOf
	maxProfiles int
	maxSize     int // of size; a single profile may exceed it
}

// New makes a Store of at most maxProfiles profiles, with about maxTrackers trackers in all.
func New(maxProfiles, maxTrackers int) *Store {
	return &Store{byName: make(map[string]*history.Profile), loading: make(map[string]bool), maxProfiles: maxProfiles, maxSize: maxTrackers}
}

// Get returns the profile of a name, or nil.
func (k *Store) Get(name string) *history.Profile { return k.byName[name] }

// All yields the profiles, unordered.
func (k *Store) All() iter.Seq[*history.Profile] { return maps.Values(k.byName) }

// Latest lists at most n profiles, newest job first.
func (k *Store) Latest(n int) []*history.Profile {
	all := slices.SortedFunc(k.All(), func(a, b *history.Profile) int { return b.Job.Compare(a.Job) })
	return all[:min(n, len(all))]
}

// Loading reports whether the history of the last job of a name is being read.
func (k *Store) Loading(name string) bool { return k.loading[name] }

// BeginLoad notes that the history of a name is being read.
func (k *Store) BeginLoad(name string) { k.loading[name] = true }

// EndLoad notes that reading has ended or failed, and reports whether it had begun.
func (k *Store) EndLoad(name string) bool {
	was := k.loading[name]
	delete(k.loading, name)
	return was
}

// Put replaces the profile of a name.
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

// HistoryFiles lists the URLs that the history of a job may have. The URL contains the day of the
// job's end; the clock of the leader that wrote it may differ by an hour.
func HistoryFiles(staging string, job wire.JobID, ended time.Time) (files []string) {
	for _, off := range []time.Duration{0, -time.Hour, time.Hour} {
		if name := history.Name(staging, ended.Add(off), job); !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	return files
}
