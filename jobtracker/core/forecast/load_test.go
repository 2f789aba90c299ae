package forecast

import (
	"math"
	"testing"
	"time"

	"github.com/quernmr/quern/scheduler"
)

// TestLoad: jobs that end at a steady rate are expected to go on, and after a while without jobs none is.
func TestLoad(t *testing.T) {
	var l Load
	now := time.Duration(0)
	const every, maps, reduces = 10 * second, 30 * second, 100 * second
	for now < 2*time.Hour {
		now += every
		l.AddJob(now, 40*second, [2]time.Duration{maps, reduces})
	}
	if l.Life != 40*second {
		t.Errorf("jobs take %v", l.Life)
	}
	for phase, each := range [2]time.Duration{maps, reduces} {
		want := 500 * each.Seconds() / every.Seconds()
		m := l.during(now, 500, phase, 1e6, scheduler.LaterShare)
		if m.mean < 0.85*want || m.mean > 1.05*want {
			t.Errorf("phase %d: in 500 s jobs bring %.0f slot-seconds, want about %.0f", phase, m.mean, want)
		}
		// 50 jobs of about equal size, and each comes or not.
		if relative := math.Sqrt(m.variance) / m.mean; relative < 0.1 || relative > 0.25 {
			t.Errorf("phase %d: with a relative error of %.2f", phase, relative)
		}
	}
	if m := l.during(now, 500, Map, 1e6, scheduler.LaterWait); m.mean != 0 {
		t.Errorf("jobs that wait for others bring %v", m.mean)
	}
	if m := l.during(now, 500, Reduce, 10, scheduler.LaterShorter); m.mean != 0 {
		t.Errorf("longer jobs bring %v before a short one", m.mean)
	}
	if m := l.during(now+2*time.Hour, 500, Map, 1e6, scheduler.LaterShare); m.mean > 10 {
		t.Errorf("two hours after the last job, jobs bring %v", m.mean)
	}
	if l.at != now {
		t.Error("a question has changed the measurement")
	}
}

// TestLater: with load, a job with waiting tasks ends later, and its range is wider; a job that has all its slots ends
// when it did.
func TestLater(t *testing.T) {
	c := cluster()
	for range 30 {
		c.Load.AddJob(c.Now, 20*second, [2]time.Duration{40 * second, 0})
	}
	quiet := cluster()
	running := job(1, 4, 0)
	running.Phases[Map].Running, running.Phases[Map].Ages = 4, make([]time.Duration, 4)
	for _, j := range []Job{job(1, 80, 0), running} {
		waits := j.Phases[Map].Running == 0
		with, without := predictOne(c, j), predictOne(quiet, j)
		if later := with.End > without.End; later != waits {
			t.Errorf("%d tasks wait: with load the job ends at %v, without at %v", j.Phases[Map].TasksLeft-j.Phases[Map].Running, with.End, without.End)
		}
		if waits && relativeWidth(&with, c.Now) <= relativeWidth(&without, c.Now) {
			t.Error("load does not widen the range")
		}
	}
	c.Later = scheduler.LaterWait
	if e := predictOne(c, job(1, 80, 0)); e.End != predictOne(quiet, job(1, 80, 0)).End {
		t.Error("later jobs delay a job for which they wait")
	}
}
