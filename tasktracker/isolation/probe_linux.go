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
	uid, gid := os.Geteuid(), os.Getegid()
	if as != nil {
		uid, gid = int(as.UID), int(as.GID)
	}
	cmd := exec.Command(fmt.Sprint("/proc/self/fd/", enter.ProgramFD), append([]string{job, enter.Identity(uid, gid)}, c.Hidden...)...)
	cmd.Args[0] = enter.ProbeName
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
