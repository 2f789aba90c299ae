package core

import (
	"cmp"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/profiles"
	"github.com/quernmr/quern/wire"
)

// maxProfiled is the maximum number of trackers in all profiles together.
const maxProfiled = 200_000

// loadProfile gives a job the profile of the last job with its name. If it is not in memory, it
// comes later, from the history of that job.
func (l *leader) loadProfile(j *job) {
	name := j.facts.Name()
	if j.profile = l.profiles.Get(name); j.profile != nil || !l.c.cfg.History || l.profiles.Loading(name) {
		return
	}
	for f := range l.facts.Latest() {
		if f.Name() != name || f.End().Outcome != wire.Succeeded {
			continue
		}
		l.profiles.BeginLoad(name)
		id, ended := l.facts.ID(f.N()), time.UnixMilli(f.Submission().At()+f.End().Elapsed)
		l.effect(LoadHistory{Epoch: l.epoch, JobName: name, Job: id, URLs: profiles.HistoryFiles(l.facts.Boot().Staging, id, ended)})
		return
	}
}

// historyLoaded gives a loaded profile to all jobs with its name. If another job with the name
// has ended since, they get its profile.
func (l *leader) historyLoaded(r HistoryLoaded) {
	if r.Epoch != l.epoch || !l.profiles.EndLoad(r.JobName) {
		return
	}
	profile := l.profiles.Get(r.JobName)
	if profile == nil && r.Err == nil && r.Profile != nil {
		profile = r.Profile
		l.profiles.Put(r.JobName, profile)
		l.assign.AddEarlierReads(profile.Reads)
	}
	if profile == nil {
		return
	}
	for _, j := range l.order {
		if j.facts.Name() == r.JobName && j.profile == nil {
			j.profile = profile
		}
	}
	for i := range l.phases {
		l.phases[i].planNow(l.now)
	}
}

// keepProfile keeps the profile of a job that succeeded, unless this leader measured less than
// half of its maps.
func (l *leader) keepProfile(j *job) {
	if j.facts.End().Outcome != wire.Succeeded || !j.measuredMost() {
		return
	}
	l.profiles.Put(j.facts.Name(), &history.Profile{
		Job: j.id, Phases: [2]history.Sums{l.trackerTimes(j, mapPhase), l.trackerTimes(j, reducePhase)}, Usual: l.usual(j),
		Read: j.tally.read, Shuffled: j.outputs.bytes,
		Elapsed: time.Duration(j.facts.End().Elapsed) * time.Millisecond, Reads: j.measures.Reads,
	})
}

// measuredMost reports whether this leader measured at least half of a job's maps.
func (j *job) measuredMost() bool { return 2*j.measures.Phases[mapPhase].All.Tasks >= len(j.maps) }

// usual is how long tasks of the job's name usually take, including this job.
func (l *leader) usual(j *job) (all [2]history.Usual) {
	if last := cmp.Or(l.profiles.Get(j.facts.Name()), j.profile); last != nil {
		all = last.Usual
	}
	if j.measuredMost() {
		bytes := j.bytesEach()
		for phase := range all {
			all[phase] = all[phase].After(j.measures.Phases[phase].Sum(), bytes[phase])
		}
	}
	return all
}

// bytesEach is how many bytes a task of each phase reads, as far as is known.
func (j *job) bytesEach() [2]float64 {
	return history.BytesEach(j.splits.input, max(0, j.facts.Maps()), j.shuffle().Total, j.facts.Reduces())
}
