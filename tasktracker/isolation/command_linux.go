package isolation

import (
	"encoding/json"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/quernmr/quern/tasktracker/isolation/enter"
)

// Pipe returns a pipe with a plan, which the caller closes.
func Pipe(p *enter.Plan) (*os.File, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() { // ends when all readers have closed the pipe
		_, _ = to.Write(text)
		to.Close()
	}()
	return from, nil
}

// Command changes a command that executes the descriptor enter.ProgramFD, so that it runs in namespaces. It gets the plan from
// a pipe. With an account, it begins as root, which needs no user namespace.
func Command(cmd *exec.Cmd, plan *os.File, hasAccount bool) {
	if len(cmd.ExtraFiles) != enter.PlanFD-3 {
		panic("isolation: the plan has another descriptor")
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, plan)
	cmd.Path, cmd.Args = "/proc/self/exe", append([]string{enter.Name}, cmd.Args...)
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if hasAccount {
		return
	}
	// With a user namespace, package syscall copies this process, since most callers must then map the user while the copy waits.
	// A process that maps its user itself can borrow the memory of this one, as without a namespace.
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_VM | unix.CLONE_VFORK
	cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
}
