// Package property defines the properties of jobs and checks their values. For Hadoop's
// other properties it applies the rules of package internal/hadoop. Package mapreduce
// decides which of several values wins.
package property

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// Property is a setting of a job that Quern knows.
type Property struct {
	Name    string
	Default string
	Doc     string

	kind    propertyKind
	choices []string
	low     int64 // minimum of an integer, or minimum length of a text
	high    int64 // maximum of a number
}

type propertyKind uint8

const (
	integerProperty propertyKind = iota
	realProperty
	boolProperty
	textProperty
	priorityProperty
	aclProperty
	codecProperty
	choiceProperty
	fileSystemProperty
	umaskProperty
	blockSizeProperty
	rangesProperty
)

// DefaultJoinBuffer is the default of JoinBuffer.
const DefaultJoinBuffer = 16 << 20

// DefaultBroadcastMax is the default of BroadcastMax.
const DefaultBroadcastMax = 64 << 20

// Names that package mapreduce uses.
const (
	Reduces           = "mapreduce.job.reduces"
	Keep              = "quern.flow.keep"
	JoinBuffer        = "quern.join.buffer.bytes"
	BroadcastMax      = "quern.broadcast.max.bytes"
	EmbeddedDir       = "quern.embedded.dir"
	InProcess         = "quern.task.inprocess"
	KeyValueSeparator = "mapreduce.input.keyvaluelinerecordreader.key.value.separator"
	RecordMax         = "quern.record.max.bytes"
	SkipRecords       = "mapreduce.map.skip.maxrecords"
	TextSeparator     = "mapreduce.output.textoutputformat.separator"
	DefaultFS         = "fs.defaultFS"
	Ranges            = "mapreduce.totalorderpartitioner.path"
	RangesOut         = "quern.totalorder.path"
	MarkSuccess       = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
)

