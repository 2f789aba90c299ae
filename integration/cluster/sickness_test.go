package cluster_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/integration/processes"
)

// Kinds of faults. Those of task trackers stay for 20 to 60 seconds.
const (
	failing  = "a task tracker that fails every attempt"
	slow     = "a task tracker on which tasks take ten times as long"
	isolated = "a task tracker that reaches the job trackers, but no other task tracker"
	diskless = "a task tracker with a disk that cannot be written"
	stopped  = "a task tracker that is stopped"
	flapping = "a task tracker that is killed and started again every few seconds"
	leader   = "a leader that is killed or stopped"
)

var ailments = []string{failing, slow, isolated, diskless, stopped, flapping}

// ailment is the fault of a sick task tracker.
type ailment struct {
	kind  string
	until time.Time
	next  time.Time // of a flapping one: when it is killed or started
}

// sickness makes task trackers sick, at most half of them at once, and kills or stops one job
// tracker at a time.
type sickness struct {
	c      *cluster
	r      *rand.Rand
	sick   map[*processes.Daemon]*ailment
	down   *processes.Daemon // job tracker; nil: none
	upAt   time.Time         // when it continues
	deck   []int             // indexes of the next kinds, so that each kind has its turn
	report *chaosReport
}

func (s *sickness) check(err error) {
	s.c.t.Helper()
	if err != nil {
		s.c.t.Error(err)
	}
}

// between draws a time from low to high.
func (s *sickness) between(low, high time.Duration) time.Duration {
	return low + time.Duration(s.r.Int64N(int64(high-low)))
}

func (s *sickness) step() {
	now := time.Now()
	for _, d := range s.c.TaskTrackers {
		a := s.sick[d]
		switch {
		case a == nil:
		case now.After(a.until):
			s.heal(d)
		case a.kind == flapping && now.After(a.next):
			a.next = now.Add(s.between(time.Second, 5*time.Second))
			if d.Running() {
				s.check(d.Kill())
			} else {
				s.check(d.Start())
			}
		}
	}
	if len(s.sick) < len(s.c.TaskTrackers)/2 && s.r.IntN(6) == 0 {
		s.fallSick(s.c.TaskTrackers[s.r.IntN(len(s.c.TaskTrackers))])
	}
	switch {
	case s.down != nil && now.After(s.upAt):
		s.c.repair(s.down)
		s.down = nil
	case s.down == nil && s.r.IntN(20) == 0:
		s.strikeLeader()
	}
}

func (s *sickness) fallSick(d *processes.Daemon) {
	if s.sick[d] != nil {
		return
	}
	if len(s.deck) == 0 {
		s.deck = s.r.Perm(len(ailments))
	}
	a := &ailment{kind: ailments[s.deck[0]], until: time.Now().Add(s.between(20*time.Second, time.Minute))}
	s.deck = s.deck[1:]
	s.sick[d] = a
	s.report.faults[a.kind]++
	switch a.kind {
	case failing:
		s.restart(d, "PACED_FAILS=1")
	case slow:
		s.restart(d, "PACED_SLOW=10")
	case isolated:
		s.isolate()
	case diskless:
		s.check(d.Ready(s.c.ctx)) // it may have just been started, and would refuse such a directory
		jobs := filepath.Join(d.Data(), "jobs")
		err := os.RemoveAll(jobs)
		if err == nil {
			err = os.WriteFile(jobs, nil, 0o444)
		}
		if err != nil { // an attempt has just made a file or the directory
			delete(s.sick, d)
			s.report.faults[a.kind]--
		}
	case stopped:
		s.check(d.Stop())
	}
}

// restart starts a task tracker again, with more variables for its workers.
func (s *sickness) restart(d *processes.Daemon, env ...string) {
	d.Env = env
	if d.Running() {
		s.check(d.Kill())
	}
	s.check(d.Start())
}

