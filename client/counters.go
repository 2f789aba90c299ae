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

// counterGroup is a group that Hadoop has a title for, with its counters in
// Hadoop's order.
type counterGroup struct {
	title string
	names []counterName
}

type counterName struct{ name, title string }

// hadoopGroups gives Hadoop's titles. The zero group is of none of them.
func hadoopGroups(group string) counterGroup {
	switch group {
	case wire.FileSystemCounters:
		return counterGroup{"File System Counters", []counterName{
			{wire.BytesRead, "Number of bytes read"},
			{wire.BytesWritten, "Number of bytes written"},
			{"READ_OPS", "Number of read operations"},
			{"LARGE_READ_OPS", "Number of large read operations"},
			{"WRITE_OPS", "Number of write operations"},
		}}
	case wire.JobCounters:
		return counterGroup{"Job Counters", []counterName{
			{wire.FailedMaps, "Failed map tasks"},
			{wire.FailedReduces, "Failed reduce tasks"},
			{"NUM_KILLED_MAPS", "Killed map tasks"},
			{"NUM_KILLED_REDUCES", "Killed reduce tasks"},
			{wire.LaunchedMaps, "Launched map tasks"},
			{wire.LaunchedReduces, "Launched reduce tasks"},
			{wire.OtherLocalMaps, "Other local map tasks"},
			{wire.DataLocalMaps, "Data-local map tasks"},
			{wire.RackLocalMaps, "Rack-local map tasks"},
			{"SLOTS_MILLIS_MAPS", "Total time spent by all maps in occupied slots (ms)"},
			{"SLOTS_MILLIS_REDUCES", "Total time spent by all reduces in occupied slots (ms)"},
			{"MILLIS_MAPS", "Total time spent by all map tasks (ms)"},
			{"MILLIS_REDUCES", "Total time spent by all reduce tasks (ms)"},
		}}
	case wire.TaskCounters:
		return counterGroup{"Map-Reduce Framework", []counterName{
			{wire.MapInputRecords, "Map input records"},
			{wire.MapOutputRecords, "Map output records"},
			{"MAP_SKIPPED_RECORDS", "Map skipped records"},
			{wire.MapOutputBytes, "Map output bytes"},
			{wire.MapOutputFileBytes, "Map output materialized bytes"},
			{"SPLIT_RAW_BYTES", "Input split bytes"},
			{wire.CombineInputRecords, "Combine input records"},
			{wire.CombineOutputRecords, "Combine output records"},
			{wire.ReduceInputGroups, "Reduce input groups"},
			{wire.ReduceShuffleBytes, "Reduce shuffle bytes"},
			{wire.ReduceInputRecords, "Reduce input records"},
			{wire.ReduceOutputRecords, "Reduce output records"},
			{wire.SpilledRecords, "Spilled Records"},
			{"SHUFFLED_MAPS", "Shuffled Maps"},
			{"FAILED_SHUFFLE", "Failed Shuffles"},
			{"MERGED_MAP_OUTPUTS", "Merged Map outputs"},
			{wire.GCMilliseconds, "GC time elapsed (ms)"},
			{wire.CPUMilliseconds, "CPU time spent (ms)"},
			{"PHYSICAL_MEMORY_BYTES", "Physical memory (bytes) snapshot"},
			{"VIRTUAL_MEMORY_BYTES", "Virtual memory (bytes) snapshot"},
			{"COMMITTED_HEAP_BYTES", "Total committed heap usage (bytes)"},
		}}
	case wire.InputCounters:
		return counterGroup{"File Input Format Counters", []counterName{{wire.BytesRead, "Bytes Read"}}}
	case wire.OutputCounters:
		return counterGroup{"File Output Format Counters", []counterName{{wire.BytesWritten, "Bytes Written"}}}
	}
	return counterGroup{}
}

// groupRank orders groups as Hadoop prints them: file systems, job, tasks, the
// author's own, input and output.
func groupRank(title string) int {
	order := []string{"File System Counters", "Job Counters", "Map-Reduce Framework", "", "File Input Format Counters", "File Output Format Counters"}
	if i := slices.Index(order, title); i >= 0 {
		return i
	}
	return slices.Index(order, "")
}

// PrintCounters writes counters in Hadoop's form: titles for the names that
// Hadoop knows, the names themselves for others.
func PrintCounters(w io.Writer, counters wire.Counters) error {
	var text strings.Builder
	total := 0
	groups := slices.SortedFunc(maps.Keys(counters), func(a, b string) int {
		return cmp.Or(cmp.Compare(groupRank(hadoopGroups(a).title), groupRank(hadoopGroups(b).title)), strings.Compare(a, b))
	})
	for _, group := range groups {
		known := hadoopGroups(group)
		fmt.Fprintf(&text, "\t%s\n", OneLine(cmp.Or(known.title, group)))
		for _, name := range slices.SortedFunc(maps.Keys(counters[group]), known.compare) {
			fmt.Fprintf(&text, "\t\t%s=%d\n", OneLine(known.label(name)), counters[group][name])
			total++
		}
	}
	_, err := fmt.Fprintf(w, "Counters: %d\n%s", total, text.String())
	return err
}

// index finds a counter among the known ones; a file system's name may stand
// before it, as in HDFS_BYTES_READ.
func (g counterGroup) index(name string) (i int, scheme string) {
	for i, known := range g.names {
		if name == known.name {
			return i, ""
		}
		if scheme, ok := strings.CutSuffix(name, "_"+known.name); ok && g.title == "File System Counters" && !strings.Contains(scheme, "_") {
			return i, scheme
		}
	}
	return len(g.names), ""
}

func (g counterGroup) compare(a, b string) int {
	i, schemeA := g.index(a)
	j, schemeB := g.index(b)
	return cmp.Or(strings.Compare(schemeA, schemeB), cmp.Compare(i, j), strings.Compare(a, b))
}

func (g counterGroup) label(name string) string {
	i, scheme := g.index(name)
	switch {
	case i == len(g.names):
		return name
	case scheme != "":
		return scheme + ": " + g.names[i].title
	}
	return g.names[i].title
}
