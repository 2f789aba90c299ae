package facts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quernmr/quern/wire"
)

// SplitsWritten says that the setup attempt has made the output's parents and the splits file.
type SplitsWritten struct {
	Job  int    `msgpack:"j"`
	Maps int    `msgpack:"m"`
	Hash uint64 `msgpack:"h"`
}

func (*SplitsWritten) number() byte   { return 6 }
func (x *SplitsWritten) Name() string { return fmt.Sprintf("splits-written %d", x.Job) }
func (x *SplitsWritten) Fits(f *Facts) bool {
	j := f.jobs[x.Job]
	return j != nil && x.Maps >= 0 && x.Maps <= wire.MaxTasks && f.State(j) == wire.Preparing
}
func (x *SplitsWritten) apply(f *Facts, _ uint64) {
	j := f.change(x.Job)
	j.maps, j.splitsHash = x.Maps, x.Hash
}

// DigestsKnown restricts reduces to map outputs with these digests. Another such fact fits only
// while no reduce can have committed output made from the old ones.
type DigestsKnown struct {
	Job  int    `msgpack:"j"`
	Hash uint64 `msgpack:"h"`
}

func (*DigestsKnown) number() byte   { return 7 }
func (x *DigestsKnown) Name() string { return fmt.Sprintf("digests-known %d %x", x.Job, x.Hash) }
func (x *DigestsKnown) Fits(f *Facts) bool {
	j := f.jobs[x.Job]
	return j.Running() && !j.MayHaveOutput() && (!j.digests || j.digestsHash != x.Hash)
}
func (x *DigestsKnown) apply(f *Facts, _ uint64) {
	j := f.change(x.Job)
	j.digests, j.digestsHash = true, x.Hash
}

// MayHaveOutput reports whether a task's output is committed or may be by now.
func (j *Job) MayHaveOutput() bool { return j.done.Len() > 0 || len(j.grants) > 0 }

// Granted lets one attempt of a task commit. No other attempt may until Revoked.
type Granted struct {
	Job     int `msgpack:"j"`
	Task    int `msgpack:"t"`
	Attempt int `msgpack:"a"`
}

func (*Granted) number() byte { return 8 }
func (x *Granted) Name() string {
	return fmt.Sprintf("granted %d/%d/%d", x.Job, x.Task, x.Attempt)
}
func (x *Granted) Fits(f *Facts) bool {
	j := f.jobs[x.Job]
	if !j.Running() || x.Task < 0 || x.Task >= j.Commits() || j.Settled(x.Task) {
		return false
	}
	_, taken := j.grants[x.Task]
	return !taken && (j.reduces == 0 || j.digests)
}
func (x *Granted) apply(f *Facts, _ uint64) {
	j := f.change(x.Job)
	if j.grants == nil {
		j.grants = make(map[int]int)
	}
	j.grants[x.Task] = x.Attempt
}

// HasGrant reports whether the attempt has the grant of the task.
func (j *Job) HasGrant(task, attempt int) bool {
	a, ok := j.grants[task]
	return ok && a == attempt
}

// Revoked takes a grant back after a fence has found that it was not used.
type Revoked struct {
	Job     int `msgpack:"j"`
	Task    int `msgpack:"t"`
	Attempt int `msgpack:"a"`
}

func (*Revoked) number() byte { return 9 }
func (x *Revoked) Name() string {
	return fmt.Sprintf("revoked %d/%d/%d", x.Job, x.Task, x.Attempt)
}
func (x *Revoked) Fits(f *Facts) bool {
	j := f.jobs[x.Job]
	return j.Running() && j.HasGrant(x.Task, x.Attempt)
}
func (x *Revoked) apply(f *Facts, _ uint64) { delete(f.change(x.Job).grants, x.Task) }

// Committed says that the attempt with the grant has moved its output into place.
type Committed struct {
	Job     int `msgpack:"j"`
	Task    int `msgpack:"t"`
	Attempt int `msgpack:"a"`
}

func (*Committed) number() byte { return 10 }
func (x *Committed) Name() string {
	return fmt.Sprintf("committed %d/%d/%d", x.Job, x.Task, x.Attempt)
}
func (x *Committed) Fits(f *Facts) bool {
	j := f.jobs[x.Job]
	return j.Running() && j.HasGrant(x.Task, x.Attempt)
}
func (x *Committed) apply(f *Facts, _ uint64) {
	j := f.change(x.Job)
	delete(j.grants, x.Task)
	j.done.Add(x.Task)
}

