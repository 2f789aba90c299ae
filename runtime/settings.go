package runtime

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/quernmr/quern/compression"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/shuffle"
)

// Properties that this package reads; sizes are in bytes, io.sort.mb in MiB.
const (
	SplitMinSize   = "mapreduce.input.fileinputformat.split.minsize"
	SplitMaxSize   = "mapreduce.input.fileinputformat.split.maxsize"
	InputRecursive = "mapreduce.input.fileinputformat.input.dir.recursive"
	SortMB         = "mapreduce.task.io.sort.mb"
	RecordMaxBytes = "quern.record.max.bytes"
	// RecordDelimiter ends the records of the format lines; empty: LF or CR LF.
	RecordDelimiter = "textinputformat.record.delimiter"
	// LinesPerMap is the number of lines of a split of the format nlines.
	LinesPerMap = "mapreduce.input.lineinputformat.linespermap"
	// LineMaxLength is the size from which lines are left out; their ends count.
	LineMaxLength = "mapreduce.input.linerecordreader.line.maxlength"
	// DecompressedMaxRatio limits the content of a compressed file, see [compression.Reader].
	DecompressedMaxRatio = "quern.decompressed.ratio.max"
	OutputSync           = "quern.output.sync" // empty: true, except in an embedded run
	OutputLazy           = "quern.output.lazy"
	// MarkSuccess is whether the output has a file _SUCCESS; empty: true.
	MarkSuccess = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
	// Umask has the permission bits that the output lacks; empty: as the file system decides.
	Umask = "fs.permissions.umask-mode"
	// Replication and BlockSize are those of the output in HDFS; empty: as HDFS decides.
	Replication    = "dfs.replication"
	BlockSize      = "dfs.blocksize"
	DefaultFS      = "fs.defaultFS"              // of paths without a scheme
	SkipOutdir     = "mapreduce.job.skip.outdir" // empty: <output>/_logs/skip
	MapCompress    = "mapreduce.map.output.compress"
	MapCodec       = "mapreduce.map.output.compress.codec"
	OutputCompress = "mapreduce.output.fileoutputformat.compress"
	OutputCodec    = "mapreduce.output.fileoutputformat.compress.codec"
	Profile        = "mapreduce.task.profile" // and .maps, .reduces: the tasks with a profile
	CheckTwice     = "quern.check"
	// CacheArchives has archives and directories for the working directory of each attempt, see [ParseCached].
	CacheArchives   = "mapreduce.job.cache.archives"
	ArchiveMaxBytes = "quern.archive.max.bytes" // of an unpacked archive
)

// settings are the parsed properties of one job.
type settings struct {
	splitMin, splitMax int64
	recursive          bool
	sortBytes          int64
	recordMax, lineMax int
	delimiter          string
	linesPerMap        int64
	lazyOutput         bool
	ratioMax           int64
	outputCodec        *compression.Codec // nil: none
	mapCodec           string             // of [shuffle.CodecNames], or [shuffle.AutoCodec]
}

func readSettings(properties map[string]string) (settings, error) {
	p := propertyReader{properties: properties}
	s := settings{
		splitMin:    p.number(SplitMinSize, 1, 1, math.MaxInt64),
		splitMax:    p.number(SplitMaxSize, math.MaxInt64, 1, math.MaxInt64),
		recursive:   p.boolean(InputRecursive),
		lazyOutput:  p.boolean(OutputLazy),
		sortBytes:   p.number(SortMB, 100, 1, 2047) << 20,
		ratioMax:    p.number(DecompressedMaxRatio, 10_000, 0, math.MaxInt64),
		lineMax:     int(p.number(LineMaxLength, math.MaxInt32, 1, math.MaxInt32)),
		linesPerMap: p.number(LinesPerMap, 1, 1, math.MaxInt32),
		delimiter:   properties[RecordDelimiter],
		recordMax:   int(p.number(RecordMaxBytes, 64<<20, 1, shuffle.MaxMaxRecord)),
	}
	var err error
	if s.outputCodec, err = codecOf(properties, OutputCompress, OutputCodec); err != nil {
		p.fail("%w", err)
	}
	if properties[OutputSync] != "" {
		p.boolean(OutputSync)
	}
	if s.mapCodec, err = codecOfMaps(properties); err != nil {
		p.fail("%w", err)
	}
	if _, err := skipOutdir(properties, ""); err != nil {
		p.err = cmp.Or(p.err, err)
	}
	return s, p.err
}

// codecOf returns the codec that two properties choose, nil for none. Its default is Hadoop's.
func codecOf(properties map[string]string, compress, codec string) (*compression.Codec, error) {
	if strings.TrimSpace(properties[compress]) != "true" {
		return nil, nil
	}
	c, err := compression.Named(cmp.Or(strings.TrimSpace(properties[codec]), "DefaultCodec"))
	if err != nil {
		return nil, fmt.Errorf("property %s: %w", codec, err)
	}
	return c, nil
}

// codecOfMaps returns the codec of map output. Gzip is deflate with checksums, which map output has.
func codecOfMaps(properties map[string]string) (string, error) {
	if strings.TrimSpace(properties[MapCompress]) == shuffle.AutoCodec {
		return shuffle.AutoCodec, nil
	}
	c, err := codecOf(properties, MapCompress, MapCodec)
	switch {
	case c == nil:
		return "", err
	case c.Name == "gzip":
		return "deflate", nil
	case !slices.Contains(shuffle.CodecNames(), c.Name):
		return "", fmt.Errorf("property %s=%s: map output has the codecs%s", MapCodec, properties[MapCodec], strings.Join(shuffle.CodecNames(), " "))
	}
	return c.Name, nil
}

// syncsOutput reports whether a job's output must be durable.
func syncsOutput(properties map[string]string, embedded bool) bool {
	switch strings.TrimSpace(properties[OutputSync]) {
	case "true":
		return true
	case "false":
		return false
	}
	return !embedded
}

// creationOf returns the settings of the output's files.
func creationOf(properties map[string]string) (c dfs.Creation, err error) {
	if text := properties[Umask]; text != "" {
		if c.Allowed, err = dfs.ParseUmask(text); err != nil {
			return c, Fatal(fmt.Errorf("property %s: %w", Umask, err))
		}
	}
	for name, to := range map[string]*int64{Replication: &c.Replication, BlockSize: &c.BlockSize} {
		if text := properties[name]; text != "" {
			if *to, err = dfs.ParseSize(text); err != nil {
				return c, Fatal(fmt.Errorf("property %s: %w", name, err))
			}
		}
	}
	return c, nil
}

// propertyReader parses properties and keeps the first error.
type propertyReader struct {
	properties map[string]string
	err        error
}

func (p *propertyReader) number(name string, byDefault, low, high int64) int64 {
	text, ok := p.properties[name]
	if !ok {
		return byDefault
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < low || n > high {
		p.fail("property %s=%q: want a whole number from %d to %d", name, text, low, high)
	}
	return n
}

func (p *propertyReader) boolean(name string) bool {
	text, ok := p.properties[name]
	if !ok {
		return false
	}
	switch strings.TrimSpace(text) {
	case "true":
		return true
	case "false":
		return false
	}
	p.fail("property %s=%q: want true or false", name, text)
	return false
}

func (p *propertyReader) fail(format string, args ...any) {
	if p.err == nil {
		p.err = Fatal(fmt.Errorf(format, args...))
	}
}
