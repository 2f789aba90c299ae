// Command waiting is a job, or a flow of jobs, for the benchmarks of schedulers. Its tasks hold
// their slots by waiting, so that a machine with fewer cores than slots can run them.
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
	name       = flag.String("name", "waiting", "name of the job")
	seed       = flag.Uint64("seed", 1, "seed of the task times")
	mapTime    = flag.Duration("map-time", time.Second, "mean time of a map")
	reduceTime = flag.Duration("reduce-time", 0, "mean time of a reduce")
	spread     = flag.Float64("spread", 0, "largest deviation of times, as a fraction of the mean")
	read       = flag.Bool("read", false, "read the input, in addition to the map time")
	output     = flag.Int("map-bytes", 0, "bytes of output of a map; 0: the job has no reduces")
	gate       = flag.String("gate", "", "`file` that must exist before a map ends")
	flow       = flag.String("flow", "", "a flow instead of a job: `jobs`, see package tasktimes")
	splits     = flag.String("splits", "", "`directory` of the inputs of a flow's jobs: in3 has three splits")
	slow       = make(map[string]float64) // by tracker
)

func main() {
	flag.Func("slow", "`name=factor`: tasks on that task tracker take factor times as long; may be repeated", func(pair string) error {
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
	pairs := mapreduce.MapSplit(mapreduce.NewInput("nothing", readSplit), job.run)
	if *output == 0 {
		return mapreduce.MapOnly(pairs).Job(*name)
	}
	return mapreduce.ReduceAll(pairs, reduceTask).Job(*name)
}

// makeFlow returns the jobs of a flow. A job has one map for each predecessor, which reads its
// output; the job's other maps have splits without records.
func makeFlow() (*mapreduce.Flow, error) {
	nodes, err := tasktimes.Parse(*flow)
	if err != nil {
		return nil, fmt.Errorf("-flow: %w", err)
	}
	if *output == 0 {
		return nil, errors.New("-map-bytes must be positive with -flow: jobs of a flow have reduces")
	}
	made := &mapreduce.Flow{Name: *name}
	var results []*mapreduce.Result[string, int64]
	for i, n := range nodes {
		var parts []*mapreduce.Pairs[uint64, []byte]
		for _, before := range n.After {
			parts = append(parts, mapreduce.MapSplit(mapreduce.From(results[before]), task{n.Job}.runAfter))
		}
		if own := n.Tasks - len(n.After); own > 0 {
			in := mapreduce.NewInput("nothing", readSplit, fmt.Sprintf("%s/in%d", *splits, own))
			parts = append(parts, mapreduce.MapSplit(in, task{n.Job}.run))
		}
		results = append(results, mapreduce.ReduceAll(mapreduce.Merge(parts...), reduceTask))
		made.Jobs = append(made.Jobs, results[i].Job(fmt.Sprintf("%s.%d", *name, i)))
	}
	return made, nil
}

// readSplit reads a split if -read is set, and emits no records.
func readSplit(s mapreduce.Split, from io.ReaderAt) iter.Seq2[struct{}, error] {
	return func(yield func(struct{}, error) bool) {
		if !*read {
			return
		}
		if _, err := io.Copy(io.Discard, io.NewSectionReader(from, s.Offset, s.Length)); err != nil {
			yield(struct{}{}, err)
		}
	}
}

// task is a map that holds its slot.
type task struct{ tasktimes.Job }

func (m task) run(t *mapreduce.Task, records iter.Seq[struct{}], emit func(uint64, []byte)) error {
	for range records {
	}
	return m.hold(t, emit)
}

// runAfter reads the output of another job of the flow.
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
	emitOutput(t, emit)
	return nil
}

// recordBytes is the size of a value of map output.
const recordBytes = 4 << 10

// emitOutput emits incompressible bytes, the same in every attempt of the map.
func emitOutput(t *mapreduce.Task, emit func(uint64, []byte)) {
	r := rand.New(rand.NewPCG(*seed, uint64(t.Partition)))
	var value [recordBytes]byte
	for left := *output; left > 0; left -= recordBytes {
		for i := 0; i < recordBytes; i += 8 {
			binary.LittleEndian.PutUint64(value[i:], r.Uint64())
		}
		emit(r.Uint64(), value[:min(left, recordBytes)])
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

// gatePoll is the interval at which a map looks for its gate file.
const gatePoll = 20 * time.Millisecond

// passGate waits for the gate file, if there is one.
func passGate(t *mapreduce.Task) error {
	for *gate != "" {
		if _, err := os.Stat(*gate); err == nil {
			break
		}
		if err := sleep(t, gatePoll); err != nil {
			return err
		}
	}
	return nil
}

// wait waits for the task's time on its tracker.
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
