package locality_test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/quernmr/quern/locality"
)

// TestScenarios runs testdata/*.txt. Directives:
//
//	rule TEXT                 the result of ParseRule
//	decide RULE               the decisions on offers, one a line as in
//	                          "spell=2s total=1s overhead=4s local=3s contended stranded average=1s"
//	wait                      a Wait after each line: "defer 2s", "settle 3s", "restart 4s" or "at 5s"
//	meter                     Meter.Wait for a MiB after each line: "local BYTES TIME" or
//	                          "remote BYTES TIME"
//	predict                   the result of Predict for nodes, one a line as in
//	                          "2s 5s ahead=3 task=4s"
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	directives := map[string]func(*testing.T, *datadriven.TestData) string{
		"rule": rule, "decide": decide, "wait": wait, "meter": meter, "predict": predict,
	}
	for _, path := range paths {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			run, ok := directives[d.Cmd]
			if !ok {
				d.Fatalf(t, "unknown directive %q", d.Cmd)
			}
			return run(t, d)
		})
	}
}

func rule(t *testing.T, d *datadriven.TestData) string {
	var out strings.Builder
	for line := range strings.Lines(d.Input) {
		if r, err := locality.ParseRule(strings.TrimSpace(line)); err != nil {
			fmt.Fprintln(&out, err)
		} else {
			fmt.Fprintln(&out, r)
		}
	}
	return out.String()
}

func duration(t *testing.T, d *datadriven.TestData, text string) time.Duration {
	x, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%q: %v", text, err)
	}
	return x
}

func decide(t *testing.T, d *datadriven.TestData) string {
	r, err := locality.ParseRule(d.CmdArgs[0].String())
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	var out strings.Builder
	for line := range strings.Lines(d.Input) {
		var o locality.Offer
		for _, word := range strings.Fields(line) {
			name, value, _ := strings.Cut(word, "=")
			switch name {
			case "contended":
				o.Contended = true
			case "stranded":
				o.Stranded = true
			case "spell":
				o.Spell = duration(t, d, value)
			case "total":
				o.Total = duration(t, d, value)
			case "average":
				o.Average = duration(t, d, value)
			case "overhead":
				o.Overhead = duration(t, d, value)
			case "local":
				o.Local, o.Predicted = duration(t, d, value), true
			default:
				d.Fatalf(t, "%q", word)
			}
		}
		if answer := r.Decide(o); answer.Launch {
			fmt.Fprintln(&out, "launch")
		} else {
			fmt.Fprintln(&out, "again in", answer.Again)
		}
	}
	return out.String()
}

func wait(t *testing.T, d *datadriven.TestData) string {
	var w locality.Wait
	var out strings.Builder
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		now := duration(t, d, words[1])
		switch words[0] {
		case "defer":
			w.Defer(now)
		case "settle":
			w.Settle(now)
		case "restart":
			w.Restart(now)
		}
		fmt.Fprintf(&out, "spell %v total %v\n", w.Spell(now), w.Total(now))
	}
	return out.String()
}

func meter(t *testing.T, d *datadriven.TestData) string {
	var m locality.Meter
	var out strings.Builder
	for line := range strings.Lines(d.Input) {
		var kind, took string
		var bytes int64
		if _, err := fmt.Sscan(line, &kind, &bytes, &took); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		m.Add(locality.Read{Remote: kind == "remote", Bytes: bytes, Took: duration(t, d, took)})
		fmt.Fprintln(&out, m.Wait(1<<20).Round(time.Microsecond))
	}
	return out.String()
}

func predict(t *testing.T, d *datadriven.TestData) string {
	var nodes []locality.Node
	for line := range strings.Lines(d.Input) {
		var n locality.Node
		for _, word := range strings.Fields(line) {
			switch name, value, _ := strings.Cut(word, "="); name {
			case "ahead":
				if _, err := fmt.Sscan(value, &n.Ahead); err != nil {
					d.Fatalf(t, "%q: %v", word, err)
				}
			case "task":
				n.Task = duration(t, d, value)
			default:
				n.Releases = append(n.Releases, duration(t, d, word))
			}
		}
		nodes = append(nodes, n)
	}
	at, ok := locality.Predict(nodes)
	return fmt.Sprintln(at, ok)
}

