package papers

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// columns has the titles of the tables, for the terminal and for pages.
var columns = []string{"figure", "point", "policy", "statistic", "measured", "published", "band", ""}

func (r Row) cells() []string {
	band, verdict := "", ""
	switch {
	case r.Low != nil && r.High != nil:
		band = number(r.Low) + " – " + number(r.High)
	case r.High != nil:
		band = "≤ " + number(r.High)
	case r.Low != nil:
		band = "≥ " + number(r.Low)
	}
	if tested, ok := r.Within(); tested {
		verdict = map[bool]string{true: "ok", false: "MISSED"}[ok]
	}
	return []string{r.Figure, r.Point, r.Policy, r.Statistic, number(r.Value), number(r.Published), band, verdict}
}

// number prints at most four digits after the point.
func number(x *float64) string {
	if x == nil {
		return "–"
	}
	text := strconv.FormatFloat(*x, 'f', 4, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// WriteTable writes the rows for a terminal.
func (r *Report) WriteTable(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(columns, "\t"))
	for _, row := range r.Rows {
		fmt.Fprintln(tw, strings.Join(row.cells(), "\t"))
	}
	return tw.Flush()
}

// WriteMarkdown writes the rows of one figure as a Markdown table, without the column that
// names the figure.
func (r *Report) WriteMarkdown(w io.Writer, figure string) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "| %s |\n|%s\n", strings.Join(columns[1:], " | "), strings.Repeat("---|", len(columns)-1))
	for _, row := range r.Rows {
		if row.Figure == figure {
			fmt.Fprintf(out, "| %s |\n", strings.Join(row.cells()[1:], " | "))
		}
	}
	return out.Flush()
}
