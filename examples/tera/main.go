// Command tera makes, sorts and checks the rows of the TeraSort benchmark, as Hadoop's examples teragen,
// terasort, teravalidate and terachecksum do. Rows have 100 bytes; the first 10 are the key.
package main

import (
	"flag"
	"fmt"

	"github.com/quernmr/quern/mapreduce"
)

func main() {
	do := flag.String("do", "", "`gen`, sort, validate or checksum")
	rows := flag.String("rows", "0", "gen: `number` of rows; k, m, b and t behind it are thousands to trillions")
	maps := flag.Int("maps", 2, "gen: `number` of maps")
	partitions := flag.String("partitions", "", "sort: `file` with the ranges of reduces, the _partition.lst of Hadoop's TeraSort")
	simple := flag.Bool("simple", false, "sort: equal ranges of the first three bytes instead of those of a sample")
	mapreduce.Main(func() (*mapreduce.Job, error) { return tera(*do, *rows, *maps, *partitions, *simple) })
}

func tera(do, rows string, maps int, partitions string, simple bool) (*mapreduce.Job, error) {
	switch do {
	case "gen":
		n, err := parseRows(rows)
		if err != nil {
			return nil, err
		}
		return generate(n, maps)
	case "sort":
		switch {
		case partitions != "" && simple:
			return nil, fmt.Errorf("-partitions and -simple are both given")
		case partitions != "":
			return sortByFile(partitions)
		}
		return sortRows(simple)
	case "validate":
		return validate()
	case "checksum":
		return checksum()
	}
	return nil, fmt.Errorf("-do %q: want gen, sort, validate or checksum", do)
}
