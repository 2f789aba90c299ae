package hdfs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/quernmr/quern/integration/trial"
	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// submit runs a job: embedded, or with mrsubmit if the platform has daemons.
func (p *platform) submit(program string, args ...string) *trial.Run {
	p.t.Helper()
	if p.daemons == nil {
		return p.command(program, args...)
	}
	return p.command("mrsubmit", append([]string{"run", p.daemons.Program(program)}, args...)...)
}

func (p *platform) command(program string, args ...string) *trial.Run {
	p.t.Helper()
	cmd := exec.CommandContext(p.ctx, filepath.Join(programs(p.t), program), args...)
	cmd.Env = append(append(os.Environ(), p.env...), "TMPDIR="+p.dir, "XDG_STATE_HOME="+filepath.Join(p.dir, "state"))
	if p.daemons != nil {
		cmd.Env = append(append(cmd.Env, p.daemons.User()...), "QUERN_JOBTRACKER="+p.daemons.Addrs())
	}
	return trial.Begin(p.t, cmd)
}

// paced runs a job that writes traces. With -gate in flags, its maps wait until the test calls
// OpenGate.
func (p *platform) paced(in string, flags ...string) *trial.Job {
	p.t.Helper()
	p.jobCount++
	traces, out := filepath.Join(p.dir, fmt.Sprint("job", p.jobCount)), fmt.Sprintf("%s/out%d", p.top, p.jobCount)
	if err := os.Mkdir(traces, 0o777); err != nil {
		p.t.Fatal(err)
	}
	return trial.NewJob(p.submit("paced", trial.Flags(in, out, traces, flags...)...), out, traces)
}

// lastID returns the ID of the job that was submitted last.
func (p *platform) lastID() wire.JobID {
	p.t.Helper()
	jobs, err := p.client.Jobs(p.ctx, core.Query{})
	if err != nil || len(jobs) == 0 {
		p.t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	id, err := wire.ParseJobID(jobs[0].ID)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

// lastJob returns the job that was submitted last, with its counters.
func (p *platform) lastJob() *web.Job {
	p.t.Helper()
	job, err := p.client.Job(p.ctx, p.lastID())
	if err != nil {
		p.t.Fatal(err)
	}
	return job
}

func jobCounter(j *web.Job, name string) int64  { return j.Counters[wire.JobCounters][name] }
func readCounter(j *web.Job, name string) int64 { return j.Counters[wire.ReadCounters][name] }
