package sim

import (
	"testing"
	"time"

	"github.com/quernmr/quern/jobtracker/core"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/jobtracker/core/quota"
	"github.com/quernmr/quern/wire"
)

// slotUse counts the slots that run attempts, sampled each second while there are enough jobs.
type slotUse struct {
	used, all [2]int // slots, for maps and for reduces, in all samples
	most      int    // unfinished jobs
	kept      int    // jobs in the facts, at most
	seconds   int    // samples
}

func (u *slotUse) sample(w *world, enough int) {
	var leader *core.Core
	for _, n := range w.jts {
		if n.up && n.core.IsLeader() {
			leader = n.core
		}
	}
	if leader == nil {
		return
	}
	unfinished := leader.Cluster(w.now).Jobs
	u.most = max(u.most, unfinished)
	u.kept = max(u.kept, countJobs(w, leader))
	if unfinished < enough {
		return
	}
	u.seconds++
	for _, t := range w.tts {
		for i := range u.all {
			u.all[i] += t.slots[i]
		}
		for _, p := range t.workers {
			if p.run == nil {
				continue
			}
			switch p.run.Attempt.Task.Kind {
			case wire.Map:
				u.used[0]++
			case wire.Reduce:
				u.used[1]++
			}
		}
	}
}

// TestTooManyJobs: of 10,000 jobs that are submitted within a minute to four task trackers, all that
// are accepted succeed, and the others are told. The leader keeps a bounded number of jobs. In
// samples, while there are as many unfinished jobs as may run, at most 5 % of the map slots run no
// attempt; the jobs need more time in map slots than in reduce slots. Without second attempts every
// used slot does useful work.
func TestTooManyJobs(t *testing.T) {
	const jobs, limit, running = 10_000, 150, 24
	withoutRace(t)
	for _, speculative := range []string{"true", "false"} {
		t.Run("speculative="+speculative, func(t *testing.T) {
			var use slotUse
			var last *world
			f := Fleet{
				Seed: 1, Trackers: 4, Slots: [2]int{2, 1}, Jobs: jobs, Every: time.Minute / jobs, Maps: 4, Reduces: 1, AttemptTime: 5 * time.Second,
				Properties: map[string]string{"mapreduce.map.speculative": speculative, "mapreduce.reduce.speculative": speculative},
				Limits:     core.Limits{Limits: quota.Limits{Jobs: quota.Bound{All: limit}, Begun: quota.Bound{All: running}}},
			}
			f.every = func(w *world) {
				use.sample(w, running)
				last = w
			}
			r := RunFleet(f)
			told := 0
			for _, c := range last.clients {
				if c.told {
					told++
				}
			}
			accepted := r.Outcomes[wire.Succeeded]
			part := func(i int) float64 { return float64(use.used[i]) / float64(max(use.all[i], 1)) }
			t.Logf("%d accepted, %d told, at most %d unfinished and %d kept; in %d samples %.1f %% of the map slots and %.1f %% of the reduce slots are used; %v of virtual time, %d Steps",
				accepted, told, use.most, use.kept, use.seconds, 100*part(0), 100*part(1), r.Elapsed, r.Steps)
			if r.Violation != "" || accepted+told != jobs || accepted < limit || told < jobs/2 {
				t.Errorf("%.500s; %d accepted jobs have succeeded and %d were told, of %d; outcomes %v", r.Violation, accepted, told, jobs, r.Outcomes)
			}
			if use.most > limit || use.kept > limit+facts.MaxEndedJobs {
				t.Errorf("%d unfinished jobs, at most %d; %d kept", use.most, limit, use.kept)
			}
			if use.seconds < 60 || part(0) < 0.95 {
				t.Errorf("in %d samples %.1f %% of the map slots are used", use.seconds, 100*part(0))
			}
		})
	}
}

// countJobs counts the jobs that the leader's facts have.
func countJobs(w *world, leader *core.Core) int {
	n := 0
	for after := (wire.JobID{}); ; {
		list, next, err := leader.Statuses(w.now, core.Query{After: after})
		w.must(err)
		if n += len(list); next == (wire.JobID{}) {
			return n
		}
		after = next
	}
}
