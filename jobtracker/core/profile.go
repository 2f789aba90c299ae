package core

import (
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/profiles"
	"github.com/quernmr/quern/wire"
)

// maxProfiled bounds the total number of trackers in all profiles.
const maxProfiled = 200_000

// loadProfile gives a job the profile of the last job of its name: from memory if that job
// ended under this leader, else from its history. The job does not wait for it.
func (l *Live) loadProfile(j *job) {
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
		l.c.emit(LoadHistory{Epoch: l.epoch, Name: name, Job: id, Files: profiles.HistoryFiles(l.facts.Boot().Staging, id, ended)})
		return
	}
}

// historyLoaded gives a loaded profile to jobs of its name. The profile of a job that has ended
// since takes precedence. Without a history the jobs have none.
func (l *Live) historyLoaded(r HistoryLoaded) {
	if r.Epoch != l.epoch || !l.profiles.EndLoad(r.Name) {
		return
	}
	known := l.profiles.Get(r.Name)
	if known == nil && r.Err == nil && r.Profile != nil {
		known = r.Profile
		l.profiles.Put(r.Name, known)
		l.assign.AddEarlierReads(known.Reads)
	}
	if known == nil {
		return
	}
	for _, j := range l.order {
		if j.facts.Name() == r.Name && j.profile == nil {
			j.profile = known
		}
	}
	for i := range l.phases {
		l.phases[i].planNow(l.now)
	}
}

// keepProfile keeps the profile of a job that succeeded, unless this leader measured less than
// half of its maps.
func (l *Live) keepProfile(j *job) {
	if j.facts.End().Outcome != wire.Succeeded || 2*j.measures.Phases[mapPhase].All.Tasks < len(j.maps) {
		return
	}
	l.profiles.Put(j.facts.Name(), &history.Profile{
		Job: j.id, Phases: [2]history.Sums{l.sums(j, mapPhase), l.sums(j, reducePhase)}, Read: j.tally.read, Shuffled: j.outputs.bytes,
		Elapsed: time.Duration(j.facts.End().Elapsed) * time.Millisecond, Reads: j.measures.Reads,
	})
}