// TestBounded checks L1 and L2: no task is deferred longer in total than its
// rule's limit, and Decision.Again never exceeds the rest of it.
func TestBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := time.Duration(rapid.IntRange(0, 10).Draw(t, "limit")) * time.Second
		r := rapid.SampledFrom([]locality.Rule{
			{Kind: locality.None}, {Kind: locality.Fixed, Delay: limit}, {Kind: locality.Paper}, {Kind: locality.Dynamic},
		}).Draw(t, "rule")
		var w locality.Wait
		now, firstTotal, deferred := time.Duration(0), time.Duration(0), false
		waited, deferring := time.Duration(0), false // computed here, without Wait
		for range rapid.IntRange(0, 30).Draw(t, "rounds") {
			step := time.Duration(rapid.IntRange(0, 4).Draw(t, "step")) * time.Second
			now += step
			if deferring {
				waited += step
			}
			if rapid.Bool().Draw(t, "no offer") {
				w.Settle(now)
				deferring = false
				continue
			}
			o := locality.Offer{
				Spell: w.Spell(now), Average: limit, Overhead: limit,
				Contended: rapid.Bool().Draw(t, "contended"), Predicted: rapid.Bool().Draw(t, "predicted"),
				Local: time.Duration(rapid.IntRange(0, 20).Draw(t, "local")) * time.Second,
			}
			if deferred {
				o.Total = w.Total(now) - firstTotal
			}
			if o.Total != waited {
				t.Fatalf("Total grows by %v, want %v", o.Total, waited)
			}
			answer := r.Decide(o)
			if answer.Launch {
				return
			}
			if waited >= limit || answer.Again <= 0 || answer.Again > limit-waited {
				t.Fatalf("deferred after %v of %v, next decision in %v", waited, limit, answer.Again)
			}
			w.Defer(now)
			if !deferred {
				deferred, firstTotal = true, w.Total(now)
			}
			deferring = true
		}
	})
}

// TestPredict compares Predict with a simulation that puts tasks one by one into the slot that is
// free first. All tasks take the same time, and all slots are released within it.
func TestPredict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		task := time.Duration(rapid.IntRange(1, 9).Draw(t, "task")) * time.Second
		n := locality.Node{Task: task}
		at := time.Duration(0)
		for range rapid.IntRange(1, 4).Draw(t, "slots") {
			at = min(task, at+time.Duration(rapid.IntRange(0, 3).Draw(t, "release"))*time.Second)
			n.Releases = append(n.Releases, at)
		}
		ahead := rapid.IntRange(0, 20).Draw(t, "ahead")
		n.Ahead = float64(ahead)
		got, ok := locality.Predict([]locality.Node{n})
		free := append([]time.Duration(nil), n.Releases...)
		for range ahead {
			free[least(free)] += task
		}
		if want := free[least(free)]; !ok || got != want {
			t.Fatalf("predicted %v, one by one %v", got, want)
		}
	})
}

func least(free []time.Duration) int {
	first := 0
	for i, at := range free {
		if at < free[first] {
			first = i
		}
	}
	return first
}

// TestMeasures: meaningless reads and paces are ignored, and results stay bounded.
func TestMeasures(t *testing.T) {
	var m locality.Meter
	for _, r := range []locality.Read{
		{Remote: true, Bytes: 0, Took: time.Second},
		{Remote: true, Bytes: -1, Took: time.Second},
		{Remote: true, Bytes: 1, Took: 0},
		{Remote: false, Bytes: 1, Took: -time.Second},
	} {
		if m.Add(r); m != (locality.Meter{}) {
			t.Errorf("%+v changed the meter to %+v", r, m)
		}
	}
	m.Add(locality.Read{Remote: true, Bytes: 1, Took: math.MaxInt64})
	if got := m.Wait(math.MaxInt64); got != locality.MaxDelay {
		t.Errorf("wait of %v", got)
	}
	var p locality.Pace
	p.Add(false, 0)
	p.Add(true, -time.Second)
	if p != (locality.Pace{}) {
		t.Errorf("pace %+v", p)
	}
	if _, ok := p.Left(false, time.Second); ok {
		t.Error("a pace is known")
	}
	p.Add(false, 4*time.Second)
	p.Add(true, 10*time.Second)
	p.Add(true, 20*time.Second)
	if p.Local != 4*time.Second || p.Remote != 12*time.Second {
		t.Errorf("pace %+v", p)
	}
	if left, ok := p.Left(true, 5*time.Second); !ok || left != 7*time.Second {
		t.Errorf("left %v", left)
	}
	if left, ok := p.Left(false, 5*time.Second); !ok || left != 0 {
		t.Errorf("late task has left %v", left)
	}
	a := locality.Average(locality.Start)
	for _, remote := range []time.Duration{0, 2500 * time.Millisecond, -time.Second} {
		a.Add(remote)
	}
	if a != locality.Average(time.Second) {
		t.Errorf("average %v", time.Duration(a))
	}
	for _, ahead := range []float64{math.NaN(), -1, math.Inf(-1)} {
		releases := []time.Duration{1, 2, 3}
		if at, ok := locality.Predict([]locality.Node{{Releases: releases, Ahead: ahead}, {}}); !ok || at != 1 {
			t.Errorf("with %v ahead: predicted %v, %v", ahead, at, ok)
		}
	}
}
