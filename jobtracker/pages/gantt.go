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

// ganttOf draws a phase. Complexity: attempts times columns at worst.
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
	columns := make(map[string][]int)
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

// at is the time of the middle of a column.
func (g *gantt) at(column int) time.Time {
	return g.Begin.Add(g.End.Sub(g.Begin) * time.Duration(2*column+1) / (2 * ganttSteps))
}

func (g *gantt) x(t time.Time) int {
	return int(1000 * float64(t.Sub(g.Begin)) / float64(g.End.Sub(g.Begin)))
}

func (g *gantt) addActual(columns map[string][]int, recent *web.Recent, now time.Time) {
	for _, of := range recent.Items {
		for i := range of.Attempts {
			a := &of.Attempts[i]
			if phaseOf(a.ID) != g.Phase {
				continue
			}
			if running(a) {
				g.Used++
			}
			end := a.Began.Add(millis(a.TookMillis))
			for c := g.column(a.Began); c < ganttSteps && g.at(c).Before(end) && !g.at(c).After(now); c++ {
				add(columns, of.Job, c, 1)
			}
		}
	}
}

// column is the first column with its middle at t or later.
func (g *gantt) column(t time.Time) int {
	c := max(0, int(int64(ganttSteps)*int64(t.Sub(g.Begin))/int64(g.End.Sub(g.Begin)))-1)
	for c < ganttSteps && g.at(c).Before(t) {
		c++
	}
	return c
}

func (g *gantt) addPlan(columns map[string][]int, plans []web.Explanation, now time.Time) {
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
			for c := g.column(now); c < ganttSteps && g.at(c).Before(end); c++ {
				add(columns, x.Job, c, x.Phases[k].Target)
			}
		}
	}
}

func add(columns map[string][]int, job string, column, slots int) {
	if columns[job] == nil {
		columns[job] = make([]int, ganttSteps)
	}
	columns[job][column] += slots
}

// draw stacks the jobs by id, the oldest below.
func (g *gantt) draw(columns map[string][]int, now time.Time) {
	jobs := make([]string, 0, len(columns))
	for job := range columns {
		jobs = append(jobs, job)
	}
	slices.SortFunc(jobs, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	most := g.Slots
	for c := range ganttSteps {
		all := 0
		for _, job := range jobs {
			all += columns[job][c]
		}
		most = max(most, all)
	}
	if most == 0 {
		return
	}
	y := func(slots int) int { return ganttHeight - slots*(ganttHeight-10)/most }
	g.Now, g.Line = g.x(now), y(g.Slots)
	below := make([]int, ganttSteps)
	for _, job := range jobs {
		g.Areas = append(g.Areas, area{Job: job, Path: outline(columns[job], below, y)})
		for c, n := range columns[job] {
			below[c] += n
		}
	}
}

// outline is the path around the columns of a job on top of others: each run of equal columns is a box.
func outline(of, below []int, y func(int) int) string {
	var path strings.Builder
	for c := 0; c < ganttSteps; {
		from := c
		for c++; c < ganttSteps && of[c] == of[from] && below[c] == below[from]; c++ {
		}
		if of[from] > 0 {
			fmt.Fprintf(&path, "M%d %dH%dV%dH%dZ", from*1000/ganttSteps, y(below[from]), c*1000/ganttSteps, y(below[from]+of[from]), from*1000/ganttSteps)
		}
	}
	return path.String()
}
