// Command waiting is a job whose tasks hold their slots by waiting, for the
// benchmarks of schedulers: what it measures is who waits where and when, on a
// machine with fewer cores than slots.
package main

import (
	"cmp"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/schedulers/waits"
	"github.com/quernmr/quern/mapreduce"
)

var (
	name       = flag.String("name", "waiting", "of the job")
	seed       = flag.Uint64("seed", 1, "of the times that tasks take")
	mapTime    = flag.Duration("map-time", time.Second, "a map takes on average")
	reduceTime = flag.Duration("reduce-time", 0, "a reduce takes on average")
	spread     = flag.Float64("spread", 0, "share of the average by which times differ from it at most")
	read       = flag.Bool("read", false, "read the input; what that takes comes on top")
	output     = flag.Int("map-bytes", 0, "that a map gives out; 0: the job has no reduces")
	gate       = flag.String("gate", "", "`file` that must be there before a map ends")
	slow       = factors{}
)

// Tracker is the variable of a task tracker's environment that tells the tasks on it
// which of the benchmark's trackers it is.
const Tracker = "BENCH_TRACKER"

func main() {
	flag.Var(slow, "slow", "on the task tracker `name=factor` tasks take that many times as long; may be repeated")
	mapreduce.Main(func() (*mapreduce.Job, error) {
		nothing := mapreduce.NewInput("nothing", pass)
		if *output == 0 {
			return mapreduce.MapOnly(mapreduce.MapSplit(nothing, mapTask)).Job(*name), nil
		}
		return mapreduce.ReduceAll(mapreduce.MapSplit(nothing, mapTask), reduceTask).Job(*name), nil
	})
}

// pass reads a split or does not, and gives no records.
func pass(s mapreduce.Split, from io.ReaderAt) iter.Seq2[struct{}, error] {
	return func(yield func(struct{}, error) bool) {
		if !*read {
			return
		}
		if _, err := io.Copy(io.Discard, io.NewSectionReader(from, s.Offset, s.Length)); err != nil {
			yield(struct{}{}, err)
		}
	}
}

func mapTask(t *mapreduce.Task, records iter.Seq[struct{}], emit func(uint64, []byte)) error {
	for range records {
	}
	if err := wait(t, *mapTime, *seed); err != nil {
		return err
	}
	if err := passGate(t); err != nil {
		return err
	}
	give(t, emit)
	return nil
}

// record is the bytes of a value of map output.
const record = 4 << 10

// give emits bytes that nothing makes fewer, the same in every attempt of the map.
func give(t *mapreduce.Task, emit func(uint64, []byte)) {
	r := rand.New(rand.NewPCG(*seed, uint64(t.Partition)))
	var value [record]byte
	for left := *output; left > 0; left -= record {
		for i := 0; i < record; i += 8 {
			binary.LittleEndian.PutUint64(value[i:], r.Uint64())
		}
		emit(r.Uint64(), value[:min(left, record)])
	}
}

func reduceTask(t *mapreduce.Task, groups iter.Seq2[uint64, iter.Seq[[]byte]], emit func(string, int64)) error {
	bytes := int64(0)
	for _, values := range groups {
		for v := range values {
			bytes += int64(len(v))
		}
	}
	if err := wait(t, *reduceTime, ^*seed); err != nil {
		return err
	}
	emit("bytes", bytes)
	return nil
}

// gateEvery is how often a map looks whether its gate is open.
const gateEvery = 20 * time.Millisecond

// passGate waits at the gate, if there is one.
func passGate(t *mapreduce.Task) error {
	for *gate != "" {
		if _, err := os.Stat(*gate); err == nil {
			break
		}
		if err := sleep(t, gateEvery); err != nil {
			return err
		}
	}
	return nil
}

// wait waits as long as the task takes on its tracker.
func wait(t *mapreduce.Task, mean time.Duration, seed uint64) error {
	job := waits.Job{Seed: seed, Mean: mean, Spread: *spread}
	factor := cmp.Or(slow[os.Getenv(Tracker)], 1)
	return sleep(t, time.Duration(float64(job.Task(t.Partition))*factor))
}

func sleep(t *mapreduce.Task, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-t.Done():
		return t.Err()
	}
}

// factors are by tracker.
type factors map[string]float64

func (f factors) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		all = append(all, fmt.Sprintf("%s=%v", name, f[name]))
	}
	return strings.Join(all, ",")
}

func (f factors) Set(text string) error {
	for pair := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(pair, "=")
		factor, err := strconv.ParseFloat(value, 64)
		if err != nil || !(factor > 0) {
			return fmt.Errorf("%q: want NAME=FACTOR", pair)
		}
		f[name] = factor
	}
	return nil
}