func (s *sickness) heal(d *processes.Daemon) {
	kind := s.sick[d].kind
	delete(s.sick, d)
	switch kind {
	case failing, slow:
		s.restart(d)
	case isolated:
		s.isolate()
	case diskless:
		s.check(os.Remove(filepath.Join(d.Data(), "jobs")))
	case stopped:
		s.check(d.Continue())
	case flapping:
		if !d.Running() {
			s.check(d.Start())
		}
	}
}

func (s *sickness) isolate() {
	var cut []*processes.Daemon
	for _, d := range s.c.TaskTrackers {
		if a := s.sick[d]; a != nil && a.kind == isolated {
			cut = append(cut, d)
		}
	}
	s.c.IsolateTaskTrackers(cut...)
}

// strikeLeader kills or stops the leader, or another job tracker if the leader is not known.
func (s *sickness) strikeLeader() {
	d := s.c.leaderExcept(nil)
	if d == nil {
		return
	}
	s.down, s.upAt = d, time.Now().Add(s.between(2*time.Second, 15*time.Second))
	s.report.faults[leader]++
	if s.r.IntN(2) == 0 {
		s.check(d.Kill())
	} else {
		s.check(d.Stop())
	}
}

func (s *sickness) healAll() {
	for d := range maps.Clone(s.sick) {
		s.heal(d)
	}
}

// chaosReport counts what a run of TestChaos did.
type chaosReport struct {
	seed       uint64
	faults     map[string]int
	times      []time.Duration // of jobs
	attempts   int             // of maps and reduces
	reruns     int             // of them, those after the first of a task
	excluded   map[string]bool // task trackers that are excluded now
	exclusions int
}

func newChaosReport(seed uint64) *chaosReport {
	return &chaosReport{seed: seed, faults: make(map[string]int), excluded: make(map[string]bool)}
}

// ended counts a job that has ended.
func (r *chaosReport) ended(j *job) {
	r.times = append(r.times, time.Since(j.began))
	for _, kind := range []string{"m", "r"} {
		tasks := make(map[string]bool)
		for _, name := range j.Traces(kind, "began") {
			task, _, _ := strings.Cut(filepath.Base(name), ".")
			r.attempts++
			if tasks[task] {
				r.reruns++
			}
			tasks[task] = true
		}
	}
}

// watch counts exclusions of task trackers.
func (r *chaosReport) watch(c *cluster) {
	status, err := c.client.Cluster(c.ctx)
	if err != nil {
		return // there is no leader
	}
	for _, t := range status.Trackers {
		if t.Excluded != "" && !r.excluded[t.ID] {
			r.exclusions++
		}
		r.excluded[t.ID] = t.Excluded != ""
	}
}

// chaosHead begins the report, which is the page docs/chaos.md.
const chaosHead = `# Chaos

` + "`make soak`" + ` keeps up to half of the task trackers of a cluster of processes sick, and kills or stops leaders, while
jobs run. Each job's output is compared with that of one process. To repeat a run, and to write this page:

` + "```" + `
go test ./integration/cluster -timeout 0 -run TestChaos -chaos %v -chaos-seed %d -chaos-report $PWD/docs/chaos.md
` + "```" + `

The last run took %v with seed %d, on three job trackers and six task trackers. All outputs were right.

| Figure | Value |
|---|---|
`

// text returns the report in Markdown.
func (r *chaosReport) text(length time.Duration) string {
	var b strings.Builder
	slices.Sort(r.times)
	fmt.Fprintf(&b, chaosHead, length, r.seed, length, r.seed)
	fmt.Fprintf(&b, "| jobs | %d |\n| attempts of maps and reduces that began | %d |\n| of them, reruns | %d |\n", len(r.times), r.attempts, r.reruns)
	fmt.Fprintf(&b, "| exclusions of task trackers | %d |\n", r.exclusions)
	if n := len(r.times); n > 0 {
		fmt.Fprintf(&b, "| median time of a job | %.1f s |\n| longest time of a job | %.1f s |\n", r.times[n/2].Seconds(), r.times[n-1].Seconds())
	}
	fmt.Fprintf(&b, "\n| Fault | Times |\n|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(r.faults)) {
		fmt.Fprintf(&b, "| %s | %d |\n", kind, r.faults[kind])
	}
	return b.String()
}
