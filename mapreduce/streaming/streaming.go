// Package streaming runs jobs of Hadoop Streaming: the mapper, combiner and reducer are commands, which read records as
// lines from standard input and write records as lines to standard output. Package records has the binary forms.
//
// [Parse] reads Hadoop's command line, [Job.Submission] describes the job for a client, and [Serve] runs attempts. The
// executable of the process that calls Serve is the job's program: mrsubmit. The arguments and properties travel in
// wire.Program.Flags, so a worker needs no file of the client.
//
// # Records
//
// Keys and values have classes, as in Hadoop: see form.go. A Text, BytesWritable or TypedBytesWritable is only its content,
// so text passes without a copy. A key's bytes order the records, as these classes do, unless KeyFieldBasedComparator is given: then map output has a key that sorts in its order, and the value begins with the
// length of the original key, as a varint, and that key.
//
// # Invariants
//
//	S1  A command runs once for each attempt, a combiner once for each part of a spill. The attempt ends when the
//	    command has ended, and all processes that hold its standard output and standard error. If the command fails, it
//	    does not wait for these processes. What the command has not read when it ends stays unread.
//	S2  No pipe can stall the others: one goroutine writes standard input, one reads standard output, one reads standard
//	    error. When the attempt must end, all pipes are closed.
//	S3  A command fails its attempt by its exit code, or if it does not read its input: Hadoop's rules, see child.go.
//	S4  What Quern does not know, as a class or an option, is refused by name when the job is submitted.
package streaming

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/quernmr/quern/mapreduce/internal/program"
	mrruntime "github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

// Job describes a job, as its options do. Names of classes have no package.
type Job struct {
	Inputs []string `json:"inputs"` // paths, as the options have them
	Output string   `json:"output"`
	Home   string   `json:"home,omitempty"` // URL of the directory of relative inputs and outputs; others are in its file system. Empty: they are local

	Mapper   string `json:"mapper,omitempty"` // a command or a class; empty: the identity
	Combiner string `json:"combiner,omitempty"`
	Reducer  string `json:"reducer,omitempty"`
	MapOnly  bool   `json:"mapOnly,omitempty"` // -reducer NONE

	InputFormat  string      `json:"inputFormat,omitempty"`
	XML          *xmlRecords `json:"xml,omitempty"` // -inputreader
	OutputFormat string      `json:"outputFormat,omitempty"`
	Partitioner  string      `json:"partitioner,omitempty"`
	Lazy         bool        `json:"lazy,omitempty"` // -lazyOutput

	Files       map[string]string `json:"files,omitempty"`    // side files: path or URL by the name of the link
	Archives    map[string]string `json:"archives,omitempty"` // path or URL by the name of the directory
	Environment []string          `json:"-"`                  // of -cmdenv: NAME=VALUE
	Properties  map[string]string `json:"-"`

	io, reader string // -io, -inputreader, until the options are complete
}

// Names in wire.Program.Flags. Each property and variable has a flag of its own.
const (
	jobFlag           = "streaming"
	propertyPrefix    = "D "
	environmentPrefix = "cmdenv "
)

// flags encodes the job for workers.
func (j *Job) flags() (map[string]string, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, fmt.Errorf("describe the job: %w", err)
	}
	all := map[string]string{jobFlag: string(text)}
	for name, value := range j.Properties {
		all[propertyPrefix+name] = value
	}
	for _, variable := range j.Environment {
		name, value, _ := strings.Cut(variable, "=")
		all[environmentPrefix+name] = value
	}
	return all, nil
}

// jobOf is the inverse of flags.
func jobOf(all map[string]string) (*Job, error) {
	j := &Job{Properties: make(map[string]string)}
	if err := json.Unmarshal([]byte(all[jobFlag]), j); err != nil {
		return nil, fmt.Errorf("the submission has no streaming job: %w", err)
	}
	for name, value := range all {
		if property, ok := strings.CutPrefix(name, propertyPrefix); ok {
			j.Properties[property] = value
		}
		if variable, ok := strings.CutPrefix(name, environmentPrefix); ok {
			j.Environment = append(j.Environment, variable+"="+value)
		}
	}
	return j, nil
}

// Submission describes the job for a client. args are the arguments as the user typed them, and dir is the working
// directory, for relative paths. It returns a warning for each property without effect.
func (j *Job) Submission(args []string, dir string) (sub *wire.Submission, warnings []string, err error) {
	c, err := j.compile(dir)
	if err != nil {
		return nil, nil, err
	}
	flags, err := j.flags()
	if err != nil {
		return nil, nil, err
	}
	sub = &wire.Submission{Plan: wire.Plan{Jobs: []wire.JobPlan{*c.plan}}}
	sub.Program = wire.Program{Args: args, Flags: flags, Dir: dir}
	return sub, c.warnings, nil
}

// Serve runs attempts for a task tracker, if this process is a worker. Otherwise ended is false. Call it before anything
// else.
func Serve() (code int, ended bool) { return program.Worker(load) }

// load builds the job of a submission again.
func load(sub *wire.Submission) (*mrruntime.Program, error) {
	j, err := jobOf(sub.Program.Flags)
	if err != nil {
		return nil, mrruntime.Fatal(err)
	}
	c, err := j.compile(sub.Program.Dir)
	if err != nil {
		return nil, mrruntime.Fatal(err)
	}
	plan := *c.plan
	plan.Properties = maps.Clone(plan.Properties)
	return &mrruntime.Program{Plan: wire.Plan{Jobs: []wire.JobPlan{plan}}, Jobs: []mrruntime.Job{c.job()}}, nil
}
