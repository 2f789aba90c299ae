package enter

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker/account/rights"
)

// init does the work of a helper or probe, if this process is one: it never returns then. Init functions stay on the
// first thread, to which the capabilities belong.
func init() {
	if len(os.Args) == 0 {
		return
	}
	switch os.Args[0] {
	case Name:
		fmt.Fprintln(os.Stderr, Failed, enter())
		os.Exit(1)
	case ProbeName:
		os.Exit(probe(os.Args[1:]))
	}
}

func enter() error {
	plan, err := readPlan()
	if err != nil {
		return fmt.Errorf("read the plan: %w", err)
	}
	// Executing this program may have cleared it.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the task tracker: %w", err)
	}
	if plan.User == nil {
		if err := mapUser(plan); err != nil {
			return err
		}
	}
	if err := build(plan); err != nil {
		return err
	}
	if err := leaveKeyring(); err != nil {
		return err
	}
	if err := unix.Chdir(plan.Dir); err != nil {
		return fmt.Errorf("enter %s: %w", plan.Dir, err)
	}
	if err := dropCapabilities(plan.User); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := forbidKeys(); err != nil {
		return fmt.Errorf("forbid the use of keys: %w", err)
	}
	if err := scopeSockets(); err != nil {
		return fmt.Errorf("keep the program from abstract sockets: %w", err)
	}
	if err := limitTasks(plan.Tasks); err != nil {
		return fmt.Errorf("limit the number of threads: %w", err)
	}
	// A new user clears it, and the program must end with the task tracker.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the task tracker: %w", err)
	}
	return fmt.Errorf("execute the program: %w", unix.Exec("/proc/self/fd/"+strconv.Itoa(ProgramFD), os.Args[1:], os.Environ()))
}

func readPlan() (*Plan, error) {
	f := os.NewFile(PlanFD, "plan")
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	plan := new(Plan)
	return plan, json.Unmarshal(text, plan)
}

// mapUser gives this process the user and group of the daemon.
func mapUser(plan *Plan) error {
	for _, f := range []struct{ name, text string }{
		{"setgroups", "deny"},
		{"uid_map", fmt.Sprintf("%d %d 1", plan.UID, plan.UID)},
		{"gid_map", fmt.Sprintf("%d %d 1", plan.GID, plan.GID)},
	} {
		if err := os.WriteFile("/proc/self/"+f.name, []byte(f.text), 0); err != nil {
			return fmt.Errorf("map the user: %w", err)
		}
	}
	return nil
}

// limitTasks limits the threads of this user, which a user namespace counts apart. The program cannot raise the limit.
func limitTasks(most uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return err
	}
	most = min(most, limit.Max)
	return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most})
}

// builder mounts the new root.
type builder struct {
	root   int   // its descriptor
	isRoot bool  // the program keeps user 0
	sealed []int // mounts that become read-only at the end
}

// build carries out the steps, and changes the root.
func build(plan *Plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// The new root covers the worker's directory, so all trees are opened before.
	trees, err := openTrees(plan)
	if err != nil {
		return err
	}
	root, err := openPath(unix.AT_FDCWD, plan.Root)
	if err != nil {
		return fmt.Errorf("open %s: %w", plan.Root, err)
	}
	b := &builder{isRoot: plan.User == nil && plan.UID == 0}
	if b.root, err = newMount("tmpfs", "mode=0755", "size=4m"); err != nil {
		return fmt.Errorf("mount a new root: %w", err)
	}
	if err := moveMount(b.root, root); err != nil {
		return fmt.Errorf("mount a new root: %w", err)
	}
	for i, s := range plan.Steps {
		if err := b.do(&s, trees[i]); err != nil {
			return fmt.Errorf("%s %s: %w", s.Kind, s.At, err)
		}
	}
	for _, fd := range append(b.sealed, b.root) {
		if err := setAttributes(fd, 0, unix.MOUNT_ATTR_RDONLY); err != nil {
			return fmt.Errorf("make the root read-only: %w", err)
		}
	}
	return b.pivot()
}

// openTrees opens what the steps show; -1: nothing.
func openTrees(plan *Plan) ([]int, error) {
	trees := make([]int, len(plan.Steps))
	for i, s := range plan.Steps {
		trees[i] = -1
		if s.Kind != Bind {
			continue
		}
		fd, err := openTreeAs(plan.User, &s)
		if err != nil && !s.Optional {
			return nil, fmt.Errorf("show %s: %w", s.From, err)
		}
		if err == nil {
			trees[i] = fd
		}
	}
	return trees, nil
}

