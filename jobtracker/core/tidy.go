package core

import "time"

// firstTidy is how long after taking office the staging directory is tidied first.
const firstTidy = time.Minute

// tidy has the staging directory tidied when that is due.
func (l *Live) tidy() {
	if l.now < l.tidyDue {
		return
	}
	l.tidyDue = never
	t := Tidy{
		Epoch: l.epoch, Cluster: l.facts.boot.Cluster,
		Submissions: make(map[string]bool), Programs: make(map[string]bool),
	}
	for key, s := range l.facts.submissions {
		t.Submissions[key] = true
		if s.body != nil && s.body.Program.Hash != "" {
			t.Programs[s.body.Program.Hash] = true
		}
	}
	l.c.emit(t)
}

func (l *Live) tidied(r Tidied) {
	if r.Epoch == l.epoch {
		l.tidyDue = l.now + l.c.cfg.Tidy
	}
}
