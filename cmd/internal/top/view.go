package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/jobtracker/web"
	"github.com/quernmr/quern/wire"
)

// Colors of a terminal, as parameters of its escape sequence.
const (
	plain  = ""
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	invert = "7"
)

func (m Model) paint(color, text string) string {
	if color == plain || !m.colors {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[m"
}

// Text returns the screen, with colors.
func (m Model) Text() string {
	lines := m.head()
	foot := m.foot()
	room := max(m.height-len(lines)-1, 0)
	lines = append(lines, m.body(room)...)
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	lines = append(lines[:max(min(len(lines), m.height-1), 0)], foot)
	return strings.Join(lines, "\n")
}

// head returns the lines about the cluster.
func (m Model) head() []string {
	c := m.cluster
	if c == nil {
		return []string{m.line(bold, cmp.Or(m.trouble, "connecting …"))}
	}
	leader := fmt.Sprintf("%s leads, epoch %d", c.Leader, c.Epoch)
	if !c.IsLeader {
		leader = "no leader"
	}
	lines := []string{m.line(bold, fmt.Sprintf("%s; %s %s, delay %s; %s", client.OneLine(leader), c.Scheduling.Scheduler, c.Scheduling.Metric, c.Scheduling.Delay, m.counts()))}
	var maps, mapSlots, reduces, reduceSlots, out int
	for i := range c.Trackers {
		t := &c.Trackers[i]
		maps, mapSlots, reduces, reduceSlots = maps+t.Maps, mapSlots+t.MapSlots, reduces+t.Reduces, reduceSlots+t.ReduceSlots
		if stateOf(c, t) != "good" {
			out++
		}
	}
	lines = append(lines, m.line(plain, "maps    "+m.bar(maps, mapSlots)), m.line(plain, "reduces "+m.bar(reduces, reduceSlots)))
	trackers := fmt.Sprintf("task trackers: %d, of them %d not in use; %d lost", len(c.Trackers), out, len(c.Lost))
	color := plain
	if out > 0 {
		color = yellow
	}
	if m.trouble != "" {
		trackers, color = m.trouble, red
	}
	return append(lines, m.line(color, trackers))
}

// counts says how many jobs there are by state.
func (m Model) counts() string {
	byState := make(map[string]int)
	for _, j := range m.jobs {
		if !isEnded(j.State) {
			byState[j.State]++
		}
	}
	var parts []string
	for s := wire.Waiting; s <= wire.Killed; s++ {
		if n := byState[s.String()]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", n, s))
		}
	}
	return "jobs: " + cmp.Or(strings.Join(parts, ", "), "none")
}

// bar draws how many slots are used.
func (m Model) bar(used, all int) string {
	text := fmt.Sprintf(" %d of %d slots", used, all)
	width := min(m.width-8-len(text)-2, 40)
	if width < 4 || all == 0 {
		return text[1:]
	}
	full := min(used*width/all, width)
	return "[" + strings.Repeat("#", full) + strings.Repeat("-", width-full) + "]" + text
}

// foot returns the last line: the filter, or the keys.
func (m Model) foot() string {
	if m.typing {
		return m.line(invert, "filter: "+m.filter+"_   enter keeps it, esc drops it")
	}
	text := ""
	if m.filter != "" {
		text = "filter: " + m.filter + "  "
	}
	text += "q quit  s sort: " + orders()[m.order].name
	if m.reversed {
		text += " reversed"
	}
	text += "  r reverse  / filter"
	text += map[bool]string{true: "  e hide ended", false: "  e show ended"}[m.ended]
	text += map[bool]string{true: "  t jobs", false: "  t trackers"}[m.trackers]
	return m.line(invert, text)
}

// line cuts a line at the width of the terminal, and colors it.
func (m Model) line(color, text string) string {
	return m.paint(color, runewidth.Truncate(client.OneLine(text), m.width, ""))
}

// column is a column of a table. Those with the highest drop are left out first on a narrow terminal.
type column struct {
	title string
	drop  int
	cells []cell
}

type cell struct{ text, color string }

// body returns the table of jobs, or of task trackers, with a number of lines at most.
func (m Model) body(room int) []string {
	table := m.jobTable
	if m.trackers {
		table = m.trackerTable
	}
	columns := table()
	rows := len(columns[0].cells)
	first := min(max(min(m.first, rows-(room-1)), 0), rows)
	for i := range columns {
		columns[i].cells = columns[i].cells[first:min(max(first+room-1, first), rows)]
	}
	columns = m.fit(columns)
	lines := []string{m.row(columns, func(c *column) cell { return cell{c.title, bold} })}
	for i := range columns[0].cells {
		lines = append(lines, m.row(columns, func(c *column) cell { return c.cells[i] }))
	}
	if rows == 0 && room > 1 {
		lines = append(lines, m.line(plain, "(none)"))
	}
	return lines[:min(len(lines), room)]
}

func (c *column) width() int {
	width := runewidth.StringWidth(c.title)
	for _, x := range c.cells {
		width = max(width, runewidth.StringWidth(x.text))
	}
	return width
}

// fit leaves out columns until the others fit, but not the first and the last one, which is cut.
func (m Model) fit(columns []column) []column {
	for {
		width, worst := 0, -1
		for i := range columns {
			width += columns[i].width() + 2
			if columns[i].drop > 0 && (worst < 0 || columns[i].drop > columns[worst].drop) {
				worst = i
			}
		}
		last := &columns[len(columns)-1]
		if width-2-max(last.width()-12, 0) <= m.width || worst < 0 {
			return columns
		}
		columns = slices.Delete(columns, worst, worst+1)
	}
}

// row returns a line of a table, cut at the width of the terminal.
func (m Model) row(columns []column, of func(c *column) cell) string {
	var b strings.Builder
	left := m.width
	for i := range columns {
		x := of(&columns[i])
		text := runewidth.Truncate(x.text, left, "")
		left -= runewidth.StringWidth(text)
		b.WriteString(m.paint(x.color, text))
		if i < len(columns)-1 {
			gap := min(columns[i].width()+2-runewidth.StringWidth(text), left)
			left -= gap
			b.WriteString(strings.Repeat(" ", gap))
		}
	}
	return b.String()
}

func (m Model) jobTable() []column {
	columns := []column{{title: "JOB"}, {title: "STATE", drop: 1}, {title: "POOL", drop: 5}, {title: "MAPS", drop: 2}, {title: "REDUCES", drop: 3}, {title: "ELAPSED", drop: 6}, {title: "ENDS", drop: 0}, {title: "OWNER", drop: 4}, {title: "NAME"}}
	for _, j := range m.shown() {
		state, ends, color := j.State, "-", plain
		if j.Suspended {
			state += ", suspended"
		}
		elapsed := time.Duration(j.ElapsedMillis) * time.Millisecond
		if !isEnded(j.State) {
			elapsed += max(m.now.Sub(j.at), 0)
		}
		if s, err := j.Status(); err == nil && !isEnded(j.State) {
			s.Elapsed = elapsed
			ends = cmp.Or(client.PredictionText(&s), "-")
			if client.MissText(&s) != "" { // it says more, and mrsubmit status shows it
				ends, color = ends+", late", red
			}
		}
		name := j.Name
		if j.Hidden {
			name = "(hidden)"
		}
		for i, x := range []cell{
			{j.ID, plain}, {state, jobColor(j.State)}, {j.Settings.Pool, plain}, {tasks(j.Maps), plain}, {tasks(j.Reduces), plain},
			{client.Duration(elapsed.Truncate(time.Second)), plain}, {ends, color}, {cmp.Or(j.Owner, "-"), plain}, {name, plain},
		} {
			x.text = client.OneLine(x.text)
			columns[i].cells = append(columns[i].cells, x)
		}
	}
	return columns
}

func tasks(t web.Tasks) string {
	text := fmt.Sprintf("%d/%d", t.Done, t.Total)
	if t.Running > 0 {
		text += fmt.Sprintf(" +%d", t.Running)
	}
	return text
}

func jobColor(state string) string {
	switch state {
	case wire.Succeeded.String():
		return green
	case wire.Failed.String():
		return red
	case wire.Killed.String(), wire.Stopping.String():
		return yellow
	case wire.Running.String(), wire.Committing.String():
		return cyan
	}
	return plain
}

func (m Model) trackerTable() []column {
	columns := []column{{title: "TRACKER"}, {title: "HOST", drop: 2}, {title: "RACK", drop: 3}, {title: "MAPS"}, {title: "REDUCES", drop: 1}, {title: "STATE"}}
	if m.cluster == nil {
		return columns
	}
	for i := range m.cluster.Trackers {
		t := &m.cluster.Trackers[i]
		state, color := stateOf(m.cluster, t), green
		if state != "good" {
			color = yellow
		}
		for k, x := range []cell{
			{t.ID, plain}, {t.Host, plain}, {t.Rack, plain}, {fmt.Sprintf("%d/%d", t.Maps, t.MapSlots), plain}, {fmt.Sprintf("%d/%d", t.Reduces, t.ReduceSlots), plain}, {state, color},
		} {
			x.text = client.OneLine(x.text)
			columns[k].cells = append(columns[k].cells, x)
		}
	}
	return columns
}

// stateOf says in a word whether a task tracker gets work.
func stateOf(c *web.Cluster, t *web.Tracker) string {
	switch {
	case !t.Connected:
		return "not connected"
	case c.Drain(t.ID) != nil:
		return "draining"
	case t.Excluded != "" || c.OperatorExclusion(t.ID) != nil || c.LeaderExclusion(t.ID) != nil:
		return "excluded"
	case t.Trouble != "":
		return "trouble: " + t.Trouble
	}
	return "good"
}
