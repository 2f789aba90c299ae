package runtime

import (
	"cmp"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/quernmr/quern/shuffle"
	"github.com/quernmr/quern/wire"
)

// mapOutputName is the name of a map's segment file in its attempt's directory.
const mapOutputName = "output"

func (a *attempt) runMap() error {
	if err := a.loadCuts(); err != nil {
		return err
	}
	split, err := a.openSplit(a.id().Task.N)
	if err != nil {
		return err
	}
	defer split.close()
	if err := a.startSkipping(); err != nil {
		return err
	}
	defer a.skip.close()
	split.skip = a.skip
	a.bytesTotal.Store(split.length())
	a.split.Store(split)
	code := a.job.Maps[split.Input]
	if a.plan().Reduces == 0 {
		err = a.writeOutputs(wire.MapOutputRecords, func() error {
			err := a.runCode(func() error { return code(a.task, split, nil) }, split.Where)
			a.failedInCode(err, split.err, a.task.outputs.err())
			a.countInput(split)
			if err = cmp.Or(split.err, err); err != nil {
				return err
			}
			return a.keepSkipped()
		})
	} else {
		err = a.writeMapFiles(func() error { return a.collect(split, code) })
	}
	a.result.Bytes, a.result.Reads = split.bytesRead(), split.meter.sum()
	return err
}

// collect runs a map with sorted output for reduces.
func (a *attempt) collect(split *Split, code MapFunc) error {
	if collect := a.worker.opts.Collect; collect != nil {
		err := a.runCode(func() error { return code(a.task, split, nil) }, split.Where)
		if err := cmp.Or(split.err, err); err != nil {
			return err
		}
		a.result.Output, err = collect(a.id())
		return err
	}
	config := shuffle.Config{Partitions: a.plan().Reduces, Memory: a.settings.sortBytes, Dir: a.cmd.Dir,
		File: filepath.Join(a.cmd.Dir, mapOutputName), MaxRecord: int64(a.settings.recordMax),
		Codec: a.settings.mapCodec, OnProgress: func() { a.task.pulse.beat() }, Kept: a.worker.sortMemory}
	if a.job.Combine != nil {
		config.Combine = func(in Records, emit func(key, value []byte) error) error {
			a.task.combining = nil
			return protect(func() error {
				a.task.pulse.beat()
				return a.job.Combine(a.task, in, emit)
			}, a.task.whereCombining)
		}
	}
	if a.settings.mapCodec == shuffle.AutoCodec && a.cmd.Network != nil {
		config.Network = a.networkOf(a.cmd.Network)
	}
	collector, err := shuffle.NewCollector(config)
	if err != nil {
		return err
	}
	defer collector.Discard() // keeps the file of a successful Close
	var out Collector = collector
	watched := &watchedCollector{Collector: collector}
	if a.skip != nil {
		out = watched
	}
	err = a.runCode(func() error { return code(a.task, split, out) }, split.Where)
	a.failedInCode(err, split.err, watched.err)
	// An input error comes first: the code's own error or panic may follow from it.
	if err := cmp.Or(split.err, err); err != nil {
		return err
	}
	written, err := collector.Close()
	if err != nil {
		return err
	}
	a.countOutput(written)
	a.countChoice(written.Choice)
	a.result.Output = &wire.MapOutput{Map: a.id().Task.N, Attempt: a.id().N, Bytes: written.Partitions, Digest: written.Digest}
	a.countInput(split)
	return a.keepSkipped()
}

// Combining sets a function that says what the combiner is doing, for the message of a panic.
func (t *Task) Combining(where func() string) { t.combining = where }

func (t *Task) whereCombining() string {
	if t.combining == nil {
		return ""
	}
	return t.combining()
}

func (a *attempt) countInput(split *Split) {
	read := split.bytesRead()
	a.counters.Add(wire.TaskCounters, wire.MapInputRecords, split.records)
	a.counters.Add(wire.InputCounters, wire.BytesRead, read)
	a.counters.Add(wire.TaskCounters, wire.SplitBytes, hadoopSplitBytes(split.chunks))
	countReads(a.counters, split.meter.sum())
	if len(split.chunks) > 0 {
		countBytes(a.counters, split.chunks[0].Path, wire.BytesRead, split.rawBytes.Load())
	}
}

// hadoopSplitBytes returns the size of Hadoop's descriptions of splits: of each a Text with the class, a Text with
// the path, and two longs. A Text begins with its length, a vint. A split without a file has none.
func hadoopSplitBytes(chunks []Chunk) (size int64) {
	const class = "org.apache.hadoop.mapreduce.lib.input.FileSplit"
	for _, c := range chunks {
		if c.Path == "" {
			continue
		}
		scheme, path, _ := strings.Cut(c.Path, "://")
		n := len(scheme) + len(":") + len(path) // an authority follows two slashes, an absolute path none
		if !strings.HasPrefix(path, "/") {
			n += len("//")
		}
		size += int64(1 + len(class) + 1 + n + 8 + 8)
		if n > 127 {
			size += int64(bits.Len(uint(n))+7) / 8
		}
	}
	return size
}