// All returns the properties, sorted by name.
func All() []Property {
	return []Property{
		{Name: "dfs.blocksize", kind: blockSizeProperty,
			Doc: "bytes of a block of the output in HDFS, may end in k, m, g or t; empty: as HDFS and the files in HADOOP_CONF_DIR say"},
		{Name: "dfs.replication", kind: integerProperty, low: 1, high: 512,
			Doc: "copies of each block of the output in HDFS; empty: as HDFS and the files in HADOOP_CONF_DIR say"},
		{Name: DefaultFS, Default: "file:///", kind: fileSystemProperty,
			Doc: "file system of paths without a scheme, as hdfs://nn:8020, or hdfs:/// for the one in HADOOP_CONF_DIR; such paths must then be absolute. Only -D and Job.Properties set it: without it a path is local, whatever core-site.xml says"},
		{Name: "fs.permissions.umask-mode", kind: umaskProperty,
			Doc: "permissions that the output lacks, as 027 or u=rwx,g=rx,o=, in HDFS and in local files and directories; empty: in HDFS as HADOOP_CONF_DIR says, else 022; local: as the daemons' umask says"},
		number("avro.mapred.deflate.level", -1, -1, 9, "level of the codec deflate for the output format of package formats/avro; -1: zlib's default"),
		number("avro.mapred.sync.interval", 64_000, 32, 1<<30, "bytes of records with which a block of an Avro file ends"),
		number("avro.mapred.zstd.level", 3, 1, 22, "level of the codec zstandard for the output format of package formats/avro"),
		{Name: "avro.output.codec", kind: choiceProperty, choices: []string{"null", "deflate", "snappy", "zstandard", "bzip2"},
			Doc: "codec of compressed Avro files: null, deflate, snappy, zstandard or bzip2, if mapreduce.output.fileoutputformat.compress is true; " +
				"empty: that of mapreduce.output.fileoutputformat.compress.codec; only for the format of package formats/avro"},
		number("io.seqfile.compress.blocksize", 1_000_000, 1, math.MaxInt32,
			"bytes of keys and values with which a block of a SequenceFile ends, see mapreduce.output.fileoutputformat.compress.type"),
		boolean(MarkSuccess, true, "write an empty file _SUCCESS into the output when the job has succeeded"),
		number("mapreduce.input.fileinputformat.split.maxsize", math.MaxInt64, 1, math.MaxInt64,
			"maximum size of a split, the part of a file that one map reads, in bytes"),
		number("mapreduce.input.fileinputformat.split.minsize", 1, 1, math.MaxInt64,
			"minimum size of a split, unless the file is smaller, in bytes"),
		boolean("mapreduce.input.fileinputformat.input.dir.recursive", false,
			"read also the subdirectories of input directories"),
		text(KeyValueSeparator, "\t", 1, "separator between key and value in a line of the input format KeyValues; only its first character is used"),
		number("mapreduce.input.lineinputformat.linespermap", 1, 1, math.MaxInt32, "number of lines of a map, for the input format NLines"),
		number("mapreduce.input.linerecordreader.line.maxlength", math.MaxInt32, 1, math.MaxInt32,
			"bytes, with the line's end, from which the input formats Lines, KeyValues and NLines leave out a line; see also quern.record.max.bytes"),
		acl(wire.ModifyACL, "users who may change, suspend and kill the job, beside its owner and administrators: `user1,user2 group1,group2`, `*` for all, a blank for no user; groups need `jobtracker -groups`; a flow has one value"),
		acl(wire.ViewACL, "users who may see the job's progress, counters, errors and logs, in the same form; empty: as `jobtracker -acl-view` says; a flow has one value"),
		counterLimit(wire.CounterNameMax, "maximum characters of a counter's name; one beyond U+FFFF counts twice; a job with a longer name fails"),
		counterLimit(wire.CounterGroupMax, "maximum characters of a counter group's name; one beyond U+FFFF counts twice; a job with a longer name fails"),
		counterLimit(wire.CounterGroupsMax, "maximum number of counter groups of a job; a job with more groups fails"),
		counterLimit(wire.CountersMax, "maximum number of counters of a job, without the built-in ones; a job with more counters fails"),
		text("mapreduce.job.cache.archives", "", 0,
			"archives and directories, with commas between: each attempt gets a link to the unpacked archive, or to the directory, in its working directory. After # follows the name of the link, by default the name of the file; see mrsubmit run -archives"),
		number("mapreduce.job.maxtaskfailures.per.tracker", 3, 1, math.MaxInt32,
			"failed attempts of the job on a task tracker after which the job does not use it for ten minutes, then twice as long; "+
				"only if they are more than twice as many as on the average of the others"),
		priority("mapreduce.job.priority", "priority of the job: VERY_LOW, LOW, NORMAL, HIGH or VERY_HIGH; "+
			"a flow uses the value of its first job; `mrsubmit run -priority` wins"),
		text("mapreduce.job.queuename", "default", 1, "pool of the job; a flow uses the value of its first job; `mrsubmit run -pool` wins"),
		fraction("mapreduce.job.reduce.slowstart.completedmaps", 0.05,
			"fraction of the maps, from 0 to 1, that must end before the scheduler flowflex plans the reduces; "+
				"with quern.shuffle.split=false, before reduces take slots"),
		number("mapreduce.job.speculative.minimum-allowed-tasks", 10, 0, math.MaxInt32,
			"how many maps, and how many reduces, of a job may have a speculative attempt at a time; the other two limits may allow more"),
		{Name: "mapreduce.job.speculative.slowtaskthreshold", Default: "1", kind: realProperty, high: 1000,
			Doc: "a task without progress is slow when it has run for this number, plus 2, of standard deviations longer than the mean"},
		fraction("mapreduce.job.speculative.speculative-cap-running-tasks", 0.1,
			"which fraction of the running maps, and of the running reduces, may have a speculative attempt at a time"),
		fraction("mapreduce.job.speculative.speculative-cap-total-tasks", 0.01,
			"which fraction of all maps, and of all reduces, of a job may have a speculative attempt at a time"),
		number(Reduces, 1, 0, 1<<20, "number of reduce tasks; 0: the maps write the output"),
		number(wire.LocalBytesProperty, -1, -1, math.MaxInt64,
			"maximum bytes that an attempt may have in its working directory on a local disk, without Quern's own sorted files; an attempt that exceeds it fails; 0 or less: no limit"),
		text(wire.RedactedProperties, "", 0, "comma-separated names of properties and flags; the API and pages hide their values; passwords, secrets and tokens are always hidden"),
		text("mapreduce.job.skip.outdir", "", 0, "directory for the records that the job has skipped: a URL or an absolute path; "+
			"empty: _logs/skip in the output directory; none: they are not written"),
		number("mapreduce.map.cpu.vcores", 0, 0, 1<<20, "cores that a map takes of its task tracker's offer, beside a slot; 0: none; see tasktracker -vcores"),
		number("mapreduce.map.failures.maxpercent", 0, 0, 100,
			"percentage of the map tasks that may fail for good while the job succeeds; their records are missing in the output"),
		number("mapreduce.map.maxattempts", 4, 1, 999, "maximum attempts of a map task; when all have failed, the job fails, see mapreduce.map.failures.maxpercent"),
		number("mapreduce.map.memory.mb", 0, 0, 1<<30,
			"maximum resident memory of a map attempt's processes together, in MiB: an attempt that exceeds it fails. It takes this much of its task tracker's offer, see tasktracker -memory; 0: no limit, and nothing of the offer"),
		number(SkipRecords, 0, 0, math.MaxInt64,
			"maximum records that a map may skip around a bad record, with which its attempts end; 0: it skips none, and fails"),
		{Name: "mapreduce.map.output.compress", Default: "false", kind: choiceProperty, choices: []string{"true", "false", "auto"},
			Doc: "compress map output: true or false. auto: each map measures lz4 and zstd on its output, and takes the faster of them or none for the network that its task tracker has measured"},
		codec("mapreduce.map.output.compress.codec", "org.apache.hadoop.io.compress.DefaultCodec",
			"codec of compressed map output: DefaultCodec or GzipCodec (both deflate), Lz4Codec, SnappyCodec or ZStandardCodec"),
		boolean("mapreduce.map.speculative", true,
			"a map that runs much longer than others gets a second attempt on another tracker, if a slot is free; the first output counts"),
		boolean("mapreduce.output.fileoutputformat.compress", false,
			"compress the output; a file has the codec's suffix, as part-r-00000.gz; no effect on the format Binary"),
		codec("mapreduce.output.fileoutputformat.compress.codec", "org.apache.hadoop.io.compress.DefaultCodec",
			"codec of compressed output: Hadoop's class of the package org.apache.hadoop.io.compress, or its name: BZip2Codec, DefaultCodec (zlib), GzipCodec, Lz4Codec, SnappyCodec, ZStandardCodec"),
		{Name: "mapreduce.output.fileoutputformat.compress.type", Default: "RECORD", kind: choiceProperty, choices: []string{"NONE", "RECORD", "BLOCK"},
			Doc: "what compressed SequenceFiles compress: each value (RECORD), or the keys and values of many records together (BLOCK); only for the format of package formats/sequence"},
		text(TextSeparator, "\t", 0, "separator between key and value in a line of the output format Text"),
		number("mapreduce.reduce.cpu.vcores", 0, 0, 1<<20, "cores that a reduce takes of its task tracker's offer, beside a slot; 0: none; see tasktracker -vcores"),
		number("mapreduce.reduce.failures.maxpercent", 0, 0, 100,
			"percentage of the reduce tasks that may fail for good while the job succeeds; their part files are missing"),
		number("mapreduce.reduce.maxattempts", 4, 1, 999,
			"maximum attempts of a reduce task; when all have failed, the job fails, see mapreduce.reduce.failures.maxpercent"),
		number("mapreduce.reduce.memory.mb", 0, 0, 1<<30,
			"maximum resident memory of a reduce attempt's processes together, in MiB: an attempt that exceeds it fails. It takes this much of its task tracker's offer, see tasktracker -memory; 0: no limit, and nothing of the offer"),
		number("mapreduce.reduce.skip.maxgroups", 0, 0, math.MaxInt64,
			"maximum groups that a reduce may skip around a bad group, with which its attempts end; 0: it skips none, and fails"),
		boolean("mapreduce.reduce.speculative", true,
			"a reduce that runs much longer than others gets a second attempt on another tracker, if a slot is free; one of them commits"),
		number("mapreduce.task.io.sort.mb", 100, 1, 2047, "memory for a map's output, in MiB; when it is full, the map sorts it and writes it to disk"),
		boolean("mapreduce.task.profile", false,
			"write a CPU profile of the tasks that the next two properties name, for go tool pprof: the file cpu.pprof beside the attempt's logs on its task tracker. An embedded run keeps its files then, with cpu.pprof in the working directories"),
		taskRanges("mapreduce.task.profile.maps", "numbers of the maps with a profile, such as 0-2 or 1,4-"),
		taskRanges("mapreduce.task.profile.reduces", "numbers of the reduces with a profile"),
		number("mapreduce.task.skip.start.attempts", 2, 1, math.MaxInt32,
			"failed attempts of a task after which the next attempts skip bad records; must be less than the maximum attempts of tasks that skip; see mapreduce.map.skip.maxrecords"),
		number("mapreduce.task.timeout", 600_000, 0, math.MaxInt32,
			"milliseconds without progress after which an attempt fails; 0: never"),
		text(Ranges, "", 0, "file with the ranges of keys of all reduces, as Hadoop's TotalOrderPartitioner reads it; empty: a sample finds the ranges; only for Pairs.TotalOrderBy"),
		number("parquet.block.size", 128<<20, 1, math.MaxInt64, "bytes with which a row group of a Parquet file ends, as estimated from its rows; only for the format of package formats/parquet"),
		{Name: "parquet.compression", Default: "UNCOMPRESSED", kind: choiceProperty,
			choices: []string{"UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4_RAW", "uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw"},
			Doc:     "codec of Parquet files: UNCOMPRESSED, SNAPPY, GZIP, BROTLI, ZSTD or LZ4_RAW, also in lower case; only for the format of package formats/parquet"},
		number("quern.archive.max.bytes", 16<<30, 1, math.MaxInt64,
			"maximum bytes of an unpacked archive, or of a directory that is copied, for mapreduce.job.cache.archives and Job.Archives; a job with a larger one fails"),
		boolean("quern.check", false,
			"run the first map twice, before the job starts; if it does not emit the same records, the job fails, and the error has the first difference"),
		number("quern.decompressed.ratio.max", 10_000, 0, math.MaxInt64,
			"how many times its stored size a compressed input file may become, after the first 64 MiB; a larger one fails the job; 0: no limit"),
		text("quern.embedded.dir", "", 0, "data directory of an embedded run; empty: the system's temporary directory"),
		boolean("quern.embedded.keep", false,
			"keep all files of an embedded run, such as logs and working directories of attempts; the run prints their directory at its end; remove it yourself"),
		boolean("quern.embedded.output", false,
			"print what the attempts of an embedded run print, each line after the attempt's id"),
		number("quern.embedded.slots", 0, 0, 1<<10, "number of map slots, and of reduce slots, of an embedded run; 0: one per core"),
		number("quern.embedded.trackers", 1, 1, 64, "number of task trackers of an embedded run; two or more fetch map output from each other, as on a cluster"),
		boolean(Keep, false,
			"keep the results that only later jobs of the flow read, in the Binary format: the result of job JOB in OUTPUT/JOB"),
		number(BroadcastMax, DefaultBroadcastMax, 1, 1<<40,
			"bytes of memory that the small side of a BroadcastJoin may take in each worker; the job fails if it takes more"),
		number(JoinBuffer, DefaultJoinBuffer, 1, 1<<30,
			"bytes of the values of a key that JoinEach keeps in memory, for each of the two sides; if the left side has more, it goes to a file in the attempt's directory"),
		boolean("quern.join.divide.keys", true,
			"a key of a JoinEach with more than a quarter of a mean partition may be in several part files; only for inputs of 8 MiB or more, without Partition, TotalOrder and Combine"),
		boolean("quern.output.lazy", false,
			"true: a task without records writes no file, as with Hadoop's LazyOutputFormat; no effect on the format Binary"),
		{Name: "quern.output.sync", kind: boolProperty,
			Doc: "sync the output to disk before the job succeeds, so that a power failure loses nothing; " +
				"no effect in HDFS; empty: true on a cluster, false in an embedded run"},
		number(RecordMax, 64<<20, 1, 1<<30, "maximum bytes of a record"),
		boolean("quern.shuffle.split", true,
			"true: a reduce takes its slot when its partition is complete; false: a reduce takes its slot first, and then gathers its partition"),
		boolean("quern.task.inprocess", false, "run the attempts of an embedded run in the process of the run, for a debugger"),
		number("quern.task.processes", 0, 0, 1<<20,
			"maximum number of processes of an attempt at the same time; an attempt that exceeds it fails; 0: no limit"),
		boolean("quern.totalorder.divide.keys", true,
			"a key with more than a quarter of a mean partition of a sampled total order may be in several part files, in the order of the input; only for Sort without Combine"),
		text(RangesOut, "", 0, "file that a total order makes with the ranges of its sample, for Hadoop's TotalOrderPartitioner; only for Pairs.TotalOrderBy"),
		text("textinputformat.record.delimiter", "", 0, "what ends a record of the input format Lines; empty: LF or CR LF, and a CR belongs to the end"),
		number("yarn.app.mapreduce.am.job.node-blacklisting.ignore-threshold-node-percent", 33, -1, 100,
			"a job uses all task trackers again if mapreduce.job.maxtaskfailures.per.tracker would take away this percentage of them; -1: no limit"),
	}
}

