package wire

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Kind is a task's kind. Only map and reduce tasks occupy slots. The other kinds exist so that user
// code and file system calls run outside the job tracker.
type Kind uint8

const (
	Setup   Kind = iota + 1 // computes the splits, makes parent directories of the output
	Map                     // reads one split
	Reduce                  // reads one partition
	Commit                  // moves the committed task outputs into place
	Cleanup                 // removes the files of a failed or killed job
	Fence                   // settles whether a lost attempt has committed
)

const kindLetters = "?smrcxf"

func (k Kind) String() string {
	switch k {
	case Setup:
		return "setup"
	case Map:
		return "map"
	case Reduce:
		return "reduce"
	case Commit:
		return "commit"
	case Cleanup:
		return "cleanup"
	case Fence:
		return "fence"
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Slotted reports whether tasks of this kind occupy a slot.
func (k Kind) Slotted() bool { return k == Map || k == Reduce }

// JobID is the unique, permanent id of a job: job_<start>_0001.
type JobID struct {
	Start int64 `msgpack:"Start"` // the cluster's bootstrap time, Unix milliseconds
	N     int   `msgpack:"N"`     // 1 for the cluster's first job
}

// IsZero reports whether id names no job.
func (id JobID) IsZero() bool { return id == JobID{} }

func (id JobID) String() string { return fmt.Sprintf("job_%d_%04d", id.Start, id.N) }

// Compare orders jobs by submission.
func (id JobID) Compare(other JobID) int {
	return cmp.Or(cmp.Compare(id.Start, other.Start), cmp.Compare(id.N, other.N))
}

// FlowID is the id of a flow. It has the numbers of the flow's first job: flow_<start>_0001.
type FlowID JobID

// IsZero reports whether id names no flow.
func (id FlowID) IsZero() bool { return id == FlowID{} }

func (id FlowID) String() string { return fmt.Sprintf("flow_%d_%04d", id.Start, id.N) }

// TaskID is the id of a task of a job: task_<start>_0001_m_000003.
type TaskID struct {
	Job  JobID `msgpack:"Job"`
	Kind Kind  `msgpack:"Kind"`
	N    int   `msgpack:"N"` // of a map: its split; of a reduce: its partition; else a sequence number from 0
}

func (id TaskID) String() string { return "task_" + id.suffix() }

func (id TaskID) suffix() string {
	letter := kindLetters[0]
	if int(id.Kind) < len(kindLetters) {
		letter = kindLetters[id.Kind]
	}
	return fmt.Sprintf("%d_%04d_%c_%06d", id.Job.Start, id.Job.N, letter, id.N)
}

// Compare orders tasks by job, then kind, then number.
func (id TaskID) Compare(other TaskID) int {
	return cmp.Or(id.Job.Compare(other.Job), cmp.Compare(id.Kind, other.Kind), cmp.Compare(id.N, other.N))
}

// EpochAttempts is the maximum number of attempts of one task that one epoch can launch.
const EpochAttempts = 1000

// AttemptID is the id of an attempt of a task: attempt_<start>_0001_m_000003_1000. N is
// epoch·[EpochAttempts]+n, so that leaders of different epochs never use the same id.
type AttemptID struct {
	Task TaskID `msgpack:"Task"`
	N    int    `msgpack:"N"`
}

// IsZero reports whether id names no attempt.
func (id AttemptID) IsZero() bool { return id == AttemptID{} }

func (id AttemptID) String() string {
	return "attempt_" + id.Task.suffix() + "_" + strconv.Itoa(id.N)
}

// Compare orders attempts by task, then number.
func (id AttemptID) Compare(other AttemptID) int {
	return cmp.Or(id.Task.Compare(other.Task), cmp.Compare(id.N, other.N))
}

// ErrBadID reports a text that is not an id. Each id has only one text, that of its String method:
// other forms of its numbers are refused.
var ErrBadID = errors.New("not an id")

// ParseJobID parses the text of [JobID.String].
func ParseJobID(s string) (JobID, error) {
	rest, ok := strings.CutPrefix(s, "job_")
	if !ok {
		return JobID{}, fmt.Errorf("%w of a job: %q", ErrBadID, s)
	}
	start, n, ok := strings.Cut(rest, "_")
	job, err := parseJob(start, n)
	if !ok || err != nil || job.String() != s {
		return JobID{}, fmt.Errorf("%w of a job: %q", ErrBadID, s)
	}
	return job, nil
}

// ParseFlowID parses the text of [FlowID.String].
func ParseFlowID(s string) (FlowID, error) {
	if rest, ok := strings.CutPrefix(s, "flow_"); ok {
		if first, err := ParseJobID("job_" + rest); err == nil {
			return FlowID(first), nil
		}
	}
	return FlowID{}, fmt.Errorf("%w of a flow: %q", ErrBadID, s)
}

// ParseTaskID parses the text of [TaskID.String].
func ParseTaskID(s string) (TaskID, error) {
	id, err := parseTask(strings.Split(s, "_"), "task")
	if err != nil || id.String() != s {
		return TaskID{}, fmt.Errorf("%w of a task: %q", ErrBadID, s)
	}
	return id, nil
}

// ParseAttemptID parses the text of [AttemptID.String].
func ParseAttemptID(s string) (AttemptID, error) {
	last := strings.LastIndexByte(s, '_')
	if last < 0 {
		return AttemptID{}, fmt.Errorf("%w of an attempt: %q", ErrBadID, s)
	}
	task, err := parseTask(strings.Split(s[:last], "_"), "attempt")
	n, errN := strconv.Atoi(s[last+1:])
	id := AttemptID{Task: task, N: n}
	if err != nil || errN != nil || n < 0 || id.String() != s {
		return AttemptID{}, fmt.Errorf("%w of an attempt: %q", ErrBadID, s)
	}
	return id, nil
}

func parseTask(parts []string, prefix string) (TaskID, error) {
	if len(parts) != 5 || parts[0] != prefix || len(parts[3]) != 1 {
		return TaskID{}, ErrBadID
	}
	job, err := parseJob(parts[1], parts[2])
	if err != nil {
		return TaskID{}, err
	}
	kind := strings.Index(kindLetters, parts[3])
	n, err := strconv.Atoi(parts[4])
	if err != nil || kind < 1 || n < 0 {
		return TaskID{}, ErrBadID
	}
	return TaskID{Job: job, Kind: Kind(kind), N: n}, nil
}

func parseJob(start, n string) (JobID, error) {
	s, err := strconv.ParseInt(start, 10, 64)
	if err != nil {
		return JobID{}, err
	}
	i, err := strconv.Atoi(n)
	if err != nil || i < 1 || s < 0 {
		return JobID{}, ErrBadID
	}
	return JobID{Start: s, N: i}, nil
}
