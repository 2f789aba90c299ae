package sim

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/scheduler/heap"
	"github.com/quernmr/quern/scheduler/menu"
	"github.com/quernmr/quern/wire"
)

var (
	seeds     = flag.Int("seeds", 0, "number of seeds for TestStorms; 0: 500, or fewer with the race detector")
	firstSeed = flag.Uint64("seed", 1, "first seed of TestStorms")
)

// enoughStorms is the number of storms that must reach every expected event, and racedStorms the
// number under the race detector.
const enoughStorms, racedStorms = 500, 12

// withoutRace skips a test under the race detector, where it would take seven times as long. The
// gate also runs this package without it. Goroutines of a simulation take turns: the seeds of
// TestStorms are enough to find races.
func withoutRace(t *testing.T) {
	t.Helper()
	if raceEnabled {
		t.Skip("it runs without the race detector")
	}
}

// TestStorms runs enoughStorms random clusters, or with the race detector racedStorms. It shrinks a
// failing seed and prints the command that repeats it.
func TestStorms(t *testing.T) {
	t.Parallel()
	n := *seeds
	switch {
	case n > 0:
	case raceEnabled:
		n = racedStorms
	default:
		n = enoughStorms
	}
	outcomes, missing := make(map[wire.State]int), expected()
	var local, remote int64
	for i := range n {
		r := Run(Options{Seed: *firstSeed + uint64(i)})
		for s, n := range r.Outcomes {
			outcomes[s] += n
		}
		missing.add(r)
		local, remote = local+r.LocalMaps, remote+r.RemoteMaps
		if r.Violation != "" {
			t.Errorf("%s", explain(Shrink(r, 40)))
		}
	}
	t.Logf("succeeded %d, failed %d, killed %d", outcomes[wire.Succeeded], outcomes[wire.Failed], outcomes[wire.Killed])
	if n >= enoughStorms && (outcomes[wire.Succeeded] == 0 || outcomes[wire.Failed] == 0 || outcomes[wire.Killed] == 0) {
		t.Error("the storms do not reach every outcome")
	}
	t.Logf("maps on a node with their input %d, elsewhere %d", local, remote)
	if n >= enoughStorms && (local == 0 || remote == 0) {
		t.Error("the storms do not reach maps on a node with their input and elsewhere")
	}
	for what := range missing {
		if n >= enoughStorms {
			t.Errorf("no storm reached: %s", what)
		}
	}
}

func explain(r *Result) string {
	text := fmt.Sprintf("%s\n  %s\n", r.Violation, r.Command())
	for _, i := range r.Kept {
		text += fmt.Sprintf("  fault %d: %v\n", i, r.Faults[i])
	}
	return text
}

// TestCalm: without faults every job without a kill succeeds.
func TestCalm(t *testing.T) {
	for seed := range uint64(8) {
		r := Run(Options{Seed: seed, Calm: true})
		if r.Violation != "" || r.Outcomes[wire.Failed] > 0 {
			t.Errorf("%s: %s, outcomes %v", r.Command(), r.Violation, r.Outcomes)
		}
	}
}

// TestSickness: if one tracker fails all attempts, maps or reduces, no job fails while there are
// other trackers.
func TestSickness(t *testing.T) {
	withoutRace(t)
	left := map[Kind]int{Sick: 12, SickMaps: 12, SickReduces: 12}
	for seed := uint64(1); len(left) > 0; seed++ {
		faults := drawFaults(seed)
		last := len(faults) - 1
		if last < 0 || left[faults[last].Kind] == 0 {
			continue
		}
		if left[faults[last].Kind]--; left[faults[last].Kind] == 0 {
			delete(left, faults[last].Kind)
		}
		if r := Run(Options{Seed: seed, Keep: []int{last}}); r.Violation != "" {
			t.Errorf("%v: %s: %.500s", faults[last], r.Command(), r.Violation)
		}
	}
}

// TestBadRecords: storms in which some tasks have a record that ends each of their attempts. Attempts skip
// that record only, also under later leaders. Without faults every job succeeds.
func TestBadRecords(t *testing.T) {
	withoutRace(t)
	skips := 0
	for seed := range uint64(60) {
		r := Run(Options{Seed: seed, Calm: seed < 8, BadRecords: true})
		skips += r.Skips
		if r.Violation != "" || r.Options.Calm && r.Outcomes[wire.Failed] > 0 {
			t.Errorf("%s, with bad records: %.500s, outcomes %v", r.Command(), r.Violation, r.Outcomes)
		}
	}
	if skips < 100 {
		t.Errorf("only %d attempts have skipped a record", skips)
	}
}

// TestMapFiles: storms in which maps of jobs with reduces write files. Also when map outputs are lost, attempts are killed,
// leaders change and records are skipped, a successful job has the files of each map once.
func TestMapFiles(t *testing.T) {
	withoutRace(t)
	again := 0
	for seed := range uint64(150) {
		r := Run(Options{Seed: seed, Calm: seed < 8, MapFiles: true, BadRecords: seed%4 == 3})
		again += r.MapsAgain
		if r.Violation != "" || r.Options.Calm && r.Outcomes[wire.Failed] > 0 {
			t.Errorf("%s, with files of maps: %.500s, outcomes %v", r.Command(), r.Violation, r.Outcomes)
		}
	}
	t.Logf("%d attempts have found the files of their map published", again)
	if again < 50 {
		t.Errorf("only %d attempts have found the files of their map published", again)
	}
}