func number(name string, byDefault, low, high int64, doc string) Property {
	return Property{Name: name, Default: strconv.FormatInt(byDefault, 10), Doc: doc, kind: integerProperty, low: low, high: high}
}

func counterLimit(p wire.CounterProperty, doc string) Property {
	return number(p.Name, int64(p.Default), 0, int64(p.Max), doc)
}

func fraction(name string, byDefault float64, doc string) Property {
	return Property{Name: name, Default: strconv.FormatFloat(byDefault, 'g', -1, 64), Doc: doc, kind: realProperty, high: 1}
}

func boolean(name string, byDefault bool, doc string) Property {
	return Property{Name: name, Default: strconv.FormatBool(byDefault), Doc: doc, kind: boolProperty}
}

func text(name, byDefault string, minLength int64, doc string) Property {
	return Property{Name: name, Default: byDefault, Doc: doc, kind: textProperty, low: minLength}
}

func codec(name, byDefault, doc string) Property {
	return Property{Name: name, Default: byDefault, Doc: doc, kind: codecProperty}
}

func taskRanges(name, doc string) Property {
	return Property{Name: name, Default: "0-2", Doc: doc, kind: rangesProperty}
}

func acl(name, doc string) Property { return Property{Name: name, Doc: doc, kind: aclProperty} }

