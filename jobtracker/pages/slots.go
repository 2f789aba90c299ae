package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

const maxLayers = 20 // jobs with a colour in a chart; the others are one layer

// slotsOf draws the slots of a phase over time by job: above the line as they were used, below it as the plan
// had and has them. names has the names of jobs. nil: there is nothing to draw. Complexity: samples times columns at worst.
func slotsOf(past *web.PlannedPhase, plans []web.Explanation, names map[string]string, now time.Time) *stack {
	begin, forecast := now, now
	for i, at := range past.Times {
		if begin = at; used(past, i) { // idle slots before it have no place
			break
		}
	}
	for i := range plans {
		forecast = later(forecast, phaseEnd(&plans[i], past.Phase))
	}
	// The forecast gets at most half of the width.
	end := earlier(forecast, now.Add(max(now.Sub(begin), time.Minute)))
	if !end.After(begin) {
		return nil
	}
	s := &stack{Title: strings.ToUpper(past.Phase[:1]) + past.Phase[1:] + " slots", Axis: axisOf(begin, end), Mirrored: true}
	s.Now = s.Axis.at(now)
	if n := len(past.Slots); n > 0 {
		s.Limit = past.Slots[n-1]
	}
	jobs := make(map[string]*layer)
	of := func(job string) *layer {
		l := jobs[job]
		if l == nil {
			l = &layer{Name: cmp.Or(names[job], job), Link: "/jobs/" + job, Class: fill(job), Hatch: hatch(job)}
			jobs[job] = l
		}
		return l
	}
	for i := range past.Jobs {
		of(past.Jobs[i].Job).addPast(s, past.Times, past.Jobs[i].Used, past.Jobs[i].Planned, now)
	}
	for i := range plans {
		x := &plans[i]
		for k := range x.Phases {
			if p := &x.Phases[k]; p.Phase == past.Phase && p.Target > 0 && p.Done < p.Tasks {
				l := of(x.Job)
				l.Planned = p.Target
				l.down.add(&s.Axis, now, phaseEnd(x, past.Phase), float64(p.Target))
			}
		}
	}
	s.setLayers(jobs)
	others := layer{Name: "jobs that you may not see", Class: "other"}
	if others.addPast(s, past.Times, past.Others.Used, past.Others.Planned, now); others.up.sum()+others.down.sum() > 0 {
		s.Layers = append(s.Layers, others)
	}
	if len(s.Layers) == 0 {
		return nil
	}
	s.draw()
	return s
}

// used reports whether a sample has slots of jobs.
func used(p *web.PlannedPhase, sample int) bool {
	some := p.Others.Used[sample]+p.Others.Planned[sample] > 0
	for i := range p.Jobs {
		some = some || p.Jobs[i].Used[sample]+p.Jobs[i].Planned[sample] > 0
	}
	return some
}

// addPast adds samples. Each holds until the next one, and the last one until now.
func (l *layer) addPast(s *stack, times []time.Time, used, planned []int, now time.Time) {
	for i, from := range times {
		to := now
		if i+1 < len(times) {
			to = times[i+1]
		}
		l.up.add(&s.Axis, from, to, float64(used[i]))
		l.down.add(&s.Axis, from, to, float64(planned[i]))
		l.Now, l.Planned = used[i], planned[i]
	}
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
