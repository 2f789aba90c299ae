package enter

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// sealProc makes what belongs to no process read-only in a mounted /proc, and hides the files that only user 0 can read. Programs
// of user 0 could otherwise change the machine. For example, they could name the program that gets core dumps,
// outside of all namespaces. Other users have no right to write there.
func sealProc(proc int) error {
	names, err := names(proc)
	if err != nil {
		return err
	}
	for _, name := range names {
		var info unix.Stat_t
		if err := unix.Fstatat(proc, name, &info, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			continue // a process that has ended
		}
		isDir := info.Mode&unix.S_IFMT == unix.S_IFDIR
		switch {
		case '0' <= name[0] && name[0] <= '9' || info.Mode&unix.S_IFMT == unix.S_IFLNK: // of a process
		case !isDir && info.Mode&unix.S_IROTH == 0:
			err = cover(proc, name, &Step{From: "/dev/null", Device: true})
		case isDir || info.Mode&0o222 != 0:
			err = cover(proc, name, nil)
		}
		if err != nil {
			return fmt.Errorf("seal %s: %w", name, err)
		}
	}
	return nil
}

// names returns the names in an open directory.
func names(dir int) ([]string, error) {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "proc")
	defer f.Close()
	return f.Readdirnames(-1)
}

// cover mounts a file of the machine over a name in a directory, or if it is nil, the name itself, read-only.
func cover(dir int, name string, from *Step) error {
	at, err := openPath(dir, name)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	tree := -1
	if from != nil {
		tree, err = openTree(from)
	} else if tree, err = unix.OpenTree(at, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err == nil {
		err = setAttributes(tree, 0, unix.MOUNT_ATTR_RDONLY)
	}
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	return moveMount(tree, at)
}
