// Command pagerank ranks pages by their links, until the ranks settle. A line of -input is a page, a tab,
// and the pages that it links to, with blanks between. A line of -output has a page, its rank, its rank
// before, and its links. The ranks of all pages add up to their number.
package main

import (
	"iter"
	"log"
	"math"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

func main() { mapreduce.Drive(drive, step) }

// The ranks have settled when they change by less than settled on average. Counters are whole numbers: they
// count parts of ranks, unit to a rank of 1.
const damping, settled, unit = 0.85, 1e-6, 1e9

// node is a page with its links. On its way to a page it is also a part of that page's rank.
type node struct {
	Rank, Before float64
	Links        string
}

type params struct {
	Pages  mapreduce.Dataset[string, node] // at first none: the pages are in -input
	Lost   float64                         // rank of pages without links, divided by the number of pages: all pages share it
	Output string
}

func drive(d *mapreduce.Driver) error {
	output, err := d.Output()
	if err != nil {
		return err
	}
	var p params
	for change := math.Inf(1); change >= settled; {
		next, err := step.Run(d, p)
		if err != nil {
			return err
		}
		n := unit * float64(next.Counter("pagerank", "pages"))
		change = float64(next.Counter("pagerank", "change")) / n
		log.Printf("the ranks changed by %.2g on average", change)
		p = params{Pages: next, Lost: float64(next.Counter("pagerank", "lost")) / n}
	}
	_, err = step.Run(d, params{p.Pages, p.Lost, output})
	return err
}

// step passes the rank of each page on to the pages that it links to.
var step = mapreduce.Define("step", func(job *mapreduce.Job, p params) (*mapreduce.Result[string, node], error) {
	job.Output = p.Output
	parts := mapreduce.Map(p.Pages.Input(), spread)
	if p.Pages.Path() == "" {
		parts = mapreduce.Map(mapreduce.KeyValues(), func(t *mapreduce.Task, line mapreduce.Pair[string, string], emit func(string, node)) error {
			return spread(t, mapreduce.PairOf(line.A, node{Rank: 1, Links: line.B}), emit)
		})
	}
	return mapreduce.Reduce(parts, func(t *mapreduce.Task, page string, vals iter.Seq[node], emit func(string, node)) error {
		now := node{Rank: 1 - damping + damping*p.Lost}
		for v := range vals {
			now = node{now.Rank + damping*v.Rank, now.Before + v.Before, now.Links + v.Links}
		}
		t.Counter("pagerank", "pages").Add(1)
		t.Counter("pagerank", "change").Add(int64(unit * math.Abs(now.Rank-now.Before)))
		if len(strings.Fields(now.Links)) == 0 {
			t.Counter("pagerank", "lost").Add(int64(unit * now.Rank))
		}
		emit(page, now)
		return nil
	}), nil
})

func spread(_ *mapreduce.Task, page mapreduce.Pair[string, node], emit func(string, node)) error {
	links := strings.Fields(page.B.Links)
	for _, to := range links {
		emit(to, node{Rank: page.B.Rank / float64(len(links))})
	}
	emit(page.A, node{Before: page.B.Rank, Links: page.B.Links})
	return nil
}
