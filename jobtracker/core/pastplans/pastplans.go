// Package pastplans keeps, for the last minutes, how many slots plans had for each job, and how many the job had
// then. So users see whether the cluster follows its plans.
//
// A [Log] has samples: the caller adds one when a new plan comes into force, but at most one per [Every] and phase.
// It keeps the samples of the last [Span], and at most MaxEntries entries in all: those of a phase's
// samples that are dropped earlier are missing, see [View.Since].
//
// A Log is not safe for concurrent use. Any goroutine may read a View.
package pastplans

import (
	"slices"
	"time"

	"github.com/quernmr/quern/wire"
)

// Every is the least time between two samples of a phase, and Span how long they are kept.
const (
	Every = 3 * time.Second
	Span  = 10 * time.Minute
)

// MaxEntries limits the entries of all samples of a phase.
const MaxEntries = 50_000

// Job is a job in samples, and who may see it. It never changes.
type Job struct {
	ID     wire.JobID
	Owner  string
	Access wire.Access
}

// Entry is a job in a sample.
type Entry struct {
	*Job
	Planned int32 // slots
	Used    int32 // slots
}

// Sample has the jobs with slots, or with slots in the plan, at a time. It never changes.
type Sample struct {
	At      int64 // Unix milliseconds
	Slots   int   // of the cluster
	Entries []Entry
}

// Log has the samples of a phase. Its zero value is empty.
type Log struct {
	samples []*Sample
	entries int
	dropped int64 // time of the last sample that was dropped for MaxEntries
	most    int   // MaxEntries, except in tests
}

// Due reports whether a sample may be added at a time, in Unix milliseconds.
func (l *Log) Due(at int64) bool {
	return len(l.samples) == 0 || at >= l.samples[len(l.samples)-1].At+Every.Milliseconds()
}

// Add adds a sample, and drops old ones. Samples without entries follow each other only once.
func (l *Log) Add(s *Sample) {
	if last := len(l.samples) - 1; len(s.Entries) == 0 && (last < 0 || len(l.samples[last].Entries) == 0) {
		return
	}
	l.samples = append(l.samples, s)
	l.entries += len(s.Entries)
	most := l.most
	if most == 0 {
		most = MaxEntries
	}
	old := 0
	for ; old < len(l.samples)-1; old++ {
		x := l.samples[old]
		tooOld := l.samples[old+1].At <= s.At-Span.Milliseconds() // the next one says what holds from then on
		if !tooOld && l.entries <= most {
			break
		}
		if !tooOld {
			l.dropped = l.samples[old+1].At
		}
		l.entries -= len(x.Entries)
	}
	l.samples = slices.Delete(l.samples, 0, old)
}

// View is a Log at one moment.
type View struct {
	Samples []*Sample // oldest first; each holds until the next one
	Since   int64     // Unix milliseconds; earlier samples are missing; 0: none is
}

// View returns the samples.
func (l *Log) View() View { return View{slices.Clone(l.samples), l.dropped} }
