package pages

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

const (
	slotsSpan = 10 * time.Minute
	maxLayers = 20 // jobs with a colour in a chart; the others are one layer
)

// slotsOf draws the slots of a phase over time by job: above the line as they were used, below it as the plan
// had and has them. nil: there is nothing to draw. Complexity: attempts times columns at worst.
func slotsOf(phase string, slots int, recent *web.Recent, plans []web.Explanation, now time.Time) *stack {
	begin, end, forecast := now, now, now
	for _, of := range recent.Items {
		for i := range of.Attempts {
			if a := &of.Attempts[i]; phaseOf(a.ID) == phase && !a.Began.IsZero() {
				begin = earlier(begin, a.Began)
			}
		}
	}
	begin = later(begin, later(now.Add(-slotsSpan), recent.Since))
	for i := range plans {
		forecast = later(forecast, phaseEnd(&plans[i], phase))
	}
	// The forecast gets at most half of the width.
	end = earlier(forecast, now.Add(max(now.Sub(begin), time.Minute)))
	if !end.After(begin) {
		return nil
	}
	s := &stack{Title: phase + " slots", Axis: axisOf(begin, end), Limit: slots, Mirrored: true}
	s.Now = s.Axis.at(now)
	jobs := make(map[string]*layer)
	of := func(job, name string) *layer {
		l := jobs[job]
		if l == nil {
			l = &layer{Name: job, Link: "/jobs/" + job, Class: fill(job), Hatch: hatch(job)}
			jobs[job] = l
		}
		if name != "" {
			l.Name = name
		}
		return l
	}
	for _, r := range recent.Items {
		for i := range r.Attempts {
			if a := &r.Attempts[i]; phaseOf(a.ID) == phase {
				l := of(r.Job, "")
				l.up.add(&s.Axis, a.Began, earlier(a.Began.Add(millis(a.TookMillis)), now), 1)
				if running(a) {
					l.Now++
				}
			}
		}
	}
	for i := range plans {
		x := &plans[i]
		for k := range x.Phases {
			if p := &x.Phases[k]; p.Phase == phase && p.Target > 0 && p.Done < p.Tasks {
				l := of(x.Job, x.Name)
				l.Planned += p.Target
				l.down.add(&s.Axis, now, phaseEnd(x, phase), float64(p.Target))
			}
		}
	}
	s.setLayers(jobs)
	if len(s.Layers) == 0 {
		return nil
	}
	s.draw()
	return s
}

// setLayers takes the jobs with most slots, by id, and all others as one layer.
func (s *stack) setLayers(jobs map[string]*layer) {
	all := make([]*layer, 0, len(jobs))
	for _, l := range jobs {
		if l.up.sum()+l.down.sum() > 0 {
			l.Past = l.Now+l.Planned == 0
			all = append(all, l)
		}
	}
	slices.SortFunc(all, func(a, b *layer) int {
		return cmp.Or(cmp.Compare(b.Now+b.Planned, a.Now+a.Planned), cmp.Compare(b.up.sum(), a.up.sum()), cmp.Compare(a.Link, b.Link))
	})
	shown := min(len(all), maxLayers)
	rest := layer{Name: fmt.Sprintf("%d other jobs", len(all)-shown), Class: "other"}
	for _, l := range all[shown:] {
		rest.Now, rest.Planned = rest.Now+l.Now, rest.Planned+l.Planned
		rest.up.sumUp(&l.up)
		rest.down.sumUp(&l.down)
	}
	slices.SortFunc(all[:shown], func(a, b *layer) int {
		return cmp.Or(cmp.Compare(len(a.Link), len(b.Link)), cmp.Compare(a.Link, b.Link))
	})
	for _, l := range all[:shown] {
		s.Layers = append(s.Layers, *l)
	}
	if len(all) > shown {
		s.Layers = append(s.Layers, rest)
	}
}

// phaseEnd is the likely end of a phase that has planned slots; zero: there is none.
func phaseEnd(x *web.Explanation, phase string) time.Time {
	for i := range x.Phases {
		if p := &x.Phases[i]; p.Phase == phase && p.Target > 0 && p.Done < p.Tasks {
			if p.End.IsZero() {
				return x.End
			}
			return p.End
		}
	}
	return time.Time{}
}

// attemptsOverTime draws the running attempts of a job: maps, reduces, and those that came to nothing. The axis is
// given; nil: around the attempts.
func attemptsOverTime(attempts []web.Attempt, a *axis) *stack {
	var begin, end time.Time
	for i := range attempts {
		if x := &attempts[i]; phaseOf(x.ID) != "" && !x.Began.IsZero() {
			if begin.IsZero() || x.Began.Before(begin) {
				begin = x.Began
			}
			end = later(end, x.Began.Add(millis(x.TookMillis)))
		}
	}
	if !end.After(begin) {
		return nil
	}
	if a == nil {
		own := axisOf(begin, end)
		a = &own
	}
	s := &stack{Title: "Running attempts", Axis: *a, Now: 1, Layers: []layer{{Name: "maps", Class: "map"}, {Name: "reduces", Class: "reduce"}, {Name: "failed or killed", Class: "lost"}}}
	for i := range attempts {
		x := &attempts[i]
		kind := map[string]int{"map": 0, "reduce": 1}[phaseOf(x.ID)]
		switch {
		case phaseOf(x.ID) == "" || x.Began.IsZero():
			continue
		case x.State == "failed" || x.State == "killed":
			kind = 2
		}
		s.Layers[kind].up.add(a, x.Began, x.Began.Add(millis(x.TookMillis)), 1)
		if running(x) {
			s.Layers[kind].Now++
		}
	}
	s.Layers = slices.DeleteFunc(s.Layers, func(l layer) bool { return l.up.sum() == 0 })
	s.draw()
	return s
}
