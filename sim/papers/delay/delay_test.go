package delay

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quernmr/quern/sim/papers"
)

// seeded sets a workload's random numbers.
func seeded(w *workload, seed uint64) *workload {
	w.seed = func(name string) *rand.Rand { return papers.Rand(seed, name, 0) }
	return w
}

// small draws a workload of any kind, including blocks without replicas.
func small(t *rapid.T) *workload {
	w := &workload{
		nodes: rapid.IntRange(1, 4).Draw(t, "nodes"), slots: rapid.IntRange(1, 3).Draw(t, "slots"),
		block: 64 * mega, replicas: rapid.IntRange(0, 3).Draw(t, "replicas"),
		compute: time.Duration(rapid.IntRange(0, 8).Draw(t, "compute")) * time.Second,
		remote:  time.Duration(rapid.IntRange(0, 8).Draw(t, "remote")) * time.Second,
		queries: rapid.IntRange(1, 4).Draw(t, "jobs"),
	}
	w.holders = rapid.IntRange(0, w.nodes).Draw(t, "holders")
	for q := range w.queries {
		w.specs = append(w.specs, spec{
			name: "job", query: q, bytes: 64 * mega * int64(rapid.IntRange(1, 12).Draw(t, "blocks")),
			arrives: time.Duration(rapid.IntRange(0, 10).Draw(t, "arrives")) * time.Second,
		})
	}
	return seeded(w, rapid.Uint64().Draw(t, "seed"))
}

// TestRun: under every rule each task runs once, on its node. No node has more tasks than slots
// at a time. A task is remote only if it has no replica there.
func TestRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := small(t)
		p := rapid.SampledFrom(policies()).Draw(t, "policy")
		c := run(w, p, measurements{})
		ends := make([]time.Duration, w.queries)
		starts := make([][]*task, w.nodes)
		for _, j := range c.all {
			for _, task := range j.tasks {
				if !task.launched || task.started < j.arrives || task.remote == slices.Contains(task.replicas, task.node) {
					t.Fatalf("task %+v", task)
				}
				ends[j.query] = max(ends[j.query], task.ends)
				starts[task.node] = append(starts[task.node], task)
			}
		}
		if !slices.Equal(ends, c.queryEnds) {
			t.Fatalf("ends %v, tasks %v", c.queryEnds, ends)
		}
		for n, tasks := range starts {
			for _, at := range tasks {
				running := 0
				for _, other := range tasks {
					if other.started <= at.started && at.started < other.ends {
						running++
					}
				}
				if running > w.slots {
					t.Fatalf("node %d runs %d tasks in %d slots", n, running, w.slots)
				}
			}
		}
	})
}

// TestNoneIsListScheduling: if every task is local everywhere, each takes the slot that is free
// first, under every rule.
func TestNoneIsListScheduling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := small(t)
		w.replicas, w.holders, w.queries, w.specs = w.nodes, 0, 1, w.specs[:1]
		c := run(w, rapid.SampledFrom(policies()).Draw(t, "policy"), measurements{})
		free := slices.Repeat([]time.Duration{w.specs[0].arrives}, w.nodes*w.slots)
		for _, task := range c.all[0].tasks {
			first := slices.Index(free, slices.Min(free))
			free[first] += task.local + task.compute
		}
		if want := slices.Max(free); c.queryEnds[0] != want {
			t.Fatalf("ends at %v, list scheduling at %v", c.queryEnds[0], want)
		}
	})
}

// TestStranded: no rule waits for blocks without a live replica.
func TestStranded(t *testing.T) {
	w := seeded(sorting(3, time.Second), 1)
	w.replicas = 0
	want := run(w, policy{}, measurements{}).queryEnds[0]
	for _, p := range policies() {
		if got := run(w, p, measurements{}).queryEnds[0]; got != want {
			t.Errorf("%s ends at %v, none at %v", p.name, got, want)
		}
	}
}

// TestTables: the mix has known tables and the paper's 110 GB.
func TestTables(t *testing.T) {
	total := int64(0)
	for _, size := range tables {
		total += size
	}
	if gb := float64(total) / 1e9; gb < 109 || gb > 111 {
		t.Errorf("%v GB", gb)
	}
	if len(queries) != 19 {
		t.Errorf("%d queries", len(queries))
	}
	for _, q := range queries {
		for _, table := range q.tables {
			if tables[table] == 0 {
				t.Errorf("%s scans %s", q.name, table)
			}
		}
	}
}

// TestSimulate: figures are in their bands, a seed is repeatable, and the page has every
// figure.
func TestSimulate(t *testing.T) {
	o := papers.Options{Seed: 3, Experiments: leastForBand}
	s := &simulation{context.Background(), o, &papers.Report{Options: o}, []float64{1, 6}}
	if err := papers.RunFigures(s.sort, s.busy); err != nil {
		t.Fatal(err)
	}
	mix := &simulation{context.Background(), o, s.report, []float64{4}}
	if err := papers.RunFigures(mix.tpch, mix.queries); err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, row := range s.report.Rows {
		if banded, _ := row.Within(); banded {
			tested++
		}
	}
	if want := 2*2*2 + 2 + 4; tested != want { // sort, busy host, mixes
		t.Errorf("%d figures have bands, want %d", tested, want)
	}
	for _, row := range s.report.Missed() {
		t.Errorf("%s %s %s: %v", row.Figure, row.Point, row.Policy, *row.Value)
	}
	again := &simulation{context.Background(), o, new(papers.Report), []float64{1, 6}}
	if err := again.sort(); err != nil {
		t.Fatal(err)
	}
	for i, row := range again.report.Rows {
		if *row.Value != *s.report.Rows[i].Value {
			t.Fatalf("the same seed gives other figures: %+v", row)
		}
	}
	var page bytes.Buffer
	if err := WritePage(&page, s.report, "plots"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| remote=6s |", "| replicas=3 overlapping |", "](plots/delay-3-queries.svg)"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestSimulateStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Simulate(ctx, papers.Options{}); err == nil {
		t.Error("a cancelled simulation returns no error")
	}
}

// BenchmarkRun is the TPC-H mix, overlapping, some 12,000 tasks.
func BenchmarkRun(b *testing.B) {
	w := seeded(tpch(3, true, time.Second, papers.Rand(1, "bench", 0)), 1)
	for _, p := range policies() {
		b.Run(strings.ReplaceAll(p.name, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				run(w, p, measurements{})
			}
		})
	}
}
