package wire

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// Plan describes the jobs of a program, without the code. The client stages it, the job tracker
// schedules the jobs, and the plan that every worker makes must equal it. For a single job, the
// Plan has one job and an empty Flow.
type Plan struct {
	Flow string    `msgpack:"Flow"` // the flow's name
	Jobs []JobPlan `msgpack:"Jobs"`
}

// JobPlan describes one job.
type JobPlan struct {
	Name       string      `msgpack:"Name"`
	Inputs     []InputPlan `msgpack:"Inputs"`
	Reduces    int         `msgpack:"Reduces"`    // 0: map-only
	Combine    bool        `msgpack:"Combine"`    // maps run a combiner
	TotalOrder bool        `msgpack:"TotalOrder"` // partitions are key ranges, sampled by the setup attempt

	// Names of Go types as in the program's source: to compare plans, and for messages.
	Key      string `msgpack:"Key"`      // of map output
	Value    string `msgpack:"Value"`    // of map output
	OutKey   string `msgpack:"OutKey"`   // of the job's output
	OutValue string `msgpack:"OutValue"` // of the job's output

	// Types describes the encodings of binary output, key and value with a tab between. It is written
	// beside the output, so that other programs can check that they read the same types.
	Types string `msgpack:"Types,omitempty"`

	Format  string   `msgpack:"Format"`  // of the output: "text", "raw", "binary" or a name from the program
	Output  string   `msgpack:"Output"`  // URL of the output directory; empty: temporary output for a later job of the flow
	Outputs []string `msgpack:"Outputs"` // named outputs beside the main one

	Properties map[string]string `msgpack:"Properties"` // effective values: from -D, else Job.Properties, else the default
	Files      map[string]string `msgpack:"Files"`      // side files: name to URL; a name that ends with / is a directory, see runtime.IsDirectory

	Results []SideResult `msgpack:"Results,omitempty"` // side files that earlier jobs of the flow write
}

// SideResult is the main output of an earlier job of the flow, as a side file.
type SideResult struct {
	Name string `msgpack:"Name"` // of the side file; none in JobPlan.Files
	From int    `msgpack:"From"` // 1 + index in Plan.Jobs, as in InputPlan
}

// SideResult returns the From of a side file that is the result of a job; 0: there is none.
func (j *JobPlan) SideResult(name string) (from int) {
	for _, r := range j.Results {
		if r.Name == name {
			return r.From
		}
	}
	return 0
}

// InputPlan describes one input of a job: paths, an earlier job of the flow, or splits without files.
type InputPlan struct {
	Format     string   `msgpack:"Format"`          // a format of package runtime, or a name from the program
	RecordSize int      `msgpack:"RecordSize"`      // bytes, for "records"
	Paths      []string `msgpack:"Paths"`           // URLs: files, directories, globs
	Types      string   `msgpack:"Types,omitempty"` // only main outputs of jobs with these Types; empty: any files
	From       int      `msgpack:"From"`            // 1 + index in Plan.Jobs of the job that writes this input; 0: read Paths

	Splits int `msgpack:"Splits,omitempty"` // number of splits, for "generated"
}

// InputJobs lists the jobs that write j's input and side files, as indexes in Plan.Jobs: sorted, and each once.
func (j *JobPlan) InputJobs() []int {
	var after []int
	for _, in := range j.Inputs {
		if in.From > 0 {
			after = insertOnce(after, in.From-1)
		}
	}
	for _, r := range j.Results {
		if r.From > 0 {
			after = insertOnce(after, r.From-1)
		}
	}
	return after
}

func insertOnce(sorted []int, n int) []int {
	i := 0
	for i < len(sorted) && sorted[i] < n {
		i++
	}
	if i < len(sorted) && sorted[i] == n {
		return sorted
	}
	sorted = append(sorted, 0)
	copy(sorted[i+1:], sorted[i:])
	sorted[i] = n
	return sorted
}

// Submission is a client's request: a Plan, and how to run its program. The same key always gets
// the same answer. So a client may submit again if an answer was lost.
type Submission struct {
	Key      string   `msgpack:"Key"` // random, chosen by the client
	Owner    string   `msgpack:"Owner"`
	Staging  string   `msgpack:"Staging"` // URL of the directory with this submission's files
	Plan     Plan     `msgpack:"Plan"`
	Program  Program  `msgpack:"Program"`
	Settings Settings `msgpack:"Terms"`

	// DeadlineAt is the time of the deadline, in Unix milliseconds on the leader's clock. 0:
	// Settings.Deadline counts from the time at which the leader accepts the submission. The log
	// does not have it: there, Settings has the deadline.
	DeadlineAt int64 `msgpack:"Due,omitempty"`

	// Digest is the SHA-256 of StagedSubmission, which is this submission without it. Each reader of
	// the file checks it. Only embedded runs have none.
	Digest []byte `msgpack:"Digest,omitempty"`
}

