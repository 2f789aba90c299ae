package pages

import "github.com/quernmr/quern/jobtracker/web"

// share is a part of a whole, with a class for its colour.
type share struct {
	Name, Class string
	Count       int
	Millis      int64
	From, Width float64 // in a bar of the whole
}

// uses names the uses of slots, and groups them by colour.
var uses = map[string][2]string{
	"start":       {"start of attempts, until their code runs", "start"},
	"read":        {"maps: reads of the input", "read"},
	"map":         {"maps: the rest", "map"},
	"shuffle":     {"reduces: wait for their partition", "shuffle"},
	"reduce":      {"reduces: the rest", "reduce"},
	"commit":      {"commits of output", "commit"},
	"failed":      {"failed attempts", "failed"},
	"killed":      {"killed attempts", "lost"},
	"speculative": {"speculative attempts that lost", "lost"},
	"rerun":       {"reruns after lost map output", "failed"},
	"lost":        {"attempts lost with their task tracker", "failed"},
	"gathering":   {"slots reserved while partitions are gathered", "shuffle"},
	"running":     {"attempts that run now", "now"},
}

// spent says what each slot-second of a job went to.
func spent(t *web.SlotTime) (all []share) {
	if t == nil || t.TotalMillis == 0 {
		return nil
	}
	from := 0.0
	for _, u := range t.Uses {
		name, ok := uses[u.Use]
		if !ok {
			name = [2]string{u.Use, "other"}
		}
		s := share{Name: name[0], Class: name[1], Count: u.Attempts, Millis: u.Millis, From: from, Width: part(u.Millis, t.TotalMillis)}
		all, from = append(all, s), from+s.Width
	}
	return all
}

// localities are the maps at each distance to their input, nearest first.
func localities(levels []web.LevelCount) (all []share, maps int) {
	from := 0.0
	for _, l := range levels {
		maps += l.Maps
	}
	for _, l := range levels {
		s := share{Name: l.Level, Class: l.Level, Count: l.Maps, From: from, Width: part(l.Maps, maps)}
		all, from = append(all, s), from+s.Width
	}
	return all, maps
}
