package core

import (
	"slices"
	"time"

	"github.com/quernmr/quern/history"
	"github.com/quernmr/quern/jobtracker/core/facts"
	"github.com/quernmr/quern/wire"
)

// What the last job of a name has shown is known of jobs that ended in this office.
// Of others it is read from the job's history, which a job does not wait for.

// maxProfiled bounds the trackers of all profiles together.
const maxProfiled = 200_000

// profiles are by jobs' names.
type profiles struct {
	known   map[string]*history.Profile
	loading map[string]bool
	size    int // trackers in known
}

// recall has a job begin with what the last one of its name has shown.
func (l *Live) recall(j *job) {
	name := j.facts.Name()
	if j.profile = l.profiles.known[name]; j.profile != nil || !l.c.cfg.History || l.profiles.loading[name] {
		return
	}
	for f := range l.facts.Latest() {
		if f.Name() != name || f.End().Outcome != wire.Succeeded {
			continue
		}
		l.profiles.loading[name] = true
		l.c.emit(LoadHistory{Epoch: l.epoch, Name: name, Job: l.facts.ID(f.N()), Files: l.historyFiles(f)})
		return
	}
}

// historyFiles is where the history of an ended job may be. It is named by the day
// on which the job ended by the clock of the leader then, perhaps around midnight.
func (l *Live) historyFiles(f *facts.Job) []string {
	at := time.UnixMilli(f.Submission().At() + f.End().Elapsed)
	var files []string
	for _, off := range []time.Duration{0, -time.Hour, time.Hour} {
		if name := history.Name(l.facts.Boot().Staging, at.Add(off), l.facts.ID(f.N())); !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	return files
}

// historyLoaded has jobs of the name go by it, or by one of them that has ended
// meanwhile. Without a history they are as new.
func (l *Live) historyLoaded(r HistoryLoaded) {
	if r.Epoch != l.epoch || !l.profiles.loading[r.Name] {
		return
	}
	delete(l.profiles.loading, r.Name)
	known := l.profiles.known[r.Name]
	if known == nil && r.Err == nil && r.Profile != nil {
		known = r.Profile
		l.profiles.keep(r.Name, known)
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
		l.phases[i].begun(l.now)
	}
}

// remember keeps what a job that has succeeded has shown, unless this leader has
// seen too little of it.
func (l *Live) remember(j *job) {
	if j.facts.End().Outcome != wire.Succeeded || 2*j.measures.Phases[mapPhase].All.Tasks < len(j.maps) {
		return
	}
	l.profiles.keep(j.facts.Name(), &history.Profile{
		Job: j.id, Phases: [2]history.Sums{l.sums(j, mapPhase), l.sums(j, reducePhase)}, Read: j.tally.read, Shuffled: j.outputs.bytes,
		Elapsed: time.Duration(j.facts.End().Elapsed) * time.Millisecond, Reads: j.measures.Reads,
	})
}

// keep puts a profile in the place of an earlier one. When there are too many, those
// of the oldest jobs go.
func (p *profiles) keep(name string, x *history.Profile) {
	p.drop(name)
	p.known[name] = x
	p.size += profileSize(x)
	for len(p.known) > facts.KeptJobs || p.size > maxProfiled && len(p.known) > 1 {
		oldest := ""
		for other, y := range p.known {
			if oldest == "" || y.Job.Compare(p.known[oldest].Job) < 0 {
				oldest = other
			}
		}
		p.drop(oldest)
	}
}

func (p *profiles) drop(name string) {
	if old := p.known[name]; old != nil {
		p.size -= profileSize(old)
		delete(p.known, name)
	}
}

func profileSize(p *history.Profile) int {
	return 1 + len(p.Phases[mapPhase].Trackers) + len(p.Phases[reducePhase].Trackers)
}
