package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quernmr/quern/jobtracker/web"
)

// gantt shows the slots of a phase over time, stacked by job: left of now as they were, right of now as
// the plan has them. It is drawn in a box of 1000 by 200.
type gantt struct {
	Phase       string
	Slots       int // of the cluster
	Used        int // now
	Planned     int // now
	Begin, End  time.Time
	Now         int // x
	Line        int // y of all slots
	Areas       []area
	HasForecast bool
}

// area is the part of a job.
type area struct {
	Job           string
	Used, Planned int    // now
	Path          string // of SVG
}

const (
	ganttSpan   = 10 * time.Minute
	ganttSteps  = 200 // columns
	ganttHeight = 200
)

// ganttOf draws a phase; nil: there is nothing to draw. Complexity: attempts times columns at worst.
func ganttOf(phase string, slots int, recent *web.Recent, plans []web.Explanation, now time.Time) *gantt {
	g := &gantt{Phase: phase, Slots: slots, Begin: now, End: now}
	first := now.Add(-ganttSpan)
	if recent.Since.After(first) {
		first = recent.Since
	}
	for _, of := range recent.Items {
		for i := range of.Attempts {
			if a := &of.Attempts[i]; phaseOf(a.ID) == phase && a.Began.Before(g.Begin) {
				g.Begin = a.Began
			}
		}
	}
	if g.Begin.Before(first) {
		g.Begin = first
	}
	for i := range plans {
		if end := phaseEnd(&plans[i], phase); end.After(g.End) {
			g.End, g.HasForecast = end, true
		}
	}
	// The forecast gets at most two thirds of the width.
	if longest := now.Add(2 * max(now.Sub(g.Begin), time.Minute)); g.End.After(longest) {
		g.End = longest
	}
	if !g.End.After(g.Begin) {
		return nil
	}
	columns := make(map[string][]float64)
	g.addActual(columns, recent, now)
	g.addPlan(columns, plans, now)
	g.draw(columns, now)
	return g
}

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

func (g *gantt) x(t time.Time) int {
	return int(1000 * float64(t.Sub(g.Begin)) / float64(g.End.Sub(g.Begin)))
}

func (g *gantt) addActual(columns map[string][]float64, recent *web.Recent, now time.Time) {
	for _, of := range recent.Items {
		for i := range of.Attempts {
			a := &of.Attempts[i]
			if phaseOf(a.ID) != g.Phase {
				continue
			}
			if running(a) {
				g.Used++
			}
			g.add(columns, of.Job, a.Began, earlier(a.Began.Add(millis(a.TookMillis)), now), 1)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (g *gantt) addPlan(columns map[string][]float64, plans []web.Explanation, now time.Time) {
	for i := range plans {
		x := &plans[i]
		end := phaseEnd(x, g.Phase)
		if end.IsZero() {
			continue
		}
		for k := range x.Phases {
			if x.Phases[k].Phase != g.Phase {
				continue
			}
			g.Planned += x.Phases[k].Target
			g.add(columns, x.Job, now, end, x.Phases[k].Target)
		}
	}
}

// add adds slots that a job has from a time to another. A column has the average over its time.
func (g *gantt) add(columns map[string][]float64, job string, from, to time.Time, slots int) {
	if columns[job] == nil {
		columns[job] = make([]float64, ganttSteps)
	}
	width := float64(g.End.Sub(g.Begin)) / ganttSteps
	begin, end := float64(from.Sub(g.Begin))/width, float64(to.Sub(g.Begin))/width // in columns
	for c := max(0, int(begin)); c < ganttSteps && float64(c) < end; c++ {
		columns[job][c] += float64(slots) * (min(end, float64(c+1)) - max(begin, float64(c)))
	}
}

// draw stacks the jobs by id, the oldest below.
func (g *gantt) draw(columns map[string][]float64, now time.Time) {
	jobs := make([]string, 0, len(columns))
	for job := range columns {
		jobs = append(jobs, job)
	}
	slices.SortFunc(jobs, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	most := float64(g.Slots)
	for c := range ganttSteps {
		all := 0.0
		for _, job := range jobs {
			all += columns[job][c]
		}
		most = max(most, all)
	}
	if most == 0 {
		return
	}
	y := func(slots float64) int { return ganttHeight - int(slots*(ganttHeight-10)/most+0.5) }
	g.Now, g.Line = g.x(now), y(float64(g.Slots))
	below := make([]float64, ganttSteps)
	for _, job := range jobs {
		g.Areas = append(g.Areas, area{Job: job, Path: outline(columns[job], below, y)})
		for c, n := range columns[job] {
			below[c] += n
		}
	}
}

// outline is the path around the columns of a job on top of others: each run of equal columns is a box.
func outline(of, below []float64, y func(float64) int) string {
	var path strings.Builder
	for c := 0; c < ganttSteps; {
		from, low, high := c, y(below[c]), y(below[c]+of[c])
		for c++; c < ganttSteps && y(below[c]) == low && y(below[c]+of[c]) == high; c++ {
		}
		if high < low {
			fmt.Fprintf(&path, "M%d %dH%dV%dH%dZ", from*1000/ganttSteps, low, c*1000/ganttSteps, high, from*1000/ganttSteps)
		}
	}
	return path.String()
}
