package isolation

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/quernmr/quern/tasktracker/account"
	"github.com/quernmr/quern/tasktracker/isolation/enter"
	"github.com/quernmr/quern/wire"
)

// probeName is argument 0 of the program that Probe executes: this executable again.
const probeName = "quern-isolation-probe"

func init() {
	if len(os.Args) > 1 && os.Args[0] == probeName {
		os.Exit(probe(os.Args[1:]))
	}
}

// Probe isolates a program as a worker, once, and reports what prevents it. Nothing else can tell: kernel
// settings, filters of system calls and covered files of /proc all matter. It uses a new directory, and removes it.
// Unless the account is nil, the program gets it.
func (c *Config) Probe(dir string, as *account.Account) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	job := filepath.Join(dir, "job")
	plan, err := c.Plan(&Worker{Submission: new(wire.Submission), Dir: dir, Jobs: []string{job}, Account: as})
	if err != nil {
		return err
	}
	from, err := Pipe(plan)
	if err != nil {
		return err
	}
	defer from.Close()
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer exe.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	var stderr bytes.Buffer
	want := user{os.Geteuid(), os.Getegid()}
	if as != nil {
		want = user{int(as.UID), int(as.GID)}
	}
	cmd := exec.Command(fmt.Sprint("/proc/self/fd/", enter.ProgramFD), append([]string{job, want.String()}, c.Hidden...)...)
	cmd.Args[0] = probeName
	cmd.Env = []string{}
	cmd.Stderr = &stderr
	cmd.ExtraFiles = []*os.File{null, null, exe}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	Command(cmd, from, as != nil)
	if err := cmd.Run(); err != nil {
		if text := strings.TrimSpace(stderr.String()); text != "" {
			return errors.New(strings.TrimPrefix(text, enter.Failed+" "))
		}
		return fmt.Errorf("start a process in new namespaces: %w", err)
	}
	return nil
}

// user is the user and group of a process.
type user struct{ uid, gid int }

func (u user) String() string { return fmt.Sprintf("user %d and group %d", u.uid, u.gid) }

// probe is the isolated program. Its arguments are a directory that it can write, its user, and files that it must
// not see.
func probe(args []string) int {
	if err := errors.Join(checkOwn(args[0]), checkUser(args[1]), checkHidden(args[2:])); err != nil {
		fmt.Fprintln(os.Stderr, enter.Failed, err)
		return 1
	}
	return 0
}

func checkOwn(job string) error {
	if pid := os.Getpid(); pid != 1 {
		return fmt.Errorf("the isolated process has number %d, not 1", pid)
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(processes) != 1 {
		return fmt.Errorf("the isolated process sees %d processes in /proc, not only itself", len(processes))
	}
	for _, name := range []string{filepath.Join(job, "file"), "/tmp/file", "/dev/null"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			return fmt.Errorf("the isolated process cannot write: %w", err)
		}
	}
	return nil
}

// checkUser checks that the process has the user, and cannot get another one.
func checkUser(want string) error {
	if got := (user{os.Getuid(), os.Getgid()}).String(); got != want {
		return fmt.Errorf("the isolated process has %s, not %s", got, want)
	}
	for other := range 2 {
		if other != os.Getuid() && syscall.Setuid(other) == nil {
			return fmt.Errorf("the isolated process, which was %s, could become user %d", want, other)
		}
	}
	return nil
}

// checkHidden looks for files of hidden directories. The process sees its own ones there.
func checkHidden(dirs []string) error {
	for _, dir := range dirs {
		for _, name := range []string{"lock", "key.pem", "tokens"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				return fmt.Errorf("the isolated process sees %s", filepath.Join(dir, name))
			}
		}
	}
	return nil
}
