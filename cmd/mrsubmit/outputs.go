package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/cmd/internal/interrupt"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/runtime"
	"github.com/quernmr/quern/wire"
)

const catHelp = `Prints the files of a succeeded job's output, or of each job of a flow, in the order of their
tasks. PATH is a file, or a directory with such files: local, or in HDFS as hdfs://….
Hidden files, with names that begin with _ or ., are left out. No job tracker is needed for a PATH.`

const lsHelp = `Lists the files of a job's output, or of each job of a flow, or of PATH: sizes in bytes, and names
that mrsubmit cat accepts. Hidden files, with names that begin with _ or ., are left out. No job
tracker is needed for a PATH.`

// onlyPaths reports whether no argument is the id of a job or flow.
func onlyPaths(args []string) bool {
	return !slices.ContainsFunc(args, isID)
}

func isID(arg string) bool {
	_, errJob := wire.ParseJobID(arg)
	_, errFlow := wire.ParseFlowID(arg)
	return errJob == nil || errFlow == nil
}

// cat prints outputs.
func (q *query) cat(ctx context.Context) error {
	if q.json {
		return usagef("cat prints files as they are: use mrsubmit ls -json for their names")
	}
	places, err := q.places(ctx, true)
	if err != nil {
		return err
	}
	for _, place := range places {
		list, err := outputFiles(place)
		if err != nil {
			return err
		}
		if _, err := files().Stat(dfs.Join(place, runtime.TypesName)); err == nil {
			fmt.Fprintf(q.stderr, "warning: %s has binary records, not text: read them with mapreduce.Stored\n", client.OneLine(place))
		}
		for _, info := range list {
			if info.Dir {
				continue // a further output has a directory of its own
			}
			if err := q.copyFile(ctx, info.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (q *query) copyFile(ctx context.Context, name string) error {
	f, err := files().Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = io.Copy(q.stdout, interrupt.Reader{Context: ctx, Reader: f}); err != nil && !isOutputClosed(err) && ctx.Err() == nil {
		err = fmt.Errorf("print %s: %w", name, err)
	}
	return err
}

// listedFile is a file of an output, as JSON.
type listedFile struct {
	Name      string `json:"name"`
	Bytes     int64  `json:"bytes"`
	Directory bool   `json:"directory,omitempty"`
}

// ls lists outputs.
func (q *query) ls(ctx context.Context) error {
	places, err := q.places(ctx, false)
	if err != nil {
		return err
	}
	all := []listedFile{}
	rows := [][]string{{"BYTES", "NAME"}}
	for _, place := range places {
		list, err := outputFiles(place)
		if err != nil {
			return err
		}
		for _, info := range list {
			all = append(all, listedFile{info.Name, info.Size, info.Dir})
			size := strconv.FormatInt(info.Size, 10)
			if info.Dir {
				size, info.Name = "-", info.Name+"/"
			}
			rows = append(rows, []string{size, info.Name})
		}
	}
	if q.json {
		return q.printJSON(all)
	}
	return q.printTable(rows)
}

// places returns the files and directories that the arguments name.
func (q *query) places(ctx context.Context, succeeded bool) (places []string, err error) {
	for _, arg := range q.args {
		if !isID(arg) {
			place, err := dfs.Clean(arg)
			if err != nil {
				return nil, err
			}
			places = append(places, place)
			continue
		}
		ids, err := q.resolve(ctx, []string{arg}, func(jobs []wire.JobStatus) []wire.JobStatus { return jobs })
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			place, err := q.outputOf(ctx, id, succeeded)
			if err != nil {
				return nil, err
			}
			if place != "" {
				places = append(places, place)
			} else if len(ids) == 1 {
				return nil, fmt.Errorf("%v has no output that is kept", id)
			}
		}
	}
	return places, nil
}

// outputOf returns the directory of a job's output; empty: only other jobs of its flow read it.
func (q *query) outputOf(ctx context.Context, id wire.JobID, succeeded bool) (string, error) {
	job, err := q.job(ctx, id)
	if err != nil {
		return "", err
	}
	if succeeded && job.State != wire.Succeeded {
		return "", fmt.Errorf("%v is %v: only a succeeded job has output", id, job.State)
	}
	if !job.State.Ended() {
		return "", fmt.Errorf("%v is %v: its output appears at its end", id, job.State)
	}
	past, err := q.past().History(ctx, id)
	if err != nil {
		return "", fmt.Errorf("output of %v: %w", id, err)
	}
	return past.Output, nil
}

// outputFiles lists a file, or the files of a directory in the order of their tasks.
func outputFiles(place string) ([]dfs.Info, error) {
	info, err := files().Stat(place)
	if err != nil {
		return nil, fmt.Errorf("this machine cannot read %s: %w", client.OneLine(place), err)
	}
	if !info.Dir {
		info.Name = place
		return []dfs.Info{info}, nil
	}
	list, err := files().List(place)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(i dfs.Info) bool { return strings.ContainsRune("_.", rune(dfs.Base(i.Name)[0])) })
	slices.SortStableFunc(list, func(a, b dfs.Info) int {
		nameA, numberA := splitNumber(a.Name)
		nameB, numberB := splitNumber(b.Name)
		return cmp.Or(cmp.Compare(nameA, nameB), cmp.Compare(numberA, numberB), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// splitNumber splits a name at the number at its end: from the millionth task on, it has more digits.
func splitNumber(name string) (rest string, number int) {
	rest = strings.TrimRight(name, "0123456789")
	number, err := strconv.Atoi(name[len(rest):])
	if err != nil && !errors.Is(err, strconv.ErrSyntax) {
		return name, 0 // too large
	}
	return rest, number
}
