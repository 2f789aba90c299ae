// Command waiting is a job, or a flow of jobs, whose tasks hold their slots by waiting,
// for the benchmarks of schedulers: what it measures is who waits where and when, on a
// machine with fewer cores than slots.
package main

import (
	"cmp"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/quernmr/quern/bench/schedulers/tasktimes"
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
	flow       = flag.String("flow", "", "a flow instead of a job: `jobs`, see package tasktimes")
	splits     = flag.String("splits", "", "`directory` of the inputs of a flow's jobs: in3 has three splits")
	slow       = make(map[string]float64) // by tracker
)

func main() {
	flag.Func("slow", "on the task tracker `name=factor` tasks take that many times as long; may be repeated", func(pair string) error {
		name, value, _ := strings.Cut(pair, "=")
		factor, err := strconv.ParseFloat(value, 64)
		if err == nil && !(factor > 0) {
			err = errors.New("the factor must be positive")
		}
		slow[name] = factor
		return err
	})
	mapreduce.Main(func() (*mapreduce.Flow, error) {
		if *flow != "" {
			return makeFlow()
		}
		return &mapreduce.Flow{Name: *name, Jobs: []*mapreduce.Job{makeJob()}}, nil
	})
}

func makeJob() *mapreduce.Job {
	job := task{tasktimes.Job{Seed: *seed, Mean: *mapTime, Spread: *spread}}
	pairs := mapreduce.MapSplit(mapreduce.NewInput("nothing", pass), job.run)
	if *output == 0 {
		return mapreduce.MapOnly(pairs).Job(*name)
	}
	return mapreduce.ReduceAll(pairs, reduceTask).Job(*name)
}

// makeFlow makes the jobs of a flow. A map of each reads the output of each job that it
// is after, the others have splits of their own with nothing in them.
func makeFlow() (*mapreduce.Flow, error) {
	nodes, err := tasktimes.Parse(*flow)
	if err != nil {
		return nil, fmt.Errorf("-flow: %w", err)
	}
	if *output == 0 {
		return nil, errors.New("-map-bytes: jobs of a flow have reduces")
	}
	made := &mapreduce.Flow{Name: *name}
	var results []*mapreduce.Result[string, int64]
	for i, n := range nodes {
		var parts []*mapreduce.Pairs[uint64, []byte]
		for _, before := range n.After {
			parts = append(parts, mapreduce.MapSplit(mapreduce.From(results[before]), task{n.Job}.runAfter))
		}
		if own := n.Tasks - len(n.After); own > 0 {
			in := mapreduce.NewInput("nothing", pass, fmt.Sprintf("%s/in%d", *splits, own))
			parts = append(parts, mapreduce.MapSplit(in, task{n.Job}.run))
		}
		results = append(results, mapreduce.ReduceAll(mapreduce.Merge(parts...), reduceTask))
		made.Jobs = append(made.Jobs, results[i].Job(fmt.Sprintf("%s.%d", *name, i)))
	}
	return made, nil
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

// task is a map.
type task struct{ tasktimes.Job }

func (m task) run(t *mapreduce.Task, records iter.Seq[struct{}], emit func(uint64, []byte)) error {
	for range records {
	}
	return m.hold(t, emit)
}

// runAfter reads what another job of the flow has written.
func (m task) runAfter(t *mapreduce.Task, records iter.Seq[mapreduce.Pair[string, int64]], emit func(uint64, []byte)) error {
	for range records {
	}
	return m.hold(t, emit)
}

func (m task) hold(t *mapreduce.Task, emit func(uint64, []byte)) error {
	if err := wait(t, m.Job); err != nil {
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
	if err := wait(t, tasktimes.Job{Seed: ^*seed, Mean: *reduceTime, Spread: *spread}); err != nil {
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
func wait(t *mapreduce.Task, job tasktimes.Job) error {
	factor := cmp.Or(slow[os.Getenv(tasktimes.TrackerVariable)], 1)
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
