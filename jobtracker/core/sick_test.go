package core

import (
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// excluded lists the names of excluded trackers.
func (p *paced) excluded() (names []string) {
	for t := range p.core.facts.Trackers() {
		if t.Excluded != "" {
			names = append(names, t.Name)
		}
	}
	return names
}

// unused lists the trackers that a job does not use.
func (p *paced) unused() []string {
	for _, j := range p.core.leader.order {
		if names := j.trackers.Excluded(); len(names) > 0 {
			return names
		}
	}
	return nil
}

func taskTimes(maps, reduces time.Duration) [2]time.Duration { return [2]time.Duration{maps, reduces} }

// TestSickTracker tests a tracker that fails every attempt after a tenth of a second. No job fails.
// If many tasks fail on it, the job does not use it, or it is excluded, long before they succeed on
// others.
func TestSickTracker(t *testing.T) {
	every := func(wire.Kind) bool { return true }
	maps := func(k wire.Kind) bool { return k == wire.Map }
	reduces := func(k wire.Kind) bool { return k == wire.Reduce }
	for _, c := range []struct {
		name       string
		trackers   int
		fails      func(wire.Kind) bool
		from       time.Duration // when its attempts begin to fail
		job        pacedJob
		failures   int           // at most, of all attempts
		excludedIn time.Duration // at most, after from, by the job or by all; 0: not checked
	}{
		{"hundred trackers", 100, every, 0, pacedJob{maps: 1000, reduces: 20, taskTime: taskTimes(30*time.Second, 5*time.Second)}, 6, 2 * time.Second},
		{"long maps", 10, every, 0, pacedJob{maps: 100, reduces: 10, taskTime: taskTimes(10*time.Minute, 5*time.Second)}, 8, 2 * time.Second},
		{"later", 10, maps, time.Minute, pacedJob{maps: 200, reduces: 10, taskTime: taskTimes(20*time.Second, 5*time.Second)}, 6, 30 * time.Second},
		{"reduces", 10, reduces, 0, pacedJob{maps: 40, reduces: 30, taskTime: taskTimes(5*time.Second, 5*time.Second)}, 6, 0},
		{"classical", 10, reduces, 0, pacedJob{maps: 40, reduces: 30, taskTime: taskTimes(5*time.Second, 5*time.Second), classical: true}, 6, 0},
		{"two trackers", 2, every, 0, pacedJob{maps: 20, reduces: 4, taskTime: taskTimes(5*time.Second, 5*time.Second)}, 60, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPaced(t, 1, wire.Scheduling{}, c.trackers, 2, 1)
			p.trackers[0].fails = func(k wire.Kind) bool { return p.now >= c.from && c.fails(k) }
			c.job.name, c.job.spread, c.job.bytes = "job", 0.1, 1<<20
			p.submit(&c.job)
			var names []string
			p.runUntil(func() bool {
				names = append(p.unused(), p.excluded()...)
				return len(p.records) > 0 || len(names) > 0
			})
			in := p.now - c.from
			p.run(1)
			s := p.records[0].Job
			t.Logf("%v after %v, %d attempts failed, %v excluded after %v", s.State, s.Elapsed, p.failed, names, in)
			if s.State != wire.Succeeded {
				t.Errorf("the job is %v: %s", s.State, s.Error)
			}
			if p.failed > c.failures {
				t.Errorf("%d attempts failed, want at most %d", p.failed, c.failures)
			}
			if c.excludedIn > 0 && (!slices.Equal(names, []string{"t1"}) || in > c.excludedIn) {
				t.Errorf("excluded trackers: %v after %v, want t1 within %v", names, in, c.excludedIn)
			}
		})
	}
}

// TestBuggyJobs tests that a job with a bug excludes no tracker, also beside a job without. A job
// that fails on certain trackers excludes at most half of all.
func TestBuggyJobs(t *testing.T) {
	const trackers = 20
	for _, c := range []struct {
		name        string
		buggy       func(*pacedTracker, wire.TaskID) bool
		maxExcluded int
	}{
		{"everywhere", func(*pacedTracker, wire.TaskID) bool { return true }, 0},
		{"all maps but the first 20", func(_ *pacedTracker, id wire.TaskID) bool { return id.N >= 20 }, 0},
		{"the first tenth", func(_ *pacedTracker, id wire.TaskID) bool { return id.N < 40 }, 0},
		{"one in seven", func(_ *pacedTracker, id wire.TaskID) bool { return id.N%7 == 0 }, 0},
		{"on three of four trackers", func(t *pacedTracker, _ wire.TaskID) bool { return t.stream%4 != 0 }, trackers / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPaced(t, 1, wire.Scheduling{Scheduler: "fair"}, trackers, 2, 1)
			p.submit(&pacedJob{name: "good", maps: 200, taskTime: taskTimes(10*time.Second, 0), spread: 0.1})
			p.submit(&pacedJob{name: "bad", maps: 400, taskTime: taskTimes(10*time.Second, 0), spread: 0.1, submitAt: time.Second, fails: c.buggy})
			excluded := 0
			p.runUntil(func() bool {
				excluded = max(excluded, len(p.excluded()))
				return len(p.records) == 2
			})
			for _, r := range p.records {
				t.Logf("%s %v after %v", r.Job.Name, r.Job.State, r.Job.Elapsed)
				if r.Job.Name == "good" && r.Job.State != wire.Succeeded {
					t.Errorf("the job without a bug is %v: %s", r.Job.State, r.Job.Error)
				}
			}
			if t.Logf("%d attempts failed, %d trackers excluded", p.failed, excluded); excluded > c.maxExcluded {
				t.Errorf("%d trackers are excluded, want at most %d", excluded, c.maxExcluded)
			}
		})
	}
}