func (a *attempt) countOutput(out shuffle.Output) {
	for name, n := range map[string]int64{
		wire.MapOutputRecords:     out.Stats.Records,
		wire.MapOutputBytes:       out.Stats.Bytes,
		wire.MapOutputFileBytes:   out.Bytes,
		wire.SpilledRecords:       out.Stats.Spilled,
		wire.CombineInputRecords:  out.Stats.CombineIn,
		wire.CombineOutputRecords: out.Stats.CombineOut,
	} {
		a.counters.Add(wire.TaskCounters, name, n)
	}
}

// networkOf returns what the choice of a codec needs to know. The map begins now.
func (a *attempt) networkOf(n *wire.Network) shuffle.Network {
	began := a.now()
	ran, waited := runDelay()
	return shuffle.Network{Rate: n.Rate, Remote: n.Remote, Slots: n.Slots, Spent: func() (time.Duration, float64) {
		return a.now().Sub(began), stretch(ran, waited)
	}}
}

// countChoice counts and logs a codec that was chosen for the map output.
func (a *attempt) countChoice(c shuffle.Choice) {
	if a.settings.mapCodec != shuffle.AutoCodec {
		return
	}
	a.counters.Add(wire.QuernCounters, wire.MapOutputsPrefix+strings.ToUpper(cmp.Or(c.Codec, "plain")), 1)
	if !a.worker.opts.InProcess {
		fmt.Fprintf(os.Stderr, "codec of map output: %s, because %s\n", cmp.Or(c.Codec, "none"), c.Reason)
	}
}

func (a *attempt) runReduce() error {
	if err := a.loadCuts(); err != nil {
		return err
	}
	var length int64
	for _, s := range a.cmd.Runs {
		length += s.Length
	}
	a.bytesTotal.Store(length)
	a.counters.Add(wire.TaskCounters, wire.ReduceShuffleBytes, length)
	a.result.Bytes = length
	return a.writeOutputs(wire.ReduceOutputRecords, func() error {
		began := a.now()
		merger, err := shuffle.Merge(a.task.Ctx, a.cmd.Runs, shuffle.MergeOptions{Dir: a.cmd.Dir,
			Client: a.worker.opts.Client, OnProgress: func() { a.task.pulse.beat() }, Clock: a.worker.opts.Clock})
		if err != nil {
			return fmt.Errorf("open the partition's runs: %w", err)
		}
		defer merger.Close()
		opened := a.now().Sub(began) - merger.ReadTime()
		if err := a.startSkipping(); err != nil {
			return err
		}
		defer a.skip.close()
		counted := &countedRecords{Merger: merger, attempt: a, groups: NewGroups(length)}
		var in Records = counted
		if a.skip != nil {
			in = &groupRecords{counted, a.skip}
		}
		err = a.runCode(func() error { return a.job.Reduce(a.task, in) }, counted.groups.Where)
		a.hot.Store(counted.groups.Hot(a.hot.Load()))
		a.failedInCode(err, merger.Err(), a.task.outputs.err())
		a.counters.Add(wire.TaskCounters, wire.ReduceInputRecords, counted.records)
		a.result.Shuffled = opened + merger.ReadTime()
		if err = cmp.Or(merger.Err(), err); err != nil {
			return err
		}
		return a.keepSkipped()
	})
}

// countedRecords counts the records that a reduce reads.
type countedRecords struct {
	*shuffle.Merger
	attempt *attempt
	records int64
	groups  *Groups
}

func (m *countedRecords) Next() bool {
	if m.attempt.task.pulse.requested.Load() {
		m.attempt.bytesMerged.Store(m.BytesRead())
		m.attempt.hot.Store(m.groups.Hot(m.attempt.hot.Load()))
		if !m.attempt.task.pulse.answer() {
			return false
		}
	}
	if !m.Merger.Next() {
		m.groups.Next(0)
		return false
	}
	m.groups.Next(m.Size())
	m.records++
	return true
}

// Repeats skips records that equal the current one, and counts them; see [shuffle.Merger].
func (m *countedRecords) Repeats() int {
	n := m.Merger.Repeats()
	m.groups.repeat(int64(n))
	m.records += int64(n)
	return n
}

// Groups returns the measurement of groups, for the code that knows them.
func (m *countedRecords) Groups() *Groups { return m.groups }