// Program says how to start the job's binary.
type Program struct {
	Path  string            `msgpack:"Path"`  // URL of the executable
	Hash  string            `msgpack:"Hash"`  // its SHA-256 in hex; empty: run Path in place, without a copy
	Args  []string          `msgpack:"Args"`  // the job's own arguments, as the user typed them
	Flags map[string]string `msgpack:"Flags"` // values of all flags in the client's process, also of defaults
	Dir   string            `msgpack:"Dir"`   // the client's working directory, the base of the plan's relative paths

	Step   *Step    `msgpack:"Step,omitempty"`   // of a program that drives jobs: the job of this submission
	Drives []string `msgpack:"Drives,omitempty"` // instead of a Plan, from a program that drives jobs: its definitions
}

// LocalBytesProperty limits the bytes in the working directory of an attempt. It has Hadoop's
// name.
const LocalBytesProperty = "mapreduce.job.local-fs.single-disk-limit.bytes"

// Directories beside the submissions in a cluster's staging directory.
const (
	StagingClusters = "clusters" // clusters/<cluster id>: the nonce, which proves that trackers share the directory
	StagingPrograms = "programs" // programs/<yyyymmdd>/<sha-256>: executables by the UTC day of their upload; side files of Streaming too, archives with their suffix
	StagingHistory  = "history"  // history/yyyy/mm/dd/<job id>
	StagingSessions = "sessions" // sessions/<owner>~<name>: results of the steps of a program that drives jobs; <name> without certificates, if the owner's name has other characters
	StagingUsers    = "users"    // users/<user>: that user's own staging directory, with submissions and StagingPrograms; only if daemons act as users
)

// SessionResults is the directory of a session that has the results of its steps. The jobs of the steps write there, and
// nowhere else in the session.
const SessionResults = "results"

// sessionMark is between the owner and the name of a session. Neither has it.
const sessionMark = "~"

// Sessions returns what the URLs of the sessions of an owner begin with; owner may be empty. So no two owners have one session.
func Sessions(staging, owner string) string {
	all := strings.TrimRight(staging, "/") + "/" + StagingSessions + "/"
	if owner == "" {
		return all
	}
	return all + owner + sessionMark
}

// SessionOwner returns the owner of a session by the name of its directory, or "".
func SessionOwner(dir string) string {
	i := strings.LastIndex(dir, sessionMark)
	if i < 0 {
		return ""
	}
	return dir[:i]
}

// UserStaging returns a user's own staging directory.
func UserStaging(staging, user string) string {
	return strings.TrimRight(staging, "/") + "/" + StagingUsers + "/" + user
}

// Names of staged files below Submission.Staging. Files of one job are in its directory <job id>/.
const (
	StagedSubmission = "submission" // the Submission, as a frame
	StagedStopped    = "stopped"    // StagedSubmission, renamed by the first cleanup of a job: then no other job of it is set up
	StagedSplits     = "splits"     // written by the setup attempt
	StagedCuts       = "cuts"       // partition boundaries of a total order, written by the setup attempt
	StagedFiles      = "files"      // the files of each side file, with sizes and times, written by the setup attempt
)

// State is the state of a job.
type State uint8

const (
	Waiting    State = iota + 1 // waits for jobs that write its input
	Preparing                   // its setup attempt computes the splits
	Running                     // its tasks run
	Committing                  // its outputs move into place; kill is refused
	Stopping                    // failed or killed: attempts end, leftover files are removed
	Succeeded
	Failed
	Killed
)

func (s State) String() string {
	switch s {
	case Waiting:
		return "waiting"
	case Preparing:
		return "preparing"
	case Running:
		return "running"
	case Committing:
		return "committing"
	case Stopping:
		return "stopping"
	case Succeeded:
		return "succeeded"
	case Failed:
		return "failed"
	case Killed:
		return "killed"
	}
	return "unknown"
}

// Ended reports whether a job in this state has ended for good.
func (s State) Ended() bool { return s >= Succeeded }

// Progress counts bytes of a phase.
type Progress struct {
	Done  int64 `msgpack:"Done"`
	Total int64 `msgpack:"Total"`
}

