package health

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/quernmr/quern/wire"
)

// TestScenarios runs the scenarios in testdata. The clock begins at 0. Tasks belong to job=1 by
// default. TASKS is m1 or m1-m4 or r1 in these directives:
//
//	trackers N [slots=S]           N trackers with S map slots and S reduce slots each, default 1
//	wait TIME
//	fails T TASKS [took=TIME]      attempts end now that were launched TIME ago, default 1s
//	succeeds T TASKS [took=TIME]   the same, with success
//	runs T TASKS [took=TIME]       attempts run that were launched TIME ago
//	disks T N                      the tracker reports that it stopped using disks N times
//	log T                          the log applies the proposal, or ends the exclusion
//	refuse T                       the log drops the proposal
//	drains T
//	show                           print the state of each tracker
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d scenarios: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			var w *world
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				if d.Cmd == "trackers" {
					w = newWorld(number(t, d, 0), option(t, d, "slots", 1))
					return ""
				}
				w.directive(t, d)
				w.check()
				for _, wrong := range w.differences {
					d.Fatalf(t, "%s", wrong)
				}
				said := w.output
				w.output = nil
				return strings.Join(said, "\n")
			})
		})
	}
}

func (w *world) directive(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "wait":
		w.now += duration(t, d, d.CmdArgs[0].Key)
		return
	case "show":
		w.show()
		return
	}
	on := w.tracker(t, d)
	switch d.Cmd {
	case "fails", "succeeds", "runs":
		took := time.Second
		if d.HasArg("took") {
			var text string
			d.ScanArgs(t, "took", &text)
			took = duration(t, d, text)
		}
		for _, task := range tasks(t, d) {
			w.launch(on, task)
			last := len(w.attempts) - 1
			w.attempts[last].began = w.now - took
			switch d.Cmd {
			case "fails":
				w.end(last, wire.AttemptFailed)
			case "succeeds":
				w.end(last, wire.AttemptSucceeded)
			}
		}
	case "disks":
		w.dropDisks(on, number(t, d, 1))
	case "log":
		w.applyExclusion(on, !on.Excluded())
	case "refuse":
		w.dropProposal(on)
	case "drains":
		on.draining = true
	default:
		d.Fatalf(t, "unknown directive %q", d.Cmd)
	}
}

// show prints the state of all Records.
func (w *world) show() {
	for _, t := range w.trackers {
		line := fmt.Sprintf("%s blame=%d next=%v", t.name, t.blamed(w.now), t.Length())
		for phase, name := range []string{"maps", "reduces"} {
			if t.Suspect(phase) {
				line += " suspect=" + name
			}
		}
		if t.Excluded() {
			line += " excluded"
		}
		w.output = append(w.output, line)
	}
}

func (w *world) tracker(t *testing.T, d *datadriven.TestData) *tracker {
	for _, on := range w.trackers {
		if len(d.CmdArgs) > 0 && on.name == d.CmdArgs[0].Key {
			return on
		}
	}
	d.Fatalf(t, "%s: which tracker?", d.Cmd)
	return nil
}

// tasks parses the second argument, such as m1-m4.
func tasks(t *testing.T, d *datadriven.TestData) (list []wire.TaskID) {
	first, last, many := strings.Cut(d.CmdArgs[1].Key, "-")
	if !many {
		last = first
	}
	var from, to int
	kind := map[byte]wire.Kind{'m': wire.Map, 'r': wire.Reduce}[first[0]]
	if _, err := fmt.Sscanf(first[1:]+" "+last[1:], "%d %d", &from, &to); err != nil || kind == 0 || from > to {
		d.Fatalf(t, "no tasks: %q", d.CmdArgs[1].Key)
	}
	for n := from; n <= to; n++ {
		list = append(list, wire.TaskID{Job: wire.JobID{Start: 1, N: option(t, d, "job", 1)}, Kind: kind, N: n})
	}
	return list
}

func option(t *testing.T, d *datadriven.TestData, name string, n int) int {
	if d.HasArg(name) {
		d.ScanArgs(t, name, &n)
	}
	return n
}

func number(t *testing.T, d *datadriven.TestData, arg int) (n int) {
	if _, err := fmt.Sscan(d.CmdArgs[arg].Key, &n); err != nil {
		d.Fatalf(t, "%v", err)
	}
	return n
}

func duration(t *testing.T, d *datadriven.TestData, text string) time.Duration {
	took, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return took
}
