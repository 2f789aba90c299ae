// Package isolation runs the programs of jobs in namespaces of their own: user, PID, mount and IPC.
// It decides what a worker sees of the file system, and starts it there.
//
// # What a worker sees
//
// The root is an empty file system, on which only these appear:
//
//	read-only  the directories of the system (systemDirs), the paths of Config.Shown, the inputs and
//	           side files that the submission names, the directory of the worker, and files that
//	           variables of its environment name
//	writable   the directory around each output, because the output appears there by a rename; the staging
//	           directory of the submission, and the results in the session of the driver that made it; the directories of its jobs on
//	           all disks; a private /tmp
//	           and /var/tmp, both in the directory of the worker; /dev/shm
//	new        /proc, with the processes of the worker alone; /dev, with a few harmless devices
//
// Directories of Config.Hidden are covered where one of these contains them, and those of Config.Kept are read-only. A submission that names
// a path in them is refused. The same holds for directories of other daemons and their keys, by the names of files.
//
// A job writes in the directory around its output, so this may be no directory of
// the system, not the home directory of the daemon's account, and none with that directory in it: the account
// executes scripts there, which need not exist yet. With Config.Outputs, it must be in one of them. No job may name a directory of
// temporary files itself: programs outside of namespaces have sockets there. Sockets below other paths are covered.
//
// The network is the machine's. Access to files is the daemon's: the user is the same, unless Worker.Account is set.
//
// # Workers of another account
//
// A daemon of root may give each worker the account of the job's owner. Such a worker needs no user namespace; it has
// the others, and sees the same. Its own directories belong to the account. A path that the submission names
// is looked up, made and opened with the account's rights, since a mount would otherwise bypass the
// directories around it. The helper takes the account when all mounts are made, and then has no rights of root any more.
//
// # How it starts
//
//	daemon   Plan: resolves all symbolic links, makes the list of steps
//	         Command: the same executable, named enter.Name, in new namespaces
//	helper   package enter: maps its user if it has a user namespace, carries out the steps, changes the root, takes the
//	         account, drops all capabilities, executes the program from descriptor 5
//
// The helper is process 1 of its namespace, and so is the program: when it ends, the system kills
// all its processes. The helper has CAP_SYS_ADMIN and CAP_SETPCAP in the new user namespace, as
// ambient capabilities. It maps its user itself, because a daemon that hides its memory cannot do
// this for a child.
//
// Paths of a plan have no symbolic links when it is made. The helper follows none, so that another
// job cannot replace a directory by a link meanwhile.
//
// # Invariants
//
//	I1  No step shows a path in Config.Hidden, except for the worker's own directories.
//	I2  The program has no capability, and cannot get one in the worker's user namespace.
//	I3  The helper executes nothing but the program, and only after all steps succeeded.
//	I4  A program of an account has only its user and groups, and no step shows it a file that the
//	    account could not open on the machine, except for its own directories and Config.Shown.
package isolation

import (
	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/wire"
)

// Level says how jobs are kept from the daemon and from each other.
type Level string

// Levels.
const (
	None      Level = "none"      // only the operating system user limits a job
	Namespace Level = "namespace" // see the package comment
	User      Level = "user"      // Namespace, and each worker has the account of the job's owner
)

// MaxTasks is the most threads of all processes of a worker, or of all jobs of an account. Without control groups,
// it keeps a job that starts processes without end from using up those of the machine.
const MaxTasks = 16384

// Config configures what all workers of a daemon see.
type Config struct {
	Hidden []string // directories and files of daemons: data, keys
	Shown  []string // more paths that all jobs may read
	Home   string   // home directory of the daemon's account; empty: unknown

	Outputs []string // directories below which jobs may have their outputs; empty: see the package comment

	// Replaced are files that are replaced, such as logs and ticket files. A cover of Hidden cannot hide the new file
	// from a worker that runs, so no input may have one in it.
	Replaced []string

	// Kept are directories with programs that the daemon's account executes. No job writes there.
	Kept []string
}

// Worker describes a worker.
type Worker struct {
	Submission *wire.Submission
	Dir        string           // its directory
	Jobs       []string         // directories of the jobs of the submission
	Results    string           // of the driver that made the submission, in its session; no job can replace it; empty: none
	Env        []string         // its environment
	Account    *account.Account // nil: the daemon's
}
