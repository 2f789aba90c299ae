package hdfs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	bare "github.com/colinmarc/hdfs/v2"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/processes"
	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// Jobs with staging in HDFS run as their owner: they read input of mode 0600 and write output that belongs
// to the owner. Neither another user nor the daemons' user can read what is staged. If the test is root's, jobs
// also have the owner's account of this machine.
func TestJobAsOwner(t *testing.T) {
	c := cluster(t)
	super := client(t, c) // the platform's cleanup uses it
	p := newPlatform(t, c)
	p.fs = super // lists all leftover files
	const owner = processes.User
	home := dfs.Join(p.top, owner)
	if err := super.Mkdir(home); err != nil {
		t.Fatal(err)
	}
	p.chown(home, owner, 0o755)
	content := text(4 * blockSize)
	in := p.put(owner+"/in", content, asUser(owner))
	p.chown(in, owner, 0o600)
	shape := daemonShape{jobTrackers: 3, nodes: c.DataNodes[:2], slots: 1, staging: dfs.Join(p.top, "staging"), asOwner: true}
	if os.Geteuid() == 0 {
		shape.users = filepath.Join(t.TempDir(), "users")
		if err := os.WriteFile(shape.users, []byte(owner+" 23001 23001\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.start(shape)

	// The client of another user of HDFS cannot take the owner's directory.
	run := func(user, program string, args ...string) *trial.Run {
		cmd := p.daemons.Command(p.ctx, "mrsubmit", append([]string{"run", p.daemons.Program(program)}, args...)...)
		cmd.Env = append(cmd.Env, "HADOOP_USER_NAME="+user)
		return trial.Begin(t, cmd)
	}
	out := dfs.Join(home, "out")
	own := wire.UserStaging(dfs.Join(p.top, "staging"), owner)

	// A user does not stage in a directory that another user has made with the same name.
	other := client(t, c, asUser(otherUser))
	if err := other.Mkdir(own); err != nil {
		t.Fatal(err)
	}
	run(owner, "wordcount", "-input", in, "-output", out).Fail(1, "it belongs to another user")
	if err := other.Remove(own); err != nil {
		t.Fatal(err)
	}

	run(otherUser, "wordcount", "-input", p.put("open", content), "-output", out).Fail(1, "the cluster knows you as "+owner+", and HDFS as "+otherUser)

	run(owner, "wordcount", "-input", in, "-output", out).Succeed()
	p.checkCounts(out, content)
	if shape.users != "" {
		if text := trial.Begin(t, p.daemons.Command(p.ctx, "mrsubmit", "cluster")).Succeed(); !strings.Contains(text, "ISOLATION OF JOBS") || !strings.Contains(text, "user ") {
			t.Errorf("jobs do not run with the accounts of their owners: %s", text)
		}
	}
	for user, want := range map[string]error{owner: nil, otherUser: fs.ErrPermission, jobUser: fs.ErrPermission} {
		if _, err := client(t, c, asUser(user)).List(own); !errors.Is(err, want) {
			t.Errorf("%s lists the owner's staged files: %v, want %v", user, err, want)
		}
	}
	status := func(name string) *bare.FileInfo {
		direct, err := bare.NewClient(bare.ClientOptions{Addresses: []string{c.NameNodes[0].Addr()}, User: owner})
		if err != nil {
			t.Fatal(err)
		}
		defer direct.Close()
		info, err := direct.Stat(name[len(c.URL()):])
		if err != nil {
			t.Fatal(err)
		}
		return info.(*bare.FileInfo)
	}
	for name, mode := range map[string]os.FileMode{out: 0o755, own: 0o700} {
		if info := status(name); info.Owner() != owner || info.Mode().Perm() != mode {
			t.Errorf("%s belongs to %s, mode %v", name, info.Owner(), info.Mode())
		}
	}

	p.checkDriver(dfs.Join(home, "lines"), owner, dfs.Join(own, wire.StagingSessions), run)

	// A task tracker without the flag refuses such a job, and says why.
	for _, d := range p.daemons.TaskTrackers {
		if err := d.Terminate(); err != nil {
			t.Fatal(err)
		}
	}
	p.startTracker(c.DataNodes[2])
	run(owner, "wordcount", "-input", in, "-output", dfs.Join(home, "none")).Fail(1, "start this task tracker with -hdfs-as-owner")
}

// checkDriver checks that a driver of the owner keeps its session where the owner's jobs write and read it. It is
// killed during its third step. Started again, it runs only the other steps, and then removes the session.
func (p *platform) checkDriver(in, owner, sessions string, run func(user, program string, args ...string) *trial.Run) {
	p.t.Helper()
	p.put(in, []byte("a\nhang\n"), asUser(owner))
	before := len(p.jobs())
	killed := run(owner, "driven", "-input", in, "-session", "s")
	killed.Await("the third step", func() bool {
		jobs := p.jobs()
		return len(jobs) == before+3 && jobs[0].Maps.Running == 1
	})
	for _, pid := range processes.Children(killed.Pid()) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			p.t.Error(err)
		}
	}
	killed.Fail(1, "killed")
	files := client(p.t, p.hdfs, asUser(owner))
	if kept, err := files.List(sessions); err != nil || len(kept) != 1 {
		p.t.Errorf("%d sessions, want 1: %v", len(kept), err)
	}
	if err := files.Remove(in); err != nil {
		p.t.Fatal(err)
	}
	p.put(in, []byte("b\n"), asUser(owner))
	printed := run(owner, "driven", "-input", in, "-session", "s").Succeed()
	if want := []string{"step 0 a", "step 1 hang", "step 2 b", "step 3 b"}; !trial.ContainsAll(printed, want) || strings.Contains(printed, "step 0 b") {
		p.t.Errorf("the driver printed\n%s", printed)
	}
	if kept, err := files.List(sessions); err != nil || len(kept) != 0 {
		p.t.Errorf("%d sessions are left: %v", len(kept), err)
	}
}

// jobs returns the cluster's jobs, the newest first.
func (p *platform) jobs() []web.Job {
	p.t.Helper()
	jobs, err := p.client.Jobs(p.ctx, core.Query{})
	if err != nil {
		p.t.Fatal(err)
	}
	return jobs
}
