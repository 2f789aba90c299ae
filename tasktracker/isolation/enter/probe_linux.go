package enter

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Identity names a user and group, as the probe expects them.
func Identity(uid, gid int) string { return fmt.Sprintf("user %d and group %d", uid, gid) }

// probe is the isolated program. Its arguments are a directory that it can write, its user, and files that it must
// not see.
func probe(args []string) int {
	if err := errors.Join(checkOwn(args[0]), checkUser(args[1]), checkSettings(), checkHidden(args[2:])); err != nil {
		fmt.Fprintln(os.Stderr, Failed, err)
		return 1
	}
	return 0
}

func checkOwn(job string) error {
	if pid := os.Getpid(); pid != 1 {
		return fmt.Errorf("the isolated process has number %d, not 1", pid)
	}
	files, err := os.ReadDir("/proc")
	processes := 0
	for _, f := range files {
		if '0' <= f.Name()[0] && f.Name()[0] <= '9' {
			processes++
		}
	}
	if err != nil || processes != 1 {
		return fmt.Errorf("the isolated process sees %d processes in /proc, not only itself", processes)
	}
	for _, name := range []string{job + "/file", "/tmp/file", "/dev/null"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			return fmt.Errorf("the isolated process cannot write: %w", err)
		}
	}
	return nil
}

// checkUser checks that the process has the user, and cannot get another one.
func checkUser(want string) error {
	if got := Identity(os.Getuid(), os.Getgid()); got != want {
		return fmt.Errorf("the isolated process has %s, not %s", got, want)
	}
	for other := range 2 {
		if other != os.Getuid() && syscall.Setuid(other) == nil {
			return fmt.Errorf("the isolated process, which was %s, could become user %d", want, other)
		}
	}
	return nil
}

// checkSettings checks that the process cannot change the machine. It opens files, and writes nothing.
func checkSettings() error {
	for _, name := range []string{"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/sys/power/state"} {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err == nil {
			f.Close()
			return fmt.Errorf("the isolated process could write %s", name)
		}
	}
	return nil
}

// checkHidden looks for files of hidden directories. The process sees its own ones there.
func checkHidden(dirs []string) error {
	for _, dir := range dirs {
		for _, name := range []string{"lock", "key.pem", "tokens"} {
			if _, err := os.Lstat(dir + "/" + name); err == nil {
				return fmt.Errorf("the isolated process sees %s/%s", dir, name)
			}
		}
	}
	return nil
}