// JobStatus is the part of a job's state that users see.
type JobStatus struct {
	ID         JobID         `msgpack:"ID"`
	Name       string        `msgpack:"Name"`
	State      State         `msgpack:"State"`
	Maps       TaskCounts    `msgpack:"Maps"`
	Reduces    TaskCounts    `msgpack:"Reduces"`
	Read       Progress      `msgpack:"Read"`     // bytes of input read by maps
	Shuffled   Progress      `msgpack:"Shuffled"` // bytes of map output that homes have gathered
	Reduced    Progress      `msgpack:"Reduced"`  // bytes of partitions read by reduces
	Counters   Counters      `msgpack:"Counters"`
	Error      string        `msgpack:"Error"` // why the job failed or was killed
	WaitReason string        `msgpack:"Waits"` // why it waits: "for …"; empty: it does not wait
	Settings   Settings      `msgpack:"Terms"`
	Suspended  bool          `msgpack:"Held"`     // suspended: no task is launched
	Troubles   []string      `msgpack:"Troubles"` // failed attempts, lost outputs, lost trackers; see [MaxTroubles]
	Elapsed    time.Duration `msgpack:"Elapsed"`  // since submission
	Submitted  int64         `msgpack:"-"`        // Unix milliseconds; only a job tracker sets it
	Prediction Prediction    `msgpack:"-"`        // of its end; only a job tracker sets it
	Owner      string        `msgpack:"Owner"`    // the user that submitted it; empty: not known any more
	Access     Access        `msgpack:"-"`        // to its details; only a job tracker sets it
	Flow       FlowID        `msgpack:"Flow"`     // its flow; zero: none
	StoppedBy  JobID         `msgpack:"With"`     // the job of its flow that failed or was killed, which stopped this one; zero: none

	// After lists the jobs of its flow that write its input, by id. Once all jobs of the flow have ended,
	// only their histories have it.
	After []JobID `msgpack:"After,omitempty"`

	GivenUpTasks string   `msgpack:"GivenUpTasks,omitempty"` // tasks that failed for good, and without which the job goes on: "maps 3, 7-9; reduce 0"
	GivenUp      []string `msgpack:"GivenUp,omitempty"`      // why, for the first of them; at most MaxTroubles

	// The leader sets the rest for jobs that have not ended, but not in lists. Histories have it.
	Partitions *PartitionSizes `msgpack:"Partitions,omitempty"` // nil: no size is known
	HotKeys    []HotKey        `msgpack:"HotKeys,omitempty"`    // most bytes first; at most MaxHotKeys
	SlotTime   *SlotTime       `msgpack:"SlotTime,omitempty"`   // nil: it has had no slot
}

// MaxReached limits the list of reached trackers in an [OutputLost].
const MaxReached = 100

// MaxSlots limits the map slots of a task tracker, its reduce slots and its cores, and MaxMemory the bytes that it offers: the
// leader adds them up, and some schedulers keep a number for each slot.
const (
	MaxSlots  = 1 << 16
	MaxMemory = 1 << 50
)

// MaxAwaited limits the list of trackers in an [Awaited], and MaxAwaitedJobs the list of jobs in a
// [Heartbeat].
const (
	MaxAwaited     = 16
	MaxAwaitedJobs = 8
)

// MaxDisks limits the list of disks in a [Machine].
const MaxDisks = 64

// MaxTroubles limits the troubles of a job. The first MaxTroubles about lost trackers are kept, and
// the first MaxTroubles others.
const MaxTroubles = 20

// MaxTrouble is the maximum bytes of a trouble, and of an attempt's error in status and history.
const MaxTrouble = 500

// TaskCounts counts a phase's tasks.
type TaskCounts struct {
	Total          int `msgpack:"Total"`
	Running        int `msgpack:"Running"`
	Done           int `msgpack:"Done"`
	FailedAttempts int `msgpack:"FailedAttempts"`
	GivenUp        int `msgpack:"GivenUp,omitempty"` // tasks that failed for good, and without which the job goes on
}

// Ended reports whether no task is left to run.
func (t *TaskCounts) Ended() bool { return t.Done+t.GivenUp >= t.Total }

// Counters are sums over a job's successful attempts, by Hadoop's groups and names.
type Counters map[string]map[string]int64

// Add adds n to a counter.
func (c Counters) Add(group, name string, n int64) {
	g := c[group]
	if g == nil {
		g = make(map[string]int64)
		c[group] = g
	}
	g[name] += n
}

// Merge adds every counter of other.
func (c Counters) Merge(other Counters) {
	for group, names := range other {
		for name, n := range names {
			c.Add(group, name, n)
		}
	}
}

// Get returns a counter's value, or 0 if there is no such counter.
func (c Counters) Get(group, name string) int64 { return c[group][name] }

// EncodeMsgpack writes the counters in sorted order, so that equal counters give equal bytes. The
// encoder itself sorts only some map types.
func (c Counters) EncodeMsgpack(enc *msgpack.Encoder) error {
	if c == nil {
		return enc.EncodeNil()
	}
	err := enc.EncodeMapLen(len(c))
	for _, group := range slices.Sorted(maps.Keys(c)) {
		names := c[group]
		err = cmp.Or(err, enc.EncodeString(group), enc.EncodeMapLen(len(names)))
		for _, name := range slices.Sorted(maps.Keys(names)) {
			err = cmp.Or(err, enc.EncodeString(name), enc.EncodeInt(names[name]))
		}
	}
	return err
}
