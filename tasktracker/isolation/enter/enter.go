// Package enter is the helper of package isolation, the process that sets up the namespaces of a worker and then
// executes the worker's program there. A program that imports this package is a helper if its argument 0 is [Name].
//
// # During the initialisation
//
// The helper is the task tracker's program, but needs few of its packages. So it works in an init function,
// before most of them are initialised. A package can be initialised after all that it imports. Among those that can be, the
// linker takes the first path in the alphabet. So this package imports only packages that import little, and none with a
// late path, such as path/filepath.
package enter

import "github.com/quernmr/quern/tasktracker/account/rights"

// Name is argument 0 of a helper. ProbeName is that of the probe, an isolated program that checks what it can do: this
// program, too. Its arguments are a directory that it can write, its Identity, and directories that it must not see.
const (
	Name      = "quern-isolate"
	ProbeName = "quern-isolation-probe"
)

// Failed begins the message of a helper that could not execute the program.
const Failed = "cannot isolate the job:"

// ProgramFD and PlanFD are descriptors of the helper: the program, and a pipe with the plan in JSON.
const (
	ProgramFD = 5
	PlanFD    = 6
)

// Plan is a list of steps for the helper.
type Plan struct {
	UID, GID int          // of the daemon
	User     *rights.User // nil: the program runs as the daemon's user, in a user namespace
	Root     string       // a directory of the daemon, on which the helper mounts the new root
	Dir      string       // working directory of the program
	Tasks    uint64       // most threads of the program and all processes that it starts; the system does not limit root
	Steps    []Step
}

// Step makes one path of the new root.
type Step struct {
	Kind     Kind
	At       string // path in the new root
	From     string // of Bind: path of the machine, without symbolic links; of Link: its target
	Write    bool   // of Bind
	Device   bool   // of Bind: a device
	Optional bool   // of Bind: left out if it cannot be opened
	Named    bool   // of Bind: the submission names it, so it is opened with the rights of the user
}

// Kind is a kind of Step.
type Kind string

// Kinds of steps.
const (
	Bind  Kind = "bind"
	Link  Kind = "link"
	Empty Kind = "empty" // an empty directory that cannot be written
	Shm   Kind = "shm"   // an empty directory in memory
	Proc  Kind = "proc"
)