// Stopped makes a job fail or be killed, and its flow with it. A kill does not fit once the
// job's outputs move into place; a failure still does, if the commit cannot be finished.
type Stopped struct {
	Job     int        `msgpack:"j"`
	Outcome wire.State `msgpack:"o"` // Failed or Killed
	Reason  string     `msgpack:"r"`
	With    int        `msgpack:"w,omitempty"` // the job of its flow that failed or was killed; 0: this one
}

func (*Stopped) number() byte   { return 11 }
func (x *Stopped) Name() string { return fmt.Sprintf("stopped %d %s", x.Job, x.Outcome) }
func (x *Stopped) Fits(f *Facts) bool {
	j := f.jobs[x.Job]
	if j == nil || j.end != nil || j.stop != nil {
		return false
	}
	return x.Outcome == wire.Failed || x.Outcome == wire.Killed && !j.committing
}
func (x *Stopped) apply(f *Facts, _ uint64) {
	j, stop := f.change(x.Job), *x
	j.stop = &stop
	for other := range f.Flow(j.sub) {
		if other.end == nil && other.stop == nil && !other.committing {
			f.change(other.n).stop = x.stopOther(f, other)
		}
	}
}

// maxCause bounds the cause that other jobs of a stopped flow record, in bytes.
const maxCause = 1000

// stopOther returns the stop of another job of the flow.
func (x *Stopped) stopOther(f *Facts, other *Job) *Stopped {
	cause, _, _ := strings.Cut(x.Reason, "\n")
	if x.Outcome == wire.Killed { // the reason of a failure names its job
		cause = fmt.Sprintf("%v (%s) was killed: %s", f.ID(x.Job), f.jobs[x.Job].name, cause)
	}
	return &Stopped{
		Job: other.n, Outcome: x.Outcome, With: x.Job,
		Reason: fmt.Sprintf("%v (%s) %v with its flow: %s", f.ID(other.n), other.name, x.Outcome, wire.Truncate(cause, maxCause)),
	}
}

// Committing says that all tasks are committed or given up, and the job's outputs move into place.
type Committing struct {
	Job int `msgpack:"j"`
}

func (*Committing) number() byte   { return 12 }
func (x *Committing) Name() string { return fmt.Sprintf("committing %d", x.Job) }
func (x *Committing) Fits(f *Facts) bool {
	j := f.jobs[x.Job]
	return j.Running() && j.SettledTasks() == j.Commits()
}
func (x *Committing) apply(f *Facts, _ uint64) { f.change(x.Job).committing = true }

// Ended says that a job has ended.
type Ended struct {
	Job      int        `msgpack:"j"`
	Outcome  wire.State `msgpack:"o"` // Succeeded, Failed or Killed
	Error    string     `msgpack:"e"`
	Elapsed  int64      `msgpack:"t"`           // milliseconds since submission
	Troubles []string   `msgpack:"x"`           // as in wire.JobStatus
	Counters []Counter  `msgpack:"c"`           // sorted, so that equal facts are equal bytes
	Read     int64      `msgpack:"r"`           // bytes of input
	Shuffled int64      `msgpack:"s"`           // bytes of map output
	Maps     int        `msgpack:"m"`           // number of maps that were done
	With     int        `msgpack:"w,omitempty"` // as in Stopped
}

// Counter is one counter of a job's total.
type Counter struct {
	Group string `msgpack:"g"`
	Name  string `msgpack:"n"`
	Value int64  `msgpack:"v"`
}

func (*Ended) number() byte   { return 13 }
func (x *Ended) Name() string { return fmt.Sprintf("ended %d %s", x.Job, x.Outcome) }
func (x *Ended) Fits(f *Facts) bool {
	j := f.jobs[x.Job]
	if j == nil || j.end != nil {
		return false
	}
	if x.Outcome == wire.Succeeded {
		return j.committing && j.stop == nil
	}
	return j.stop != nil && j.stop.Outcome == x.Outcome
}

// copied returns a copy that shares no memory with x.
func (x *Ended) copied() *Ended {
	end := *x
	end.Troubles, end.Counters = slices.Clone(x.Troubles), slices.Clone(x.Counters)
	return &end
}

func (x *Ended) apply(f *Facts, _ uint64) {
	j := f.change(x.Job)
	j.end, j.grants, j.stop, j.skips = x.copied(), nil, nil, nil
	f.ended = append(f.ended, x.Job)
	for i := range j.sub.jobs {
		if f.jobs[j.sub.first+i].end == nil {
			return
		}
	}
	f.changeSubmission(j.sub.key).body = nil
	f.dropEndedJobs()
}
