// Package property knows the settings of jobs by their names: those that Quern has, with the
// values that each may have, and by the rules of package internal/hadoop what becomes of
// Hadoop's other names. Whose value wins is decided in package mapreduce.
package property

import (
	"fmt"
	"math"
	"strconv"

	"github.com/quernmr/quern/wire"
)

// Property is a setting of a job that Quern knows.
type Property struct {
	Name    string
	Default string
	Doc     string

	kind propertyKind
	low  int64 // of an integer; of a text, its least length
	high int64
}

type propertyKind uint8

const (
	integerProperty propertyKind = iota
	partProperty
	boolProperty
	textProperty
	rankProperty
)

// Names that package mapreduce asks for.
const (
	Reduces           = "mapreduce.job.reduces"
	Keep              = "quern.flow.keep"
	KeyValueSeparator = "mapreduce.input.keyvaluelinerecordreader.key.value.separator"
	TextSeparator     = "mapreduce.output.textoutputformat.separator"
)

// All lists the settings by name.
func All() []Property {
	return []Property{
		number("mapreduce.input.fileinputformat.split.maxsize", math.MaxInt64, 1, math.MaxInt64,
			"most bytes of a file that one map reads"),
		number("mapreduce.input.fileinputformat.split.minsize", 1, 1, math.MaxInt64,
			"fewest bytes of a file that one map reads, if the file has them"),
		flagProperty("mapreduce.input.fileinputformat.input.dir.recursive", false,
			"read the directories in input directories too"),
		text(KeyValueSeparator, "\t", 1, "what divides key and value in a line of KeyValues; its first character counts"),
		counterLimit(wire.CounterNameMax, "most bytes of a counter's name; a job with a longer one fails"),
		counterLimit(wire.CounterGroupMax, "most bytes of a counter group's name; a job with a longer one fails"),
		counterLimit(wire.CounterGroupsMax, "most counter groups of a job; a job with more fails"),
		counterLimit(wire.CountersMax, "most counters of a job, besides those that Hadoop and Quern make; a job with more fails"),
		priorityProperty("mapreduce.job.priority", "VERY_LOW, LOW, NORMAL, HIGH or VERY_HIGH, of all jobs of a flow that of the first; `mrsubmit run -priority` wins"),
		text("mapreduce.job.queuename", "default", 1, "pool in which the job shares a cluster, likewise; `mrsubmit run -pool` wins"),
		part("mapreduce.job.reduce.slowstart.completedmaps", 0.05,
			"part of the maps, from 0 to 1, that must be done before reduces take slots, without quern.shuffle.split; with it, before flowflex plans with them"),
		number(Reduces, 1, 0, 1<<20, "number of reduce tasks; 0 writes what the maps emit"),
		number("mapreduce.map.maxattempts", 4, 1, 999, "attempts at a map task before the job fails"),
		number("mapreduce.map.memory.mb", 0, 0, 1<<30,
			"MiB that the processes of a map attempt may have resident, beyond which the attempt is ended; 0: any"),
		text(TextSeparator, "\t", 0, "what stands between key and value in a line of Text"),
		number("mapreduce.reduce.maxattempts", 4, 1, 999, "attempts at a reduce task before the job fails"),
		number("mapreduce.reduce.memory.mb", 0, 0, 1<<30,
			"MiB that the processes of a reduce attempt may have resident, beyond which the attempt is ended; 0: any"),
		number("mapreduce.task.io.sort.mb", 100, 1, 2047, "MiB of memory in which a map collects its output"),
		number("mapreduce.task.timeout", 600_000, 0, math.MaxInt32,
			"milliseconds without a sign of life after which an attempt is ended; 0: never"),
		text("quern.embedded.dir", "", 0, "where an embedded run keeps its data; empty: the system's temporary directory"),
		number("quern.embedded.slots", 0, 0, 1<<10, "attempts that an embedded run has at a time, of maps and reduces each; 0: one a core"),
		number("quern.embedded.trackers", 1, 1, 64, "task trackers of an embedded run; several fetch from each other as on a cluster"),
		flagProperty(Keep, false,
			"keep results of a flow that only its later jobs read, each below the output in a directory named like its job, as From reads them"),
		{Name: "quern.output.sync", kind: boolProperty,
			Doc: "sync the output to disk before it is reported to be complete, so that a power cut loses none of it; in HDFS DataNodes decide; empty: true on a cluster, false in an embedded run"},
		number("quern.record.max.bytes", 64<<20, 1, 1<<30, "most bytes of a record"),
		flagProperty("quern.shuffle.split", true,
			"partitions are gathered before their reduces take slots; false: a reduce has a slot while its partition is gathered"),
		flagProperty("quern.task.inprocess", false, "run attempts in the process of an embedded run, for a debugger"),
		number("quern.task.processes", 0, 0, 1<<20,
			"processes that an attempt may have at a time, beyond which it is ended; 0: any"),
	}
}

func number(name string, standard, low, high int64, doc string) Property {
	return Property{Name: name, Default: strconv.FormatInt(standard, 10), Doc: doc, kind: integerProperty, low: low, high: high}
}

func counterLimit(p wire.CounterProperty, doc string) Property {
	return number(p.Name, int64(p.Default), 0, int64(p.Most), doc)
}

func part(name string, standard float64, doc string) Property {
	return Property{Name: name, Default: strconv.FormatFloat(standard, 'g', -1, 64), Doc: doc, kind: partProperty}
}

func flagProperty(name string, standard bool, doc string) Property {
	return Property{Name: name, Default: strconv.FormatBool(standard), Doc: doc, kind: boolProperty}
}

func text(name, standard string, least int64, doc string) Property {
	return Property{Name: name, Default: standard, Doc: doc, kind: textProperty, low: least}
}

func priorityProperty(name, doc string) Property {
	return Property{Name: name, Default: wire.Normal.String(), Doc: doc, kind: rankProperty}
}

// check says why value is none of the property's.
func (p *Property) check(value string) error {
	switch p.kind {
	case integerProperty:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < p.low || n > p.high {
			return fmt.Errorf("property %s=%q: want a whole number from %d to %d", p.Name, value, p.low, p.high)
		}
	case partProperty:
		if n, err := strconv.ParseFloat(value, 64); err != nil || !(n >= 0 && n <= 1) {
			return fmt.Errorf("property %s=%q: want a number from 0 to 1", p.Name, value)
		}
	case textProperty:
		if int64(len(value)) < p.low {
			return fmt.Errorf("property %s is empty", p.Name)
		}
	case rankProperty:
		if _, err := wire.ParsePriority(value); err != nil {
			return fmt.Errorf("property %s: %w", p.Name, err)
		}
	case boolProperty:
		if value != "true" && value != "false" && value != p.Default {
			return fmt.Errorf("property %s=%q: want true or false", p.Name, value)
		}
	}
	return nil
}
