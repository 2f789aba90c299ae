package core

import (
	"fmt"
	"strings"

	"github.com/quernmr/quern/wire"
)

// splitsWritten: the setup attempt has made the output's parents and the splits file.
type splitsWritten struct {
	Job  int    `msgpack:"j"`
	Maps int    `msgpack:"m"`
	Hash uint64 `msgpack:"h"`
}

func (*splitsWritten) number() byte  { return 6 }
func (x *splitsWritten) key() string { return fmt.Sprintf("splits-written %d", x.Job) }
func (x *splitsWritten) fits(f *Facts) bool {
	j := f.jobs[x.Job]
	return j != nil && x.Maps >= 0 && x.Maps <= wire.MaxTasks && f.state(j) == wire.Preparing
}
func (x *splitsWritten) apply(f *Facts, _ uint64) {
	j := f.jobs[x.Job]
	j.maps, j.splitsHash = x.Maps, x.Hash
}

// digestsKnown: reduces commit what they make of map outputs with these digests, and of
// no others. Another such fact fits only while no reduce can have used the old ones.
type digestsKnown struct {
	Job  int    `msgpack:"j"`
	Hash uint64 `msgpack:"h"`
}

func (*digestsKnown) number() byte  { return 7 }
func (x *digestsKnown) key() string { return fmt.Sprintf("digests-known %d %x", x.Job, x.Hash) }
func (x *digestsKnown) fits(f *Facts) bool {
	j := f.jobs[x.Job]
	return j.running() && !j.used() && (!j.digests || j.digestsHash != x.Hash)
}
func (x *digestsKnown) apply(f *Facts, _ uint64) {
	j := f.jobs[x.Job]
	j.digests, j.digestsHash = true, x.Hash
}

// used says whether a task's output is committed or may be by now.
func (j *jobFacts) used() bool { return j.done.Len() > 0 || len(j.grants) > 0 }

// granted lets one attempt of a task commit. No other may until it is revoked.
type granted struct {
	Job     int `msgpack:"j"`
	Task    int `msgpack:"t"`
	Attempt int `msgpack:"a"`
}

func (*granted) number() byte { return 8 }
func (x *granted) key() string {
	return fmt.Sprintf("granted %d/%d/%d", x.Job, x.Task, x.Attempt)
}
func (x *granted) fits(f *Facts) bool {
	j := f.jobs[x.Job]
	if !j.running() || x.Task < 0 || x.Task >= j.commits() || j.done.Has(x.Task) {
		return false
	}
	_, taken := j.grants[x.Task]
	return !taken && (j.reduces == 0 || j.digests)
}
func (x *granted) apply(f *Facts, _ uint64) {
	j := f.jobs[x.Job]
	if j.grants == nil {
		j.grants = make(map[int]int)
	}
	j.grants[x.Task] = x.Attempt
}

// holds says whether the attempt has the grant of the task.
func (j *jobFacts) holds(task, attempt int) bool {
	a, ok := j.grants[task]
	return ok && a == attempt
}

// revoked takes a grant back after a fence has seen that it was not used.
type revoked struct {
	Job     int `msgpack:"j"`
	Task    int `msgpack:"t"`
	Attempt int `msgpack:"a"`
}

func (*revoked) number() byte { return 9 }
func (x *revoked) key() string {
	return fmt.Sprintf("revoked %d/%d/%d", x.Job, x.Task, x.Attempt)
}
func (x *revoked) fits(f *Facts) bool {
	j := f.jobs[x.Job]
	return j.running() && j.holds(x.Task, x.Attempt)
}
func (x *revoked) apply(f *Facts, _ uint64) { delete(f.jobs[x.Job].grants, x.Task) }

// committed: the attempt with the grant has moved its output to the task's place.
type committed struct {
	Job     int `msgpack:"j"`
	Task    int `msgpack:"t"`
	Attempt int `msgpack:"a"`
}

func (*committed) number() byte { return 10 }
func (x *committed) key() string {
	return fmt.Sprintf("committed %d/%d/%d", x.Job, x.Task, x.Attempt)
}
func (x *committed) fits(f *Facts) bool {
	j := f.jobs[x.Job]
	return j.running() && j.holds(x.Task, x.Attempt)
}
func (x *committed) apply(f *Facts, _ uint64) {
	j := f.jobs[x.Job]
	delete(j.grants, x.Task)
	j.done.Add(x.Task)
}

