// Command faulty is a word count with faults, selected by flags, for the integration
// tests.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"iter"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/quernmr/quern/mapreduce"
)

var (
	at    = flag.String("at", "", "where the fault is: start, build, map, reduce, stored: binary input of strings, join: a JoinEach that has spilled, shared: the end of a map of a JoinEach, or broadcast: a BroadcastJoin")
	side  = flag.String("side", "", "`file` with the small side of the joins shared and broadcast, lines of key and value")
	do    = flag.String("do", "", "the fault: error, long-error, panic, exit, kill, hang, counters, relative-file, stderr, corrupt, rewrite, orphan, memory, processes, await-end, clock: a map that emits the time, or types: other ones than those that are stored")
	times = flag.Int("times", 1000, "number of attempts of a task with the fault")
	ended = flag.String("ended", "", "file that a deferred function of the fault await-end writes; it makes the file *.began first")
)

func main() {
	if misplaced := os.Getenv("FAULTY_START"); misplaced != "" {
		if err := misbehave(misplaced); err != nil {
			log.Fatal(err)
		}
	}
	mapreduce.Main(build)
}

func build() (*mapreduce.Job, error) {
	if *at == "build" {
		if err := misbehave(*do); err != nil {
			return nil, err
		}
	}
	switch *at {
	case "join":
		return join(), nil
	case "stored":
		return stored(), nil
	case "shared":
		return mapreduce.JoinEach(keyed(mapreduce.Lines(*side)), keyed(mapreduce.Lines()), mapreduce.FullJoin, joinedLine).Job("shared"), nil
	case "broadcast":
		return mapreduce.MapOnly(mapreduce.BroadcastJoin(keyed(mapreduce.Lines()), keyed(mapreduce.Lines(*side)), mapreduce.LeftJoin, joinedLine)).Job("broadcast"), nil
	}
	words := mapreduce.MapSplit(mapreduce.Lines(), func(t *mapreduce.Task, lines iter.Seq[string], emit func(string, int64)) error {
		for line := range lines {
			for w := range strings.FieldsSeq(line) {
				emit(w, 1)
			}
		}
		if *at == "map" && *do == "clock" {
			emit(time.Now().String(), 1)
		}
		return try(t, "map")
	})
	counts := mapreduce.ReduceAll(words, func(t *mapreduce.Task, groups iter.Seq2[string, iter.Seq[int64]], emit func(string, int64)) error {
		for word, ones := range groups {
			n := int64(0)
			for one := range ones {
				n += one
			}
			emit(word, n)
		}
		return try(t, "reduce")
	})
	return counts.Job("faulty"), nil
}

// stored counts the records that another program has written with keys of type string and no values. The fault types
// reads numbers.
func stored() *mapreduce.Job {
	if *do == "types" {
		return mapreduce.Fold(mapreduce.Map(mapreduce.Stored[string, int64](), counted[int64]), mapreduce.Sum).Job("stored")
	}
	return mapreduce.Fold(mapreduce.Map(mapreduce.Stored[string, struct{}](), counted[struct{}]), mapreduce.Sum).Job("stored")
}

func counted[V any](_ *mapreduce.Task, rec mapreduce.Pair[string, V], emit func(string, int64)) error {
	emit(rec.A, 1)
	return nil
}

// join pairs every line with every line.
func join() *mapreduce.Job {
	lines := func() *mapreduce.Pairs[string, string] {
		return mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, string)) error {
			emit("all", line)
			return nil
		})
	}
	return mapreduce.JoinEach(lines(), lines(), mapreduce.InnerJoin, func(t *mapreduce.Task, _ string, a, b *string, emit func(string, string)) error {
		if spilled, err := filepath.Glob("join-*"); err != nil || len(spilled) != 1 {
			return fmt.Errorf("the join has spilled to %v, want one file (%v)", spilled, err)
		}
		emit(*a, *b)
		return try(t, "join")
	}).Job("join")
}

// keyed emits the first word of each line and the rest. The fault shared is at the end of a split.
func keyed(lines mapreduce.Input[string]) *mapreduce.Pairs[string, string] {
	return mapreduce.MapSplit(lines, func(t *mapreduce.Task, lines iter.Seq[string], emit func(string, string)) error {
		for line := range lines {
			key, value, _ := strings.Cut(line, " ")
			emit(key, value)
		}
		return try(t, "shared")
	})
}

// joinedLine writes both values. The fault broadcast begins when the attempt has made the file joining.
func joinedLine(t *mapreduce.Task, key string, a, b *string, emit func(string, string)) error {
	text := func(value *string) string {
		if value == nil {
			return "-"
		}
		return *value
	}
	emit(key, text(a)+" "+text(b))
	if *at != "broadcast" {
		return nil
	}
	if err := os.WriteFile("joining", nil, 0o600); err != nil {
		return err
	}
	return try(t, "broadcast")
}

func try(t *mapreduce.Task, where string) error {
	if *at != where || t.Attempt >= *times {
		return nil
	}
	if *do == "counters" {
		for i := range 1_200_000 {
			t.Counter("faulty", fmt.Sprint(i)).Add(1)
		}
	}
	if *do == "await-end" {
		defer os.WriteFile(*ended, []byte("its deferred functions ran\n"), 0o600)
		if err := os.WriteFile(*ended+".began", nil, 0o600); err != nil {
			return err
		}
		<-t.Done()
		return nil // as if everything were read
	}
	return misbehave(*do)
}

func misbehave(how string) error {
	switch how {
	case "error":
		return errors.New("deliberate error")
	case "long-error":
		return errors.New("deliberate error" + strings.Repeat(", with a long text", 1<<18))
	case "panic":
		panic("deliberate panic")
	case "exit":
		fmt.Println("about to exit")
		fmt.Fprintln(os.Stderr, "deliberate exit")
		os.Exit(3)
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "hang":
		select {}
	case "rewrite":
		return os.WriteFile(flag.Lookup("input").Value.String(), []byte("other words\n"), 0o600)
	case "orphan":
		return errors.Join(exec.Command("sleep", "3600").Start(), misbehave("hang"))
	case "memory":
		for all := [][]byte{}; ; {
			all = append(all, bytes.Repeat([]byte{1}, 8<<20))
			time.Sleep(20 * time.Millisecond)
		}
	case "processes":
		for range 100 {
			if err := exec.Command("sleep", "3600").Start(); err != nil {
				return err
			}
		}
		return misbehave("hang")
	case "relative-file":
		_, err := os.ReadFile("relative.txt")
		return err
	case "corrupt":
		return corruptFirst()
	case "stderr":
		for range 10 << 10 {
			fmt.Fprintln(os.Stderr, strings.Repeat("x", 1023))
		}
	}
	return nil
}

// corruptFirst overwrites bytes in the middle of the first map's output, if it exists. The
// directories of all attempts have the same parent.
func corruptFirst() error {
	outputs, err := filepath.Glob("../../*_m_000000_*/output")
	if err != nil || len(outputs) == 0 {
		return err
	}
	f, err := os.OpenFile(outputs[0], os.O_WRONLY, 0) // the reduce may read it at any time: it keeps its length
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte("FLIP"), info.Size()/2); err != nil {
		return err
	}
	return f.Close()
}
