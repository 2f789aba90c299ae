// Command paced is a slow word count for tests that need running attempts. Each attempt writes
// trace files.
package main

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/mapreduce"
)

var (
	mapTime    = flag.Duration("map-time", 0, "minimal time of a map")
	reduceTime = flag.Duration("reduce-time", 0, "minimal time of a reduce")
	trace      = flag.String("trace", "", "directory in which each attempt writes a file when it begins and when it ends")
	gate       = flag.String("gate", "", "file that must exist before a map continues")
	gatedMap   = flag.Int("gated-map", -1, "number of the only map that waits for the gate; default: all maps wait")
	varying    = flag.Bool("varying", false, "each attempt of a map emits another word")
	mapOnly    = flag.Bool("map-only", false, "write the lines unchanged, without reduces")
	slowDir    = flag.String("slow-dir", "", "attempts that run in this directory take ten times as long")
	files      = flag.Bool("files", false, "maps also write each word to a file that its last letter names")
	pauseEarly = flag.Bool("pause-early", false, "a map waits after its first line, not after its last")
)

// These variables of a task tracker make all attempts there fail, or take so many times as long.
const (
	failVariable = "PACED_FAILS"
	slowVariable = "PACED_SLOW"
)

func main() {
	mapreduce.Main(func() (*mapreduce.Job, error) {
		if *mapOnly {
			return mapreduce.MapOnly(mapreduce.MapSplit(mapreduce.Lines(), copyLines)).Job("paced"), nil
		}
		job := mapreduce.ReduceAll(mapreduce.MapSplit(mapreduce.Lines(), splitWords), count).Job("paced")
		if *files {
			job.Outputs = []string{"words"}
		}
		return job, nil
	})
}

func copyLines(t *mapreduce.Task, lines iter.Seq[string], emit func(string, struct{})) error {
	return forEachLine(t, lines, func(line string) { emit(line, struct{}{}) })
}

func splitWords(t *mapreduce.Task, lines iter.Seq[string], emit func(string, int64)) error {
	if *varying {
		emit("attempt-"+rand.Text(), 1)
	}
	return forEachLine(t, lines, func(line string) {
		for w := range strings.FieldsSeq(line) {
			emit(w, 1)
			if *files {
				mapreduce.WriteBy(t, "words", w[len(w)-1:], w, struct{}{})
			}
		}
	})
}

// forEachLine calls do for each line of a map, and waits once.
func forEachLine(t *mapreduce.Task, lines iter.Seq[string], do func(line string)) error {
	paced := false
	for line := range lines {
		do(line)
		if *pauseEarly && !paced {
			paced = true
			if err := pace(t, *mapTime); err != nil {
				return err
			}
		}
	}
	if paced {
		return nil
	}
	return pace(t, *mapTime)
}

func count(t *mapreduce.Task, groups iter.Seq2[string, iter.Seq[int64]], emit func(string, int64)) error {
	for word, ones := range groups {
		n := int64(0)
		for one := range ones {
			n += one
		}
		emit(word, n)
	}
	return pace(t, *reduceTime)
}

// pace waits for the duration, and until the gate is open, and reports progress.
func pace(t *mapreduce.Task, duration time.Duration) error {
	// Each leader numbers attempts from 0, and processes in namespaces may have the same id.
	name := fmt.Sprintf("%s.%d.%s", t.ID, t.Attempt, rand.Text())
	if err := mark(name, "began"); err != nil {
		return err
	}
	if os.Getenv(failVariable) != "" {
		return errors.New("every attempt fails on this machine")
	}
	if times, err := strconv.Atoi(os.Getenv(slowVariable)); err == nil {
		duration *= time.Duration(times)
	}
	if dir, err := os.Getwd(); err == nil && *slowDir != "" && strings.HasPrefix(dir, *slowDir) {
		duration *= 10
	}
	for left := duration; left > 0 || gateClosed(t); left -= 50 * time.Millisecond {
		time.Sleep(50 * time.Millisecond)
		t.Status(fmt.Sprintf("%v left", left))
	}
	return mark(name, "ended")
}

// gateClosed reports whether a map still waits for the gate.
func gateClosed(t *mapreduce.Task) bool {
	if *gate == "" || !strings.Contains(t.ID, "_m_") || *gatedMap >= 0 && *gatedMap != t.Partition {
		return false
	}
	_, err := os.Stat(*gate)
	return err != nil
}

func mark(name, what string) error {
	if *trace == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(*trace, name+"."+what), nil, 0o666)
}
