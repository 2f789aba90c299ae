package client

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/quernmr/quern/wire"
)

// groupRank orders groups as Hadoop prints them. The job's own groups follow the tasks'.
func groupRank(title string) int {
	order := []string{"File System Counters", "Job Counters", "Map-Reduce Framework", "", "File Input Format Counters", "File Output Format Counters"}
	if i := slices.Index(order, title); i >= 0 {
		return i
	}
	return slices.Index(order, "")
}

// PrintCounters prints counters as Hadoop does, with Hadoop's titles for Hadoop's counters.
func PrintCounters(w io.Writer, counters wire.Counters) error {
	return printCounters(w, counters, func(title string) string { return title })
}

// PrintExactCounters is [PrintCounters] for programs that parse the text: some of Hadoop's titles end with a blank.
func PrintExactCounters(w io.Writer, counters wire.Counters) error {
	return printCounters(w, counters, func(title string) string {
		switch title {
		case "Job Counters", "File Input Format Counters", "File Output Format Counters", "Shuffled Maps":
			return title + " "
		}
		return title
	})
}

func printCounters(w io.Writer, counters wire.Counters, exact func(title string) string) error {
	var text strings.Builder
	total := 0
	groups := slices.SortedFunc(maps.Keys(counters), func(a, b string) int {
		return cmp.Or(cmp.Compare(groupRank(wire.HadoopCounters(a).Title), groupRank(wire.HadoopCounters(b).Title)), strings.Compare(a, b))
	})
	for _, group := range groups {
		known := counterGroup{wire.HadoopCounters(group)}
		fmt.Fprintf(&text, "\t%s\n", OneLine(cmp.Or(exact(known.Title), group)))
		for _, name := range slices.SortedFunc(maps.Keys(counters[group]), known.compare) {
			fmt.Fprintf(&text, "\t\t%s=%d\n", OneLine(exact(known.label(name))), counters[group][name])
			total++
		}
	}
	_, err := fmt.Fprintf(w, "Counters: %d\n%s", total, text.String())
	return err
}

// counterGroup orders and labels the counters of a group.
type counterGroup struct{ wire.CounterGroup }

// index finds a counter among Hadoop's counters of the group. The name may begin with the scheme of
// a file system, as in HDFS_BYTES_READ.
func (g counterGroup) index(name string) (i int, scheme string) {
	for i, known := range g.Counters {
		if name == known.Name {
			return i, ""
		}
		if scheme, ok := strings.CutSuffix(name, "_"+known.Name); ok && g.Title == "File System Counters" && !strings.Contains(scheme, "_") {
			return i, scheme
		}
	}
	return len(g.Counters), ""
}

func (g counterGroup) compare(a, b string) int {
	i, schemeA := g.index(a)
	j, schemeB := g.index(b)
	return cmp.Or(strings.Compare(schemeA, schemeB), cmp.Compare(i, j), strings.Compare(a, b))
}

func (g counterGroup) label(name string) string {
	i, scheme := g.index(name)
	switch {
	case i == len(g.Counters):
		return name
	case scheme != "":
		return scheme + ": " + g.Counters[i].Title
	}
	return g.Counters[i].Title
}