func priority(name, doc string) Property {
	return Property{Name: name, Default: wire.Normal.String(), Doc: doc, kind: priorityProperty}
}

// check returns an error if the property cannot have the value.
func (p *Property) check(value string) error {
	switch p.kind {
	case integerProperty:
		n, err := strconv.ParseInt(value, 10, 64)
		if value != p.Default && (err != nil || n < p.low || n > p.high) {
			return fmt.Errorf("property %s=%q: must be a whole number from %d to %d", p.Name, value, p.low, p.high)
		}
	case realProperty:
		if n, err := strconv.ParseFloat(value, 64); err != nil || !(n >= 0 && n <= float64(p.high)) {
			return fmt.Errorf("property %s=%q: must be a number from 0 to %d", p.Name, value, p.high)
		}
	case fileSystemProperty, umaskProperty, blockSizeProperty:
		return p.checkOutput(value)
	case textProperty:
		if int64(len(value)) < p.low {
			return fmt.Errorf("property %s is empty", p.Name)
		}
	case priorityProperty:
		if _, err := wire.ParsePriority(value); err != nil {
			return fmt.Errorf("property %s: %w", p.Name, err)
		}
	case aclProperty:
		if _, err := wire.ParseACL(value); err != nil {
			return fmt.Errorf("property %s=%q: %w", p.Name, value, err)
		}
	case rangesProperty:
		if _, err := wire.ParseTaskRanges(value); err != nil {
			return fmt.Errorf("property %s: %w", p.Name, err)
		}
	case codecProperty:
		if _, err := compression.Named(strings.TrimSpace(value)); err != nil {
			return fmt.Errorf("property %s: %w", p.Name, err)
		}
	case choiceProperty:
		if !slices.Contains(p.choices, value) {
			return fmt.Errorf("property %s=%q: must be one of %s", p.Name, value, strings.Join(p.choices, ", "))
		}
	case boolProperty:
		if value != "true" && value != "false" && value != p.Default {
			return fmt.Errorf("property %s=%q: must be true or false", p.Name, value)
		}
	}
	return nil
}

