package core

import (
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/profiles"
	"github.com/quernmr/quern/wire"
)

// What the last job of a name has shown is known of jobs that ended under this leader.
// Of others it is read from the job's history, which a job does not wait for.

// maxProfiled bounds the trackers of all profiles together.
const maxProfiled = 200_000

// recall has a job begin with what the last one of its name has shown.
func (l *Live) loadProfile(j *job) {
	name := j.facts.Name()
	if j.profile = l.profiles.Of(name); j.profile != nil || !l.c.cfg.History || l.profiles.Loading(name) {
		return
	}
	for f := range l.facts.Latest() {
		if f.Name() != name || f.End().Outcome != wire.Succeeded {
			continue
		}
		l.profiles.Load(name)
		id, ended := l.facts.ID(f.N()), time.UnixMilli(f.Submission().At()+f.End().Elapsed)
		l.c.emit(LoadHistory{Epoch: l.epoch, Name: name, Job: id, Files: profiles.Files(l.facts.Boot().Staging, id, ended)})
		return
	}
}

// historyLoaded has jobs of the name go by it, or by one of them that has ended
// meanwhile. Without a history they are as new.
func (l *Live) historyLoaded(r HistoryLoaded) {
	if r.Epoch != l.epoch || !l.profiles.Loaded(r.Name) {
		return
	}
	known := l.profiles.Of(r.Name)
	if known == nil && r.Err == nil && r.Profile != nil {
		known = r.Profile
		l.profiles.Keep(r.Name, known)
		l.assign.LearnFirst(known.Reads)
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

// remember keeps what a job that has succeeded has shown, unless this leader has
// seen too little of it.
func (l *Live) keepProfile(j *job) {
	if j.facts.End().Outcome != wire.Succeeded || 2*j.measures.Phases[mapPhase].All.Tasks < len(j.maps) {
		return
	}
	l.profiles.Keep(j.facts.Name(), &history.Profile{
		Job: j.id, Phases: [2]history.Sums{l.sums(j, mapPhase), l.sums(j, reducePhase)}, Read: j.tally.read, Shuffled: j.outputs.bytes,
		Elapsed: time.Duration(j.facts.End().Elapsed) * time.Millisecond, Reads: j.measures.Reads,
	})
}
