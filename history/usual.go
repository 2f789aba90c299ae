package history

import "math"

// Usual says how long the tasks of a phase take in the runs of one name. The last run counts most.
type Usual struct {
	Seconds float64 `msgpack:"Seconds"` // mean of a task; 0: not known
	Bytes   float64 `msgpack:"Bytes"`   // mean of what such a task reads; 0: not known
	Within  float64 `msgpack:"Within"`  // standard deviation of the tasks of a run, as a fraction of their mean
	Between float64 `msgpack:"Between"` // standard deviation of the means of runs, as a fraction of Seconds
	Runs    float64 `msgpack:"Runs"`    // the weights of the runs in Seconds are as of so many equal ones
	Tasks   float64 `msgpack:"Tasks"`   // and those of tasks
}

const (
	maxRuns     = 4    // the last run has at least a quarter of the weight
	maxTasks    = 1000 // as for runs
	usualRuns   = 0.15 // Between before there are several runs,
	usualWeight = 3    // which counts as so many
	withSize    = 0.9  // the part of a task's time that is proportional to its bytes
	maxScale    = 20   // of bytes: beyond, the time is not extrapolated
)

// Known reports whether there was a run.
func (u *Usual) Known() bool { return u.Seconds > 0 }

// At returns what is usual for tasks that read so many bytes; 0: it is not known.
func (u Usual) At(bytes float64) Usual {
	if u.Bytes > 0 && bytes > 0 {
		scale := min(max(bytes/u.Bytes, 1/float64(maxScale)), maxScale)
		u.Seconds *= 1 - withSize + withSize*scale
		u.Bytes = bytes
	}
	return u
}

// Error is the standard error of Seconds for the next run, as a fraction.
func (u *Usual) Error() float64 {
	return math.Sqrt(u.Between*u.Between*(1+1/u.Runs) + u.Within*u.Within/u.Tasks)
}

// After returns what is usual after another run, with tasks that read so many bytes; 0: it is not known.
func (u Usual) After(run *Sum, bytes float64) Usual {
	mean, tasks := run.Mean().Seconds(), float64(run.Tasks)
	if run.Tasks == 0 || mean <= 0 {
		return u
	}
	within := run.Deviation()
	if !u.Known() {
		return Usual{Seconds: mean, Bytes: bytes, Within: within, Between: usualRuns, Runs: 1, Tasks: tasks}
	}
	u = u.At(bytes)
	differ := math.Log(mean / u.Seconds)
	between := max(0, differ*differ-u.Within*u.Within*(1/tasks+1/u.Tasks)) / (1 + 1/u.Runs)
	u.Between = math.Sqrt(u.Between*u.Between + (between-u.Between*u.Between)/(usualWeight+u.Runs))
	u.Within = math.Sqrt((u.Tasks*u.Within*u.Within + tasks*within*within) / (u.Tasks + tasks))
	u.Runs, u.Tasks = min(u.Runs+1, maxRuns), min(u.Tasks+tasks, maxTasks)
	u.Seconds *= math.Exp(differ / u.Runs)
	u.Bytes = max(bytes, u.Bytes)
	return u
}

// BytesEach returns how many bytes a task of each phase reads on average; 0: it has no tasks.
func BytesEach(read int64, maps int, shuffled int64, reduces int) [2]float64 {
	return [2]float64{float64(read) / float64(max(1, maps)), float64(shuffled) / float64(max(1, reduces))}
}
