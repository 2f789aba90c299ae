// Command bad is a word count with bad records: the map of a line with the word BADLINE and the
// reduce of the word BADWORD end as a flag says.
package main

import (
	"bytes"
	"errors"
	"flag"
	"iter"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/quernmr/quern/mapreduce"
)

var (
	how     = flag.String("how", "error", "how an attempt ends at a bad record: error, panic, exit, kill, hang or memory")
	mapOnly = flag.Bool("map-only", false, "write the lines unchanged, without reduces")
)

func main() {
	mapreduce.Main(func() (*mapreduce.Job, error) {
		if *mapOnly {
			return mapreduce.MapOnly(mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, struct{})) error {
				emit(line, struct{}{})
				return check(line, "BADLINE")
			})).Job("bad"), nil
		}
		return mapreduce.Reduce(mapreduce.Map(mapreduce.Lines(), splitWords), count).Job("bad"), nil
	})
}

func splitWords(_ *mapreduce.Task, line string, emit func(string, int64)) error {
	for w := range strings.FieldsSeq(line) {
		emit(w, 1)
	}
	return check(line, "BADLINE")
}

func count(_ *mapreduce.Task, word string, ones iter.Seq[int64], emit func(string, int64)) error {
	n := int64(0)
	for one := range ones {
		n += one
	}
	emit(word, n)
	return check(word, "BADWORD")
}

// check ends the attempt if the text has the bad word.
func check(text, bad string) error {
	if !strings.Contains(text, bad) {
		return nil
	}
	switch *how {
	case "panic":
		panic("deliberate panic")
	case "exit":
		os.Exit(3)
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "hang":
		select {}
	case "memory":
		for all := [][]byte{}; ; time.Sleep(20 * time.Millisecond) {
			all = append(all, bytes.Repeat([]byte{1}, 8<<20))
		}
	}
	return errors.New("deliberate error")
}
