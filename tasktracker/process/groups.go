package process

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/quernmr/quern/tasktracker/cgroup"
)

// groupWait limits the wait for the death of a killed group.
const groupWait = 2 * time.Second

// groups starts workers in control groups.
type groups struct {
	*cgroup.Groups // nil: none
	found          cgroup.Found
	max            Maximum
}

// OpenGroups finds out how workers can be limited. Without it, only measurements limit them. It fails if the
// operator's maximum cannot hold. Call it before the first Start.
func (p *Starter) OpenGroups() (cgroup.Found, error) {
	g := &p.groups
	cfg := cgroup.Config{Cores: runtime.NumCPU(), Children: children, Wait: groupWait}
	if p.cfg.Groups {
		cfg.File = filepath.Join(p.cfg.Dir, GroupFile)
	}
	g.Groups, g.found = cgroup.Open(cfg)
	if g.max.limitsCores() && g.found.CPU == 0 {
		return g.found, errors.Join(fmt.Errorf("limit the cores of attempts (-max-cores, -strict-cores): %s", g.found), g.Close())
	}
	return g.found, nil
}

// start starts a process in a new group or, if that fails and the operator's maximum permits it, without a
// group.
func (g *groups) start(command func() *exec.Cmd) (cmd *exec.Cmd, group *cgroup.Group, ended func(), err error) {
	if group = g.Add(); group != nil {
		first := g.max.first()
		cmd = command()
		group.Prepare(cmd.SysProcAttr)
		if err = group.Limit(0, first); err == nil || !g.max.limitsCores() {
			ended, err = StartChild(cmd)
		}
		group.Started()
		if err == nil {
			_ = group.Limit(cmd.Process.Pid, first) // an error comes again before the first attempt
			return cmd, group, ended, nil
		}
		group.Remove() // try again without the group
	}
	if g.max.limitsCores() {
		return nil, nil, nil, fmt.Errorf("start worker in a control group, which limits its cores: %w", errors.Join(err, errNoGroup(group)))
	}
	cmd = command()
	ended, err = StartChild(cmd)
	return cmd, nil, ended, err
}

func errNoGroup(group *cgroup.Group) error {
	if group == nil {
		return errors.New("it could not be made")
	}
	return nil
}