// stopped: the job will fail or be killed, and with it its flow. A kill is refused
// once the job's outputs move into place; a commit that cannot be finished may
// still fail it.
type stopped struct {
	Job     int        `msgpack:"j"`
	Outcome wire.State `msgpack:"o"` // Failed or Killed
	Reason  string     `msgpack:"r"`
	With    int        `msgpack:"w,omitempty"` // the job of its flow that has taken this one with it
}

func (*stopped) number() byte  { return 11 }
func (x *stopped) key() string { return fmt.Sprintf("stopped %d %s", x.Job, x.Outcome) }
func (x *stopped) fits(f *Facts) bool {
	j := f.jobs[x.Job]
	if j == nil || j.end != nil || j.stop != nil {
		return false
	}
	return x.Outcome == wire.Failed || x.Outcome == wire.Killed && !j.committing
}
func (x *stopped) apply(f *Facts, _ uint64) {
	j := f.jobs[x.Job]
	j.stop = x
	for other := range f.flow(j.sub) {
		if other.end == nil && other.stop == nil && !other.committing {
			other.stop = x.takes(f, other)
		}
	}
}

// maxCause bounds what a job is told of why another one of its flow was stopped, in bytes.
const maxCause = 1000

// takes is the stop of another job of the flow.
func (x *stopped) takes(f *Facts, other *jobFacts) *stopped {
	cause, _, _ := strings.Cut(x.Reason, "\n")
	if x.Outcome == wire.Killed { // failures say whose they are
		cause = fmt.Sprintf("%v (%s) was killed: %s", f.id(x.Job), f.jobs[x.Job].name, cause)
	}
	return &stopped{
		Job: other.n, Outcome: x.Outcome, With: x.Job,
		Reason: fmt.Sprintf("%v (%s) %v with its flow: %s", f.id(other.n), other.name, x.Outcome, wire.Bounded(cause, maxCause)),
	}
}

// committing: all tasks are committed and the job's outputs move into place.
type committing struct {
	Job int `msgpack:"j"`
}

func (*committing) number() byte  { return 12 }
func (x *committing) key() string { return fmt.Sprintf("committing %d", x.Job) }
func (x *committing) fits(f *Facts) bool {
	j := f.jobs[x.Job]
	return j.running() && j.done.Len() == j.commits()
}
func (x *committing) apply(f *Facts, _ uint64) { f.jobs[x.Job].committing = true }

// ended closes a job's life.
type ended struct {
	Job      int        `msgpack:"j"`
	Outcome  wire.State `msgpack:"o"` // Succeeded, Failed or Killed
	Error    string     `msgpack:"e"`
	Elapsed  int64      `msgpack:"t"`           // milliseconds since submission
	Troubles []string   `msgpack:"x"`           // as in wire.JobStatus
	Counters []counter  `msgpack:"c"`           // sorted, so that equal facts are equal bytes
	Read     int64      `msgpack:"r"`           // bytes of input
	Shuffled int64      `msgpack:"s"`           // bytes of map output
	Maps     int        `msgpack:"m"`           // done
	With     int        `msgpack:"w,omitempty"` // as in stopped
}

// counter is one counter of a job's total.
type counter struct {
	Group string `msgpack:"g"`
	Name  string `msgpack:"n"`
	Value int64  `msgpack:"v"`
}

func (*ended) number() byte  { return 13 }
func (x *ended) key() string { return fmt.Sprintf("ended %d %s", x.Job, x.Outcome) }
func (x *ended) fits(f *Facts) bool {
	j := f.jobs[x.Job]
	if j == nil || j.end != nil {
		return false
	}
	if x.Outcome == wire.Succeeded {
		return j.committing && j.stop == nil
	}
	return j.stop != nil && j.stop.Outcome == x.Outcome
}
func (x *ended) apply(f *Facts, _ uint64) {
	j := f.jobs[x.Job]
	j.end, j.grants, j.stop = x, nil, nil
	f.ended = append(f.ended, x.Job)
	for i := range j.sub.jobs {
		if f.jobs[j.sub.first+i].end == nil {
			return
		}
	}
	j.sub.body = nil
	f.forget()
}
