package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/quernmr/quern/jobtracker/pages/dag"
	"github.com/quernmr/quern/jobtracker/web"
)

// flowPage is what the page of a flow shows.
type flowPage struct {
	web.Flow
	Graph *graph
	Table jobTable
	Done  float64 // of its tasks, from 0 to 1
}

// graph draws the jobs of a flow, in pixels.
type graph struct {
	Wide, High int
	Nodes      []node
	Edges      []string // paths of SVG
}

// node is a job in a graph. X and Y are the left upper corner.
type node struct {
	jobRow
	X, Y    int
	Current bool // the page is about this job
}

// Sizes in a graph, in pixels.
const (
	nodeWide, nodeHigh = 190, 54
	gapWide, gapHigh   = 56, 18
	margin             = 4
)

func (h *handler) flow(r *http.Request) (any, error) {
	page := new(flowPage)
	if err := h.get(r, "/v1/flows/"+url.PathEscape(r.PathValue("id")), nil, &page.Flow); err != nil {
		return nil, err
	}
	rows := rowsOf(page.Items)
	page.Graph, page.Table = graphOf(rows, ""), tableOf(rows, h.now())
	done, total := 0, 0
	for i := range rows {
		done, total = done+rows[i].Maps.Done+rows[i].Reduces.Done, total+rows[i].Maps.Total+rows[i].Reduces.Total
	}
	page.Done = part(done, total)
	return page, nil
}

// Left says how long the flow still runs, by the prediction.
func (p *flowPage) Left() string { return leftOf(p.State, p.Prediction, p.ElapsedMillis) }

// Deadline is that of all its jobs, in milliseconds since the submission.
func (p *flowPage) Deadline() int64 {
	if len(p.Items) == 0 {
		return 0
	}
	return p.Items[0].Settings.DeadlineMillis
}

// graphOf lays out jobs from left to right, each after the jobs that it reads.
func graphOf(rows []jobRow, current string) *graph {
	place := make(map[string]int, len(rows))
	for i := range rows {
		place[rows[i].ID] = i
	}
	after := make([][]int, len(rows))
	for i := range rows {
		for _, id := range rows[i].After {
			if from, ok := place[id]; ok {
				after[i] = append(after[i], from)
			}
		}
	}
	l := dag.Lay(after)
	g := &graph{
		Wide: l.Layers*(nodeWide+gapWide) - gapWide + 2*margin,
		High: l.Height*(nodeHigh+gapHigh) - gapHigh + 2*margin,
	}
	x := func(p dag.Place) int { return margin + p.Layer*(nodeWide+gapWide) }
	y := func(p dag.Place) int { return margin + int(p.Row*(nodeHigh+gapHigh)) }
	for i, p := range l.Nodes {
		g.Nodes = append(g.Nodes, node{rows[i], x(p), y(p), rows[i].ID == current})
	}
	for _, e := range l.Edges {
		var path strings.Builder
		fromX, fromY := x(l.Nodes[e.From])+nodeWide, y(l.Nodes[e.From])+nodeHigh/2
		fmt.Fprintf(&path, "M%d %d", fromX, fromY)
		curve := func(toX, toY int) {
			fmt.Fprintf(&path, "C%d %d %d %d %d %d", fromX+gapWide/2, fromY, toX-gapWide/2, toY, toX, toY)
			fromX, fromY = toX, toY
		}
		for _, b := range e.Bends {
			curve(x(b), y(b)+nodeHigh/2)
			fromX += nodeWide
			fmt.Fprintf(&path, "H%d", fromX)
		}
		curve(x(l.Nodes[e.To]), y(l.Nodes[e.To])+nodeHigh/2)
		g.Edges = append(g.Edges, path.String())
	}
	return g
}

// Title is the name of the job, cut to the width of its box.
func (n *node) Title() string { return cut(n.Name, 24) }

// cut shortens a text to a number of characters.
func cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// DoneWide is the width of the part of the tasks that have ended.
func (n *node) DoneWide() int { return int(n.Done() * (nodeWide - 20)) }

// leftOf says how long a job or flow still runs, by its prediction.
func leftOf(state string, p *web.Prediction, elapsed int64) string {
	switch {
	case ended(state) || p == nil:
		return ""
	case p.LikelyMillis == 0:
		return p.Unknown
	}
	left := func(ms int64) string { return span(max(0, ms-elapsed)) }
	return fmt.Sprintf("%s (%s to %s)", left(p.LikelyMillis), left(p.EarliestMillis), left(p.LatestMillis))
}
