// Command stages is a flow of word counts for tests of pages. Flags have its shape, pace and texts. It
// writes a line to standard error for every record of a map and for every word of a reduce.
package main

import (
	"flag"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/quernmr/quern/mapreduce"
)

var (
	name       = flag.String("name", "stages", "name of the flow")
	shape      = flag.String("shape", "words", `jobs, with the jobs they read from: "a; b; c from a,b"; the others read -input`)
	say        = flag.String("say", "", "text of the log lines, of errors and of the status; a counter's name has its beginning")
	recordTime = flag.Duration("record-time", 0, "time of a map for each record")
	wordTime   = flag.Duration("word-time", 0, "time of a reduce for each word")
	gate       = flag.String("gate", "", "file that must exist before a map reads its second record")
	fails      = flag.String("fails", "", "job with reduces that fail")
)

func main() { mapreduce.Main(flow) }

// flow makes the jobs of -shape, in the order of the flag: a job reads only jobs before it.
func flow() (*mapreduce.Flow, error) {
	f, results := &mapreduce.Flow{Name: *name}, make(map[string]*mapreduce.Result[string, int64])
	for part := range strings.SplitSeq(*shape, ";") {
		job, sources, reads := strings.Cut(strings.TrimSpace(part), " from ")
		pairs := []*mapreduce.Pairs[string, int64]{mapreduce.MapSplit(mapreduce.Lines(), splitLines)}
		if reads {
			pairs = nil
			for source := range strings.SplitSeq(sources, ",") {
				from := results[source]
				if from == nil {
					return nil, fmt.Errorf("-shape: %s reads %s, which is not before it", job, source)
				}
				pairs = append(pairs, mapreduce.MapSplit(mapreduce.From(from), copyCounts))
			}
		}
		results[job] = mapreduce.ReduceAll(mapreduce.Merge(pairs...), count(job == *fails))
		f.Jobs = append(f.Jobs, results[job].Job(job))
	}
	return f, nil
}

func splitLines(t *mapreduce.Task, lines iter.Seq[string], emit func(string, int64)) error {
	return eachPaced(t, lines, func(line string) {
		for word := range strings.FieldsSeq(line) {
			emit(word, 1)
		}
	})
}

func copyCounts(t *mapreduce.Task, counts iter.Seq[mapreduce.Pair[string, int64]], emit func(string, int64)) error {
	return eachPaced(t, counts, func(c mapreduce.Pair[string, int64]) { emit(c.A, c.B) })
}

func eachPaced[R any](t *mapreduce.Task, records iter.Seq[R], do func(R)) error {
	said, n := t.Counter("stages", "records "+(*say)[:min(len(*say), 50)]), 0
	for r := range records {
		do(r)
		n++
		said.Add(1)
		fmt.Fprintf(os.Stderr, "record %d of map %d %s\n", n, t.Partition, *say)
		t.Status(fmt.Sprintf("record %d %s", n, *say))
		if err := pause(t, *recordTime); err != nil {
			return err
		}
		for n == 1 && *gate != "" && !exists(*gate) {
			if err := pause(t, 20*time.Millisecond); err != nil {
				return err
			}
			t.Status("waits for the gate")
		}
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// pause waits, unless the attempt must stop.
func pause(t *mapreduce.Task, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.Done():
		return t.Err()
	}
}

func count(fails bool) func(*mapreduce.Task, iter.Seq2[string, iter.Seq[int64]], func(string, int64)) error {
	return func(t *mapreduce.Task, groups iter.Seq2[string, iter.Seq[int64]], emit func(string, int64)) error {
		for word, counts := range groups {
			n := int64(0)
			for c := range counts {
				n += c
			}
			fmt.Fprintf(os.Stderr, "word %s of reduce %d %s\n", word, t.Partition, *say)
			if fails {
				return fmt.Errorf("word %s has no price %s", word, *say)
			}
			emit(word, n)
			if err := pause(t, *wordTime); err != nil {
				return err
			}
		}
		return nil
	}
}