// checkOutput checks the properties of paths and of output files.
func (p *Property) checkOutput(value string) (err error) {
	switch {
	case p.kind == fileSystemProperty:
		_, err = dfs.CleanDefault(value)
	case value == "":
	case p.kind == umaskProperty:
		_, err = dfs.ParseUmask(value)
	default:
		var size int64
		if size, err = dfs.ParseSize(value); err == nil && (size == 0 || size%512 != 0) {
			err = fmt.Errorf("size %q: must be a multiple of 512", value)
		}
	}
	if err != nil {
		return fmt.Errorf("property %s: %w", p.Name, err)
	}
	return nil
}

// CheckSkipping returns an error if a job skips bad records, but no task has an attempt that could: one
// after the failures that start skipping. A map that is checked skips none. The properties are resolved and have
// valid values.
func CheckSkipping(properties map[string]string, hasReduces bool) error {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(properties[name], 10, 64)
		return n
	}
	check := func(attempts, skip string) error {
		const start = "mapreduce.task.skip.start.attempts"
		if number(skip) == 0 || number(attempts) > number(start) {
			return nil
		}
		return fmt.Errorf("property %s=%s: must be more than %s=%s, or %s=%s skips nothing",
			attempts, properties[attempts], start, properties[start], skip, properties[skip])
	}
	if number("mapreduce.map.skip.maxrecords") > 0 && properties["quern.check"] == "true" {
		return errors.New("property quern.check=true: fails at the first bad record; leave it out, or mapreduce.map.skip.maxrecords")
	}
	err := check("mapreduce.map.maxattempts", "mapreduce.map.skip.maxrecords")
	if err == nil && hasReduces {
		err = check("mapreduce.reduce.maxattempts", "mapreduce.reduce.skip.maxgroups")
	}
	return err
}
