// Package sidedirs assigns the directories in which the jobs of a task tracker share copies of archives and directories.
//
// All jobs of an owner that name the same path get the same directory, so each version of an archive is unpacked once on a
// task tracker. The workers make the copies themselves, see package runtime: the task tracker neither reads archives nor
// unpacks them.
//
//	<disk>/shared/<number>             a directory of this package
//	<disk>/shared/<number>/<version>/  made by an attempt
//
// # Invariants
//
//	S1  Two owners, or two accounts, never get the same directory. The workers of an owner can change its copies, as they
//	    can change its other files; those of others cannot.
//	S2  A directory is removed only when no submission uses it: all workers that could read it have exited.
//	S3  A number is used once. A directory that waits for its removal is assigned to no submission.
//	S4  A new use of a directory on a disk that has failed gets another one.
//	S5  A directory gets no new users a day after its first one. So a version is removed when the jobs of a day have ended,
//	    even if jobs that use the path always run.
//
// A directory without users is not kept: the next job copies again.
//
// Directories of an earlier process are removed when a task tracker starts.
package sidedirs

import (
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/quernmr/quern/tasktracker/core"
)

// Source is what jobs share copies of.
type Source struct {
	Holder string // the owner of the jobs, with the account of the worker
	URL    string // of the archive or directory
}

// Store has the directories in use. Any goroutine may use it. Its zero value is empty.
type Store struct {
	mu      sync.Mutex
	last    int
	current map[Source]*place
	used    map[string][]*place // by staging directory of the submission
}

// maxAge is how long a directory gets new users.
const maxAge = 24 * time.Hour

type place struct {
	source Source
	disk   string
	dir    string
	since  time.Time
	users  int // submissions
}

// Use returns the directory of a source for a submission, until Release. It is on one of the disks that work; without
// any it is "".
func (s *Store) Use(staging string, source Source, disks []string, now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.current[source]
	if p == nil || !slices.Contains(disks, p.disk) || now.Sub(p.since) >= maxAge {
		if len(disks) == 0 {
			return ""
		}
		p = s.add(source, disks)
		p.since = now
	}
	if !slices.Contains(s.used[staging], p) {
		if s.used == nil {
			s.used = make(map[string][]*place)
		}
		s.used[staging] = append(s.used[staging], p)
		p.users++
	}
	return p.dir
}

func (s *Store) add(source Source, disks []string) *place {
	s.last++
	disk := disks[s.last%len(disks)]
	p := &place{source: source, disk: disk, dir: filepath.Join(disk, core.SharedDir, strconv.Itoa(s.last))}
	if s.current == nil {
		s.current = make(map[Source]*place)
	}
	s.current[source] = p
	return p
}

// Release ends the use by a submission. Its workers have exited. Release returns the directories to remove.
func (s *Store) Release(staging string) (unused []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.used[staging] {
		if p.users--; p.users > 0 {
			continue
		}
		if s.current[p.source] == p {
			delete(s.current, p.source)
		}
		unused = append(unused, p.dir)
	}
	delete(s.used, staging)
	return unused
}
