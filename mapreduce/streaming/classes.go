package streaming

import (
	"fmt"
	"slices"
	"strings"
)

// Classes of Hadoop that this package has, by their short names.
const (
	identityMapper  = "IdentityMapper"
	identityReducer = "IdentityReducer"
	aggregate       = "aggregate"

	textInput     = "TextInputFormat"
	keyValueInput = "KeyValueTextInputFormat"
	nLineInput    = "NLineInputFormat"
	combineInput  = "CombineTextInputFormat"
	autoInput     = "AutoInputFormat"
	streamInput   = "StreamInputFormat" // with an -inputreader
	textOutput    = "TextOutputFormat"
	nullOutput    = "NullOutputFormat"

	sequenceInput       = "SequenceFileInputFormat"
	sequenceAsTextInput = "SequenceFileAsTextInputFormat"
	sequenceOutput      = "SequenceFileOutputFormat"

	hashPartitioner     = "HashPartitioner"
	keyFieldPartitioner = "KeyFieldBasedPartitioner"
	keyFieldComparator  = "KeyFieldBasedComparator"
)

// role is what a class is for.
type role struct {
	option  string
	known   []string // short names
	aliases map[string]string
	command bool // the option may also be a command
}

var (
	mappers  = role{option: "-mapper", known: []string{identityMapper}, command: true}
	reducers = role{option: "-reducer", known: []string{identityReducer, aggregate}, command: true,
		aliases: map[string]string{"ValueAggregatorReducer": aggregate}}
	combiners = role{option: "-combiner", known: []string{identityReducer, aggregate}, command: true,
		aliases: map[string]string{"ValueAggregatorCombiner": aggregate, "ValueAggregatorReducer": aggregate}}
	inputFormats  = role{option: "-inputformat", known: []string{textInput, keyValueInput, nLineInput, combineInput, sequenceInput, sequenceAsTextInput, autoInput}}
	outputFormats = role{option: "-outputformat", known: []string{textOutput, sequenceOutput, nullOutput}}
	partitioners  = role{option: "-partitioner", known: []string{hashPartitioner, keyFieldPartitioner}}
	comparators   = role{option: "mapreduce.job.output.key.comparator.class", known: []string{keyFieldComparator}}
)

// packages are those of Hadoop's classes.
var packages = []string{"org.apache.hadoop.mapred.lib.aggregate.", "org.apache.hadoop.mapreduce.lib.aggregate.", "org.apache.hadoop.mapred.lib.",
	"org.apache.hadoop.mapred.", "org.apache.hadoop.streaming.", "org.apache.hadoop.mapreduce.lib.partition."}

// class returns the short name of a class, or "" for a command. A mapper, reducer or combiner is a class only by its full name.
func (r role) class(name string) (string, error) {
	if r.command && strings.EqualFold(name, aggregate) && slices.Contains(r.known, aggregate) {
		return aggregate, nil
	}
	short := name
	for _, p := range packages {
		if rest, ok := strings.CutPrefix(name, p); ok && !strings.Contains(rest, ".") {
			short = rest
			break
		}
	}
	if r.command && short == name && !strings.HasPrefix(name, "org.apache.") {
		return "", nil
	}
	if alias := r.aliases[short]; alias != "" {
		return alias, nil
	}
	if !slices.Contains(r.known, short) {
		return "", fmt.Errorf("%s %s: Quern runs no Java, and has of Hadoop's classes only %s", r.option, name, strings.Join(r.known, ", "))
	}
	return short, nil
}
