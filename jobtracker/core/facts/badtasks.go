package facts

import (
	"fmt"

	"github.com/quernmr/quern/jobtracker/core/taskset"
	"github.com/quernmr/quern/wire"
)

// GivenUp says that a map or reduce has failed for good, and that its job goes on without it. No
// attempt of it gets a grant afterwards.
type GivenUp struct {
	Job   int       `msgpack:"j"`
	Kind  wire.Kind `msgpack:"k"` // Map or Reduce
	Task  int       `msgpack:"t"`
	Cause string    `msgpack:"c"` // may be empty if the job has wire.MaxTroubles causes
}

// GivenUpCause is why a task was given up.
type GivenUpCause struct {
	Kind  wire.Kind `msgpack:"Kind"`
	Task  int       `msgpack:"Task"`
	Cause string    `msgpack:"Cause"`
}

func (*GivenUp) number() byte { return 24 }
func (x *GivenUp) Name() string {
	return fmt.Sprintf("given-up %d/%v/%d", x.Job, x.Kind, x.Task)
}
func (x *GivenUp) Fits(f *Facts) bool {
	j := f.jobs[x.Job]
	if !j.Running() || !j.hasTask(x.Kind, x.Task) || j.GivenUp(x.Kind, x.Task) {
		return false
	}
	if x.Kind != j.Kind() {
		return !j.MayHaveOutput() // reduces that have committed have read output of all maps
	}
	_, granted := j.grants[x.Task]
	return !granted && !j.done.Has(x.Task)
}
func (x *GivenUp) apply(f *Facts, _ uint64) {
	j := f.change(x.Job)
	j.givenUp[kindIndex(x.Kind)].Add(x.Task)
	if len(j.causes) < wire.MaxTroubles && x.Cause != "" {
		j.causes = append(j.causes, GivenUpCause{x.Kind, x.Task, wire.Truncate(x.Cause, wire.MaxTrouble)})
	}
}

// kindIndex returns the index of Map or Reduce in arrays.
func kindIndex(k wire.Kind) int {
	if k == wire.Reduce {
		return 1
	}
	return 0
}

// hasTask reports whether the job has a map or reduce with this number.
func (j *Job) hasTask(k wire.Kind, n int) bool {
	switch k {
	case wire.Map:
		return n >= 0 && n < j.maps
	case wire.Reduce:
		return n >= 0 && n < j.reduces
	}
	return false
}

// GivenUp reports whether a map or reduce was given up.
func (j *Job) GivenUp(k wire.Kind, n int) bool { return j.givenUp[kindIndex(k)].Has(n) }

// GivenUpTasks returns the maps or the reduces that were given up. The set must not be changed.
func (j *Job) GivenUpTasks(k wire.Kind) *taskset.Set { return &j.givenUp[kindIndex(k)] }

// GivenUpCauses returns the first causes, at most wire.MaxTroubles. They must not be changed.
func (j *Job) GivenUpCauses() []GivenUpCause { return j.causes }

// Settled reports whether a task of the kind that commits output has committed or was given up.
func (j *Job) Settled(task int) bool { return j.done.Has(task) || j.GivenUp(j.Kind(), task) }

// SettledTasks counts these tasks.
func (j *Job) SettledTasks() int { return j.done.Len() + j.GivenUpTasks(j.Kind()).Len() }
