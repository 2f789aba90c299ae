// Command pagerank ranks pages by their links, until the ranks settle. A line of -input is a page, a tab,
// and the pages that it links to, with blanks between. A line of -output is a page and its rank; the ranks
// of all pages add up to their number.
package main

import (
	"flag"
	"fmt"
	"iter"
	"math"
	"os"
	"strings"

	"github.com/quernmr/quern/mapreduce"
)

var settled = flag.Float64("settled", 1e-6, "end when the ranks change by less than this, on average")

func main() { mapreduce.Drive(drive, load, step, write) }

const (
	damping = 0.85
	unit    = 1e9 // of counters for sums of ranks
)

// node is a page with its links, or a share of a rank on its way to a page.
type node struct {
	Rank  float64
	Links string
}

func (n *node) Fields(f *mapreduce.Fields) { f.Float64(&n.Rank); f.String(&n.Links) }

type pages = mapreduce.Dataset[string, node]

func drive(d *mapreduce.Driver) error {
	now, err := load.Run(d, struct{}{})
	if err != nil {
		return err
	}
	n := float64(now.Counter("pagerank", "pages"))
	for change := math.Inf(1); change >= *settled; {
		next, err := step.Run(d, iteration{now, float64(now.Counter("pagerank", "lost")) / unit / n})
		if err != nil {
			return err
		}
		change = float64(next.Counter("pagerank", "change")) / unit / n
		fmt.Fprintf(os.Stderr, "ranks change by %.2g on average\n", change)
		if err := now.Drop(d); err != nil {
			return err
		}
		now = next
	}
	_, err = write.Run(d, output{now, d.Output})
	return err
}

// load makes a node of each page that has links, or is linked to.
var load = mapreduce.Define("load", func(_ *mapreduce.Job, _ struct{}) (*mapreduce.Result[string, node], error) {
	links := mapreduce.Map(mapreduce.KeyValues(), func(_ *mapreduce.Task, line mapreduce.Pair[string, string], emit func(string, node)) error {
		emit(line.A, node{Links: line.B})
		for to := range strings.FieldsSeq(line.B) {
			emit(to, node{})
		}
		return nil
	})
	return mapreduce.Reduce(links, func(t *mapreduce.Task, page string, vals iter.Seq[node], emit func(string, node)) error {
		t.Counter("pagerank", "pages").Add(1)
		now := node{Rank: 1}
		for v := range vals {
			now.Links += v.Links
		}
		count(t, "lost", lost(now))
		emit(page, now)
		return nil
	}), nil
})

type iteration struct {
	Pages pages
	Lost  float64 // rank of pages without links, which all pages share
}

// step passes the rank of each page on to the pages that it links to.
var step = mapreduce.Define("step", func(_ *mapreduce.Job, p iteration) (*mapreduce.Result[string, node], error) {
	shares := mapreduce.Map(p.Pages.Input(), func(_ *mapreduce.Task, page mapreduce.Pair[string, node], emit func(string, node)) error {
		emit(page.A, node{Rank: -page.B.Rank, Links: page.B.Links}) // negative: the page itself
		links := strings.Fields(page.B.Links)
		for _, to := range links {
			emit(to, node{Rank: page.B.Rank / float64(len(links))})
		}
		return nil
	})
	return mapreduce.Reduce(shares, func(t *mapreduce.Task, page string, vals iter.Seq[node], emit func(string, node)) error {
		now, before := node{Rank: 1 - damping + damping*p.Lost}, 0.0
		for v := range vals {
			if v.Rank < 0 {
				now.Links, before = v.Links, -v.Rank
			} else {
				now.Rank += damping * v.Rank
			}
		}
		count(t, "change", math.Abs(now.Rank-before))
		count(t, "lost", lost(now))
		emit(page, now)
		return nil
	}), nil
})

func lost(n node) float64 {
	if strings.TrimSpace(n.Links) == "" {
		return n.Rank
	}
	return 0
}

func count(t *mapreduce.Task, name string, x float64) {
	t.Counter("pagerank", name).Add(int64(x * unit))
}

type output struct {
	Pages pages
	Dir   string
}

// write writes pages and ranks as text.
var write = mapreduce.Define("write", func(job *mapreduce.Job, p output) (*mapreduce.Result[string, float64], error) {
	job.Output = p.Dir
	return mapreduce.MapOnly(mapreduce.Map(p.Pages.Input(), func(_ *mapreduce.Task, page mapreduce.Pair[string, node], emit func(string, float64)) error {
		emit(page.A, page.B.Rank)
		return nil
	})), nil
})