// openTreeAs opens what the submission names with the rights of its owner.
func openTreeAs(u *rights.User, s *Step) (fd int, err error) {
	if u == nil || !s.Named {
		return openTree(s)
	}
	if err := u.Enter(); err != nil {
		return -1, err
	}
	fd, err = openTree(s)
	return fd, errors.Join(err, u.Leave())
}

// pivot changes the root to the new one, and removes the old one.
func (b *builder) pivot() error {
	if err := unix.Fchdir(b.root); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("remove the old root: %w", err)
	}
	return nil
}

// do carries out a step. The tree is of a Bind; -1: none.
func (b *builder) do(s *Step, tree int) (err error) {
	switch s.Kind {
	case Link:
		return b.link(s)
	case Bind:
		if tree < 0 {
			return nil
		}
	case Empty:
		tree, err = newMount("tmpfs", "mode=0755", "size=4m")
		b.sealed = append(b.sealed, tree)
	case Shm:
		tree, err = newMount("tmpfs", "mode=1777", "size=64m")
	case Proc:
		tree, err = newMount("proc")
	default:
		return fmt.Errorf("unknown kind of step")
	}
	if err != nil {
		return err
	}
	var info unix.Stat_t
	if err := unix.Fstat(tree, &info); err != nil {
		return err
	}
	at, err := b.walk(s.At, info.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	if err := moveMount(tree, at); err != nil || s.Kind != Proc || !b.isRoot {
		return err
	}
	return sealProc(tree)
}

// link makes a symbolic link, unless it is in a shown directory.
func (b *builder) link(s *Step) error {
	at := strings.LastIndexByte(s.At, '/')
	dir, err := b.walk(s.At[:at], true)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if err := unix.Symlinkat(s.From, dir, s.At[at+1:]); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// walk opens a path below the new root. It makes what is missing, and follows no links.
func (b *builder) walk(path string, isDir bool) (int, error) {
	fd, err := unix.FcntlInt(uintptr(b.root), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	names := strings.Split(strings.Trim(path, "/"), "/")
	for i, name := range names {
		if name == "" {
			continue
		}
		next, err := openPath(fd, name)
		if errors.Is(err, unix.ENOENT) {
			if i < len(names)-1 || isDir {
				err = unix.Mkdirat(fd, name, 0o755)
			} else {
				err = unix.Mknodat(fd, name, unix.S_IFREG|0o644, 0)
			}
			if err == nil {
				next, err = openPath(fd, name)
			}
		}
		unix.Close(fd)
		if err != nil {
			return -1, fmt.Errorf("make %s: %w", name, err)
		}
		fd = next
	}
	return fd, nil
}

// openPath opens a path without symbolic links.
func openPath(dir int, path string) (int, error) {
	return unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS})
}

// openTree opens a copy of a mount and all mounts below it.
func openTree(s *Step) (int, error) {
	fd, err := openPath(unix.AT_FDCWD, s.From)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	tree, err := unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return -1, err
	}
	attributes := uint64(unix.MOUNT_ATTR_NOSUID)
	if !s.Device {
		attributes |= unix.MOUNT_ATTR_NODEV
	}
	if !s.Write {
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	if err := setAttributes(tree, unix.AT_RECURSIVE, attributes); err != nil {
		unix.Close(tree)
		return -1, err
	}
	return tree, nil
}

func setAttributes(mount int, flags uint, attributes uint64) error {
	return unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH|flags, &unix.MountAttr{Attr_set: attributes})
}

// newMount returns a new file system that is mounted nowhere yet.
func newMount(kind string, options ...string) (int, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	for _, option := range options {
		name, value, _ := strings.Cut(option, "=")
		if err := unix.FsconfigSetString(fs, name, value); err != nil {
			return -1, err
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}

func moveMount(mount, at int) error {
	return unix.MoveMount(mount, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// securebits: user 0 has no more rights than others, and no capability can be raised again.
const securebits = 0xef // NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE, and all locks

// dropCapabilities takes all capabilities from this thread and from what it executes. Unless the user is nil, the thread
// gets it and its groups, for which it still needs capabilities.
func dropCapabilities(u *rights.User) error {
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, securebits, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	for c := uintptr(0); ; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // the system knows no more
		} else if err != nil {
			return err
		}
	}
	if u != nil {
		if err := u.Become(); err != nil {
			return err
		}
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
