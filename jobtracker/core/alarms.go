package core

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// alarm is a time at which to touch a job.
type alarm struct {
	at  time.Duration
	job int
}

func (x alarm) compare(y alarm) int {
	return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.job, y.job))
}

// alarms has the alarms of all jobs. It is also the work of touching jobs when their alarms are due. Many may be due
// at once: looks at slow tasks and homes are at the same times for all jobs.
type alarms struct {
	l      *leader
	chunks [][]alarm // sorted, none empty
}

// alarmChunk is the usual length of a chunk: adding an alarm moves at most twice as many.
const alarmChunk = 256

// newAlarmChunk returns a chunk with room for all that it may get.
func newAlarmChunk(list ...alarm) []alarm { return append(make([]alarm, 0, 2*alarmChunk), list...) }

// alarm sets a time at which the job is touched.
func (l *leader) alarm(j *job, at time.Duration) { l.timers.alarms.add(alarm{at, j.facts.N()}) }

func (x *alarms) add(a alarm) {
	if len(x.chunks) == 0 {
		x.chunks = append(x.chunks, newAlarmChunk(a))
		return
	}
	c := max(0, sort.Search(len(x.chunks), func(i int) bool { return x.chunks[i][0].compare(a) > 0 })-1)
	chunk := &x.chunks[c]
	i, found := slices.BinarySearchFunc(*chunk, a, alarm.compare)
	if found {
		return
	}
	*chunk = slices.Insert(*chunk, i, a)
	if n := len(*chunk); n >= 2*alarmChunk {
		rest := newAlarmChunk((*chunk)[n/2:]...)
		*chunk = (*chunk)[:n/2]
		x.chunks = slices.Insert(x.chunks, c+1, rest)
	}
}

// next returns the time of the next alarm, or never.
func (x *alarms) next() time.Duration {
	if len(x.chunks) == 0 {
		return never
	}
	return x.chunks[0][0].at
}

// pop removes the next alarm.
func (x *alarms) pop() {
	if x.chunks[0] = x.chunks[0][1:]; len(x.chunks[0]) == 0 {
		x.chunks = slices.Delete(x.chunks, 0, 1)
	}
}

// len counts the alarms.
func (x *alarms) len() (n int) {
	for _, chunk := range x.chunks {
		n += len(chunk)
	}
	return n
}

// Advance implements pieces.Work.
func (x *alarms) Advance(budget int) (spent int, done bool) {
	for ; spent < budget && x.next() <= x.l.now; x.pop() {
		spent++
		if j := x.l.jobs[x.chunks[0][0].job]; j != nil {
			spent += x.l.advanceCost(j)
			x.l.touch(j)
		}
	}
	return spent, x.next() > x.l.now
}
