package core

import (
	"slices"
	"testing"
	"time"

	"github.com/quernmr/quern/wire"
)

// excluded lists the excluded trackers.
func (p *paced) excluded() (names []string) {
	for t := range p.core.facts.Trackers() {
		if t.Excluded != "" {
			names = append(names, t.Name)
		}
	}
	return names
}

func pacedTime(maps, reduces time.Duration) [2]time.Duration { return [2]time.Duration{maps, reduces} }

// TestSickTracker: a tracker that fails every attempt after a tenth of a second fails no job.
// If many tasks fail on it, it is excluded long before they succeed elsewhere.
func TestSickTracker(t *testing.T) {
	every := func(wire.Kind) bool { return true }
	maps := func(k wire.Kind) bool { return k == wire.Map }
	reduces := func(k wire.Kind) bool { return k == wire.Reduce }
	for _, c := range []struct {
		name       string
		trackers   int
		sick       func(wire.Kind) bool
		from       time.Duration // when the tracker falls sick
		job        pacedJob
		failures   int           // at most
		excludedIn time.Duration // of falling sick; 0: it may not be
	}{
		{"hundred", 100, every, 0, pacedJob{maps: 1000, reduces: 20, take: pacedTime(30*time.Second, 5*time.Second)}, 40, 2 * time.Second},
		{"long maps", 10, every, 0, pacedJob{maps: 100, reduces: 10, take: pacedTime(10*time.Minute, 5*time.Second)}, 250, 2 * time.Second},
		{"later", 10, maps, time.Minute, pacedJob{maps: 200, reduces: 10, take: pacedTime(20*time.Second, 5*time.Second)}, 200, 30 * time.Second},
		{"reduces", 10, reduces, 0, pacedJob{maps: 40, reduces: 30, take: pacedTime(5*time.Second, 5*time.Second)}, 20, 0},
		{"classical", 10, reduces, 0, pacedJob{maps: 40, reduces: 30, take: pacedTime(5*time.Second, 5*time.Second), classical: true}, 40, 0},
		{"two", 2, every, 0, pacedJob{maps: 20, reduces: 4, take: pacedTime(5*time.Second, 5*time.Second)}, 60, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPaced(t, 1, wire.Scheduling{}, c.trackers, 2, 1)
			p.trackers[0].sick = func(k wire.Kind) bool { return p.now >= c.from && c.sick(k) }
			c.job.name, c.job.spread, c.job.bytes = "job", 0.1, 1<<20
			p.submit(&c.job)
			p.until(func() bool { return len(p.records) > 0 || len(p.excluded()) > 0 })
			names, in := p.excluded(), p.now-c.from
			p.run(1)
			s := p.records[0].Job
			t.Logf("%v after %v, %d attempts failed, %v excluded after %v", s.State, s.Elapsed, p.failed, names, in)
			if s.State != wire.Succeeded {
				t.Errorf("the job is %v: %s", s.State, s.Error)
			}
			if p.failed > c.failures {
				t.Errorf("%d attempts failed, more than %d", p.failed, c.failures)
			}
			if c.excludedIn > 0 && (!slices.Equal(names, []string{"t1"}) || in > c.excludedIn) {
				t.Errorf("%v are excluded after %v, want t1 within %v", names, in, c.excludedIn)
			}
		})
	}
}

// TestBuggyJobs: a job that fails by its own fault excludes no tracker, also beside a healthy
// job. A job that fails on chosen trackers excludes at most half of them.
func TestBuggyJobs(t *testing.T) {
	const trackers = 20
	for _, c := range []struct {
		name  string
		buggy func(*pacedTracker, wire.TaskID) bool
		most  int
	}{
		{"everywhere", func(*pacedTracker, wire.TaskID) bool { return true }, 0},
		{"all maps but the first ones", func(_ *pacedTracker, id wire.TaskID) bool { return id.N >= 20 }, 0},
		{"the first tenth", func(_ *pacedTracker, id wire.TaskID) bool { return id.N < 40 }, 0},
		{"one in seven", func(_ *pacedTracker, id wire.TaskID) bool { return id.N%7 == 0 }, 0},
		{"where it wants to", func(t *pacedTracker, _ wire.TaskID) bool { return t.stream%4 != 0 }, trackers / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPaced(t, 1, wire.Scheduling{Scheduler: "fair"}, trackers, 2, 1)
			p.submit(&pacedJob{name: "good", maps: 200, take: pacedTime(10*time.Second, 0), spread: 0.1})
			p.submit(&pacedJob{name: "bad", maps: 400, take: pacedTime(10*time.Second, 0), spread: 0.1, at: time.Second, buggy: c.buggy})
			most := 0
			p.until(func() bool {
				most = max(most, len(p.excluded()))
				return len(p.records) == 2
			})
			for _, r := range p.records {
				t.Logf("%s %v after %v", r.Job.Name, r.Job.State, r.Job.Elapsed)
				if r.Job.Name == "good" && r.Job.State != wire.Succeeded {
					t.Errorf("the job without a bug is %v: %s", r.Job.State, r.Job.Error)
				}
			}
			if t.Logf("%d attempts failed, %d trackers excluded", p.failed, most); most > c.most {
				t.Errorf("%d trackers are excluded, more than %d", most, c.most)
			}
		})
	}
}