// TestDeadline: a run with more work left than the bound allows ends later. Endless repetition
// still fails.
func TestDeadline(t *testing.T) {
	for tasks, ends := range map[int]bool{100: true, 1: false} {
		w := &world{now: stormTime, events: heap.New(nil, earlier), attemptTime: 2 * time.Second, book: newBook(&Result{})}
		c := &client{w: w}
		w.clients = []*client{c}
		for i := range 100 {
			w.after(time.Duration(i)*w.attemptTime/2, func() {
				w.book.launchedSinceCalm[wire.TaskID{Kind: wire.Map, N: i % tasks}] = true
			})
		}
		w.after(2*recoveryTime, func() { c.ids = []wire.JobID{} })
		if got := w.runToEnd(); got != ends {
			t.Errorf("%d tasks: the run ends in time: %v", tasks, got)
		}
	}
}

// TestRepeats: two runs of a seed have the same events and commands.
func TestRepeats(t *testing.T) {
	withoutRace(t)
	for seed := uint64(1); seed <= 8; seed++ {
		one, two := Run(Options{Seed: seed, Digest: true}), Run(Options{Seed: seed, Digest: true})
		if one.Steps != two.Steps || one.Digest != two.Digest || one.Digest == 0 || !slices.Equal(one.Trace, two.Trace) {
			t.Errorf("seed %d: the first run has %d events, the second %d, or different ones", seed, one.Steps, two.Steps)
		}
	}
}

// TestShrink: the same few faults of a failing run remain, and their command repeats the run.
func TestShrink(t *testing.T) {
	r := Run(Options{Seed: 1, sabotage: keepStaging})
	small := Shrink(r, 100)
	if small.Violation == "" || len(small.Kept) > 0 {
		t.Errorf("%d of %d faults remain: %s", len(small.Kept), len(r.Kept), small.Violation)
	}
	if got, want := small.Command(), "go run ./cmd/mrsim cluster -seed 1 -keep none"; got != want {
		t.Errorf("command %q, want %q", got, want)
	}
	r = &Result{Options: Options{Seed: 7, Keep: []int{2, 5}}, Kept: []int{2, 5}}
	if got, want := r.Command(), "go run ./cmd/mrsim cluster -seed 7 -keep 2,5"; got != want {
		t.Errorf("command %q, want %q", got, want)
	}
}

// missing has the expected events that no run has had yet, with their texts in the trace.
type missing map[string]string

func expected() missing {
	r := missing{
		"a fence revokes a grant":                ": revoked ",
		"a fence finds a commit":                 "_f_",
		"a tracker is lost":                      ": lost t",
		"an entry is lost with its leader":       "lost: ",
		"an outcome is unknown":                  "undecided and lost: ",
		"a call comes after its process's death": "late: ",
		"a disk spoils a file":                   " spoils ",
		"an output outlives its tracker":         " has kept ",
		"a limit is exceeded":                    "101 MiB",
		"a tracker leaves a silent leader":       "nothing was heard from the leader",
		"an attempt hangs":                       "no progress for",
		"a worker does not start":                "resource temporarily unavailable",
		"a tracker is excluded":                  ": excluded ",
		"a tracker is drained":                   " has drained and leaves",
		"a job is cleaned up":                    "_x_",
		"a job stops others of its flow":         "stops 1 others of its flow",
		"a disk fails":                           "input/output error",
		"an attempt is killed on request":        "failed false, is answered <nil>",
		"an attempt is failed on request":        "failed true, is answered <nil>",
	}
	for _, name := range menu.Names() {
		r["scheduler "+name] = "policy " + name + " has answered"
	}
	for what, text := range map[string]string{"settings change": ": settings-changed key", "scheduling changes": ": scheduling-changed ", "pools change": ": pools-changed "} {
		r[what] = text
	}
	for _, k := range append(timedFaults(), sicknesses()...) {
		r["fault: "+string(k)] = "s " + string(k)
	}
	for _, k := range refusals() {
		r["fault: "+string(k)] = "fault: " + string(k)
	}
	return r
}

// add removes the events that a run has had.
func (r missing) add(x *Result) {
	for what, text := range r {
		if slices.ContainsFunc(x.Trace, func(line string) bool { return strings.Contains(line, text) }) {
			delete(r, what)
		}
	}
}

// TestSabotage: the checks notice each rule that is switched off.
func TestSabotage(t *testing.T) {
	withoutRace(t)
	for _, s := range sabotages() {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			const enough = 400
			for seed := uint64(1); seed <= enough; seed++ {
				if r := Run(Options{Seed: seed, sabotage: s}); r.Violation != "" {
					t.Logf("seed %d: %.200s", seed, r.Violation)
					return
				}
			}
			t.Errorf("the checks did not notice in %d seeds that %s", enough, s)
		})
	}
}

func sabotages() []sabotage {
	return []sabotage{
		keepStaging, replaceTargets, skipFences, commitUngranted, ignoreKills, keepOrphans, skipChecksums, hideDigests,
		announceSlots, announceRoom, keepJobs, applyEarly, swapEntries, oldSnapshots, loseProposals,
	}
}
