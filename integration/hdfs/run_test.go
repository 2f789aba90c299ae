package hdfs_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quernmr/quern/jobtracker/web"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// run is a command that runs.
type run struct {
	t     *testing.T
	cmd   *exec.Cmd
	said  said
	ended chan struct{}
}

// said collects what a program says.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// submit runs a job: the program itself or, where there are daemons, with mrsubmit.
func (p *place) submit(program string, args ...string) *run {
	p.t.Helper()
	if p.daemons == nil {
		return p.command(program, args...)
	}
	return p.command("mrsubmit", append([]string{"run", p.daemons.Program(program)}, args...)...)
}

func (p *place) command(program string, args ...string) *run {
	p.t.Helper()
	cmd := exec.CommandContext(p.ctx, filepath.Join(programs(p.t), program), args...)
	cmd.Env = append(append(os.Environ(), p.env...), "TMPDIR="+p.dir)
	if p.daemons != nil {
		cmd.Env = append(cmd.Env, "QUERN_JOBTRACKER="+p.daemons.Addrs())
	}
	r := &run{t: p.t, cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &r.said, &r.said
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		cmd.Wait()
	}()
	return r
}

// succeed waits for the command, which must exit 0.
func (r *run) succeed() {
	r.t.Helper()
	<-r.ended
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		r.t.Fatalf("%s: exit %d\n%s", strings.Join(r.cmd.Args, " "), code, r.said.String())
	}
}

// fail waits for the command, which must exit so and say all that.
func (r *run) fail(code int, wants ...string) {
	r.t.Helper()
	<-r.ended
	text := r.said.String()
	lacks := slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(text, want) })
	if got := r.cmd.ProcessState.ExitCode(); got != code || lacks {
		r.t.Errorf("%s: exit %d, want %d and %q:\n%s", strings.Join(r.cmd.Args, " "), got, code, wants, text)
	}
}

// job is a run of the program paced.
type job struct {
	*run
	out   string // URL
	trace string
	gate  string
}

// paced runs a job that leaves traces. With -gate in flags its maps wait until
// open is called.
func (p *place) paced(in string, flags ...string) *job {
	p.t.Helper()
	p.jobs++
	dir := filepath.Join(p.dir, fmt.Sprint("job", p.jobs))
	j := &job{out: fmt.Sprintf("%s/out%d", p.top, p.jobs), trace: dir + "/trace", gate: dir + "/gate"}
	if err := os.MkdirAll(j.trace, 0o777); err != nil {
		p.t.Fatal(err)
	}
	args := []string{"-input", in, "-output", j.out, "-trace", j.trace}
	for _, flag := range flags {
		if args = append(args, flag); flag == "-gate" {
			args = append(args, j.gate)
		}
	}
	j.run = p.submit("paced", args...)
	return j
}

// open lets the maps of a job with a gate go on.
func (j *job) open() {
	j.t.Helper()
	if err := os.WriteFile(j.gate, nil, 0o666); err != nil {
		j.t.Fatal(err)
	}
}

// traces lists the attempts of a kind of task that have begun or ended.
func (j *job) traces(kind, what string) []string {
	files, _ := filepath.Glob(filepath.Join(j.trace, "*_"+kind+"_*."+what)) // the pattern is well-formed
	return files
}

// reached waits until so many attempts of a kind have begun or ended.
func (j *job) reached(kind, what string, n int) {
	j.t.Helper()
	j.waits(fmt.Sprintf("%d attempts of kind %s have %s", n, kind, what), func() bool { return len(j.traces(kind, what)) >= n })
}

// waits waits until something is so, while the job runs.
func (j *job) waits(what string, so func() bool) {
	j.t.Helper()
	over := false
	happened := within(deadline, func() bool {
		select {
		case <-j.ended:
			over = true
		default:
		}
		return over || so()
	})
	if over && so() {
		return
	}
	if over || !happened {
		j.t.Fatalf("waited in vain until %s (job ended: %v):\n%s", what, over, j.said.String())
	}
}

// lastID is that of the job that was submitted to the daemons last.
func (p *place) lastID() wire.JobID {
	p.t.Helper()
	jobs, err := p.client.Jobs(p.ctx)
	if err != nil || len(jobs) == 0 {
		p.t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	id, err := wire.ParseJobID(jobs[len(jobs)-1].ID)
	if err != nil {
		p.t.Fatal(err)
	}
	return id
}

// last is that job, with its counters.
func (p *place) last() *web.Job {
	p.t.Helper()
	job, err := p.client.Job(p.ctx, p.lastID())
	if err != nil {
		p.t.Fatal(err)
	}
	return job
}

func jobCounter(j *web.Job, name string) int64  { return j.Counters[mrruntime.JobCounters][name] }
func readCounter(j *web.Job, name string) int64 { return j.Counters[mrruntime.ReadCounters][name] }
