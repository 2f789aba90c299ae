package gather

import (
	"context"
	"encoding/binary"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/meter"
	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// benchBytes is the map output of a job in BenchmarkShuffle.
const benchBytes = 1 << 30

var benchJob = wire.JobID{Start: 1, N: 1}

// BenchmarkShuffle moves 1 GiB of map output, in records of 100 bytes, between four task trackers: fetches, look-ups,
// checks of indexes, merges, and the merges that the reduces read. The loops are those of the cores. It reports the
// processor time, so run it with -benchtime 1x.
func BenchmarkShuffle(b *testing.B) {
	for _, size := range []struct{ maps, reduces int }{{200, 200}, {2000, 2000}} {
		b.Run(fmt.Sprintf("maps=%d/reduces=%d", size.maps, size.reduces), func(b *testing.B) {
			trackers := newTrackers(b, 4, size.maps, size.reduces)
			before := processorTime()
			for b.Loop() {
				runs, read := trackers.shuffle(b, size.maps, size.reduces)
				b.ReportMetric(float64(runs)/float64(size.reduces), "runs/reduce")
				if read != benchBytes/100 {
					b.Fatalf("the reduces read %d records, want %d", read, benchBytes/100)
				}
			}
			b.ReportMetric((processorTime()-before).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchTracker is a task tracker without its loop: a core, its gather and its server.
type benchTracker struct {
	name   string
	dir    string
	core   *core.Core
	gather *Gather
	events chan core.Event
	runs   [][]wire.Segment
	done   int // complete homes
}

type benchTrackers struct {
	all     []*benchTracker
	outputs []wire.MapOutput
}

// newTrackers starts task trackers with the outputs of maps.
func newTrackers(b *testing.B, n, maps, reduces int) *benchTrackers {
	x := &benchTrackers{}
	for i := range n {
		t := &benchTracker{name: fmt.Sprintf("t%d", i), dir: b.TempDir(), events: make(chan core.Event, 1<<16)}
		resolve := func(job wire.JobID, m, attempt int) (string, error) {
			return core.MapOutputPath(t.dir, job, m, attempt), nil
		}
		server := httptest.NewServer(shuffle.Handler(resolve, new(meter.Count)))
		b.Cleanup(server.Close)
		addr := strings.TrimPrefix(server.URL, "http://")
		t.core = core.New(core.Config{
			Tracker: t.name, Addr: addr, Process: uint64(i + 1), MapSlots: 1, ReduceSlots: reduces, Dir: t.dir, Embedded: true, Restore: true,
		})
		t.gather = New(Config{
			OnEvent: func(ev core.Event) { t.events <- ev }, Token: func(wire.JobID) string { return "" },
			Log: slog.New(slog.DiscardHandler),
		})
		go t.gather.LookUps()
		b.Cleanup(t.gather.Stop)
		x.all = append(x.all, t)
	}
	random := rand.New(rand.NewPCG(1, 1))
	for m := range maps {
		t := x.all[m%n]
		o := writeOutput(b, t.dir, m, maps, reduces, random)
		id := wire.AttemptID{Task: wire.TaskID{Job: benchJob, Kind: wire.Map, N: m}, N: 1000}
		t.core.Step(0, core.Restored{Report: wire.Report{Attempt: id, State: wire.AttemptSucceeded, Result: &wire.Result{Output: o}}})
		x.outputs = append(x.outputs, *o)
	}
	return x
}

// writeOutput writes a map's part of the records, spread evenly over the partitions.
func writeOutput(b *testing.B, dir string, m, maps, reduces int, random *rand.Rand) *wire.MapOutput {
	file := core.MapOutputPath(dir, benchJob, m, 1000)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		b.Fatal(err)
	}
	index := writeMap(b, file, reduces, func(collect func(p int, key, value []byte)) {
		record := make([]byte, 98)
		const records = benchBytes / 100
		for i := m; i < records; i += maps {
			binary.BigEndian.PutUint64(record, random.Uint64())
			collect(i/maps%reduces, record[:10], record[10:])
		}
	})
	o := &wire.MapOutput{Map: m, Attempt: 1000, Digest: index.Digest()}
	for _, p := range index.Partitions {
		o.Bytes += p.Length
	}
	return o
}

// shuffle plays a job's shuffle, and returns the runs and the records that all reduces read.
func (x *benchTrackers) shuffle(b *testing.B, maps, reduces int) (runs, records int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, len(x.all))
	for i, t := range x.all {
		go func() { ended <- t.play(ctx, b, x.outputs, len(x.all), i, maps, reduces) }()
	}
	for range x.all {
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
	}
	for _, t := range x.all {
		for _, list := range t.runs {
			merged, err := shuffle.Merge(ctx, list, shuffle.MergeOptions{Dir: t.dir})
			if err != nil {
				b.Fatal(err)
			}
			for merged.Next() {
				records++
			}
			if err := merged.Err(); err != nil {
				b.Fatal(err)
			}
			merged.Close()
			runs += len(list)
		}
	}
	return runs, records
}

// play is the loop of a tracker, until all of its homes are complete and their reduces have started.
func (t *benchTracker) play(ctx context.Context, b *testing.B, outputs []wire.MapOutput, trackers, i, maps, reduces int) error {
	start := time.Now()
	homes := (reduces - i + trackers - 1) / trackers
	step := func(ev core.Event) error {
		for _, cmd := range t.core.Step(time.Since(start), ev) {
			if err := t.do(ctx, cmd); err != nil {
				return err
			}
		}
		return nil
	}
	first := []core.Event{core.RestoreEnded{}, core.StreamUp{}, core.FromLeader{Message: &wire.Welcome{Epoch: 1, Incarnation: 1, Lease: 1e3 * time.Hour}}}
	generation := wire.Generation{Epoch: 1, N: 1}
	for p := i; p < reduces; p += trackers {
		first = append(first, core.FromLeader{Message: &wire.SetHome{Epoch: 1, Job: benchJob, Partition: p, Generation: generation, Maps: maps}})
	}
	for from := 0; from < maps; from += 100 {
		first = append(first, core.FromLeader{Message: wire.OutputsOf(1, benchJob, outputs[from:min(from+100, maps)]...)})
	}
	for _, ev := range first {
		if err := step(ev); err != nil {
			return err
		}
	}
	for t.done < homes {
		if err := step(<-t.events); err != nil {
			return err
		}
	}
	for p := i; p < reduces; p += trackers {
		id := wire.AttemptID{Task: wire.TaskID{Job: benchJob, Kind: wire.Reduce, N: p}, N: 1000}
		if err := step(core.FromLeader{Message: &wire.Launch{Epoch: 1, Attempt: id, Staging: "s", Generation: generation}}); err != nil {
			return err
		}
	}
	for len(t.runs) < homes {
		if err := step(<-t.events); err != nil {
			return err
		}
	}
	return nil
}

func (t *benchTracker) do(ctx context.Context, cmd core.Command) error {
	switch c := cmd.(type) {
	case core.Send:
		if r, ok := c.Message.(*wire.HomeReport); ok && r.Complete {
			t.done++
		}
	case core.Fetch:
		t.gather.Fetch(ctx, c)
	case core.FetchBatch:
		t.gather.FetchBatch(ctx, c)
	case core.CancelFetch:
		t.gather.CancelFetch(c.Fetch)
	case core.Merge:
		t.gather.Merge(ctx, c)
	case core.CancelMerge:
		t.gather.CancelMerge(c.Merge)
	case core.Remove:
		if err := os.RemoveAll(c.Path); err != nil && !os.IsNotExist(err) {
			return err
		}
	case core.StartWorker:
		t.events <- core.FromWorker{Worker: c.Worker, Message: &wire.WorkerHello{Protocol: wire.WorkerProtocol}}
	case core.SendWorker:
		if run, ok := c.Message.(*wire.Run); ok {
			t.runs = append(t.runs, run.Runs)
		}
	case core.Hangup:
		return fmt.Errorf("%s: %s: %w", t.name, c.Reason, fs.ErrInvalid)
	}
	return nil
}
