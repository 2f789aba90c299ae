package core

import "time"

// firstTidy is how long after taking office the staging directory is tidied first.
const firstTidy = time.Minute

// tidy has the staging directory tidied when that is due.
func (l *Live) tidy() {
	if l.now < l.due.tidy {
		return
	}
	l.due.tidy = never
	t := Tidy{
		Epoch: l.epoch, Cluster: l.facts.Boot().Cluster,
		Submissions: make(map[string]bool), Programs: make(map[string]bool),
	}
	for s := range l.facts.Submissions() {
		t.Submissions[s.Key()] = true
		if program := s.Program(); program != "" {
			t.Programs[program] = true
		}
	}
	l.c.emit(t)
}

func (l *Live) tidied(r Tidied) {
	if r.Epoch == l.epoch {
		l.due.tidy = l.now + l.c.cfg.Tidy
	}
}
