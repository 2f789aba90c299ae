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
	seeds     = flag.Int("seeds", 0, "how many seeds TestStorms plays; 0: as many as fit")
	firstSeed = flag.Uint64("seed", 1, "the first of them")
)

// enough is how many storms must reach all that storms are for.
const enough = 100

// TestStorms plays random clusters: 500, under the race detector as many as fit
// beside the others' tests (the test of cmd/mrsim plays 500 without it). A failing
// seed is shrunk and printed as the command that plays it again.
func TestStorms(t *testing.T) {
	t.Parallel()
	n := *seeds
	switch {
	case n > 0:
	case raceEnabled:
		n = enough
	default:
		n = 500
	}
	outcomes, missing := make(map[wire.State]int), toReach()
	var near, far int64
	for i := range n {
		r := Run(Options{Seed: *firstSeed + uint64(i)})
		for s, n := range r.Outcomes {
			outcomes[s] += n
		}
		missing.add(r)
		near, far = near+r.NearMaps, far+r.FarMaps
		if r.Violation != "" {
			t.Errorf("%s", explain(Shrink(r, 40)))
		}
	}
	t.Logf("succeeded %d, failed %d, killed %d", outcomes[wire.Succeeded], outcomes[wire.Failed], outcomes[wire.Killed])
	if n >= enough && (outcomes[wire.Succeeded] == 0 || outcomes[wire.Failed] == 0 || outcomes[wire.Killed] == 0) {
		t.Error("the storms do not reach every outcome")
	}
	t.Logf("maps near their input %d, elsewhere %d", near, far)
	if n >= enough && (near == 0 || far == 0) {
		t.Error("the storms do not reach maps of every level")
	}
	for what := range missing {
		if n >= enough {
			t.Errorf("in no storm: %s", what)
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

// TestCalm: without faults every job that nobody kills succeeds.
func TestCalm(t *testing.T) {
	for seed := range uint64(8) {
		r := Run(Options{Seed: seed, Calm: true})
		if r.Violation != "" || r.Outcomes[wire.Failed] > 0 {
			t.Errorf("%s: %s, outcomes %v", r.Command(), r.Violation, r.Outcomes)
		}
	}
}

// TestSickness: a tracker that fails all that it runs, or all maps or reduces, fails no
// job as long as there are others.
func TestSickness(t *testing.T) {
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

// TestDeadline: a run with more work left than the bound has time for ends later. One that
// does the same again and again is found out.
func TestDeadline(t *testing.T) {
	for tasks, ends := range map[int]bool{100: true, 1: false} {
		w := &world{now: stormy, todo: heap.New(nil, earlier), pace: 2 * time.Second, book: newBook(&Result{})}
		c := &client{w: w}
		w.clients = []*client{c}
		for i := range 100 {
			w.after(time.Duration(i)*w.pace/2, func() {
				w.book.sinceCalm[wire.TaskID{Kind: wire.Map, N: i % tasks}] = true
			})
		}
		w.after(2*bound, func() { c.ids = []wire.JobID{} })
		if got := w.runToEnd(); got != ends {
			t.Errorf("%d tasks: it ends in time: %v", tasks, got)
		}
	}
}

// TestRepeats: a seed is one run, to the last message.
func TestRepeats(t *testing.T) {
	for seed := uint64(1); seed <= 8; seed++ {
		one, two := Run(Options{Seed: seed, Digest: true}), Run(Options{Seed: seed, Digest: true})
		if one.Steps != two.Steps || one.Digest != two.Digest || one.Digest == 0 || !slices.Equal(one.Trace, two.Trace) {
			t.Errorf("seed %d gives %d events, then %d, or others", seed, one.Steps, two.Steps)
		}
	}
}

// TestShrink: of the faults of a run that goes wrong all the same few are left,
// and what is left is played again by its command.
func TestShrink(t *testing.T) {
	r := Run(Options{Seed: 1, sabotage: keepStaging})
	small := Shrink(r, 100)
	if small.Violation == "" || len(small.Kept) > 0 {
		t.Errorf("%d of %d faults are left: %s", len(small.Kept), len(r.Kept), small.Violation)
	}
	if got, want := small.Command(), "go run ./cmd/mrsim cluster -seed 1 -keep none"; got != want {
		t.Errorf("command %q, want %q", got, want)
	}
	r = &Result{Options: Options{Seed: 7, Keep: []int{2, 5}}, Kept: []int{2, 5}}
	if got, want := r.Command(), "go run ./cmd/mrsim cluster -seed 7 -keep 2,5"; got != want {
		t.Errorf("command %q, want %q", got, want)
	}
}

// reached says what the simulation is for and has not happened yet.
type reached map[string]string

func toReach() reached {
	r := reached{
		"a fence revokes a grant":                ": revoked ",
		"a fence finds a commit":                 "_f_",
		"a tracker is lost":                      ": lost t",
		"an entry is lost with its leader":       "lost: ",
		"an outcome is unknown":                  "undecided and lost: ",
		"a call comes after its process's death": "late: ",
		"a disk spoils a file":                   " spoils ",
		"an output outlives its tracker":         " has kept ",
		"a limit is exceeded":                    "101 MiB",
		"a silent leader is left":                "nothing was heard from the leader",
		"an attempt hangs":                       "no progress for",
		"a worker does not start":                "resource temporarily unavailable",
		"a tracker is excluded":                  ": excluded ",
		"a tracker is drained":                   " has drained and leaves",
		"a job is cleaned up":                    "_x_",
		"a job takes others with it":             "takes 1 of its flow with it",
		"a disk fails":                           "input/output error",
	}
	for _, name := range menu.Names() {
		r["scheduler "+name] = "policy " + name + " has answered"
	}
	for what, text := range map[string]string{"terms change": ": changed key", "scheduling changes": ": scheduled ", "pools change": ": pooled "} {
		r[what] = text
	}
	for _, k := range append(sudden(), sicknesses()...) {
		r["fault: "+string(k)] = "s " + string(k)
	}
	return r
}

// add takes out what has happened in a run.
func (r reached) add(x *Result) {
	for what, text := range r {
		if slices.ContainsFunc(x.Trace, func(line string) bool { return strings.Contains(line, text) }) {
			delete(r, what)
		}
	}
}

// TestSabotage: each rule of the models that is switched off is missed.
func TestSabotage(t *testing.T) {
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
			t.Errorf("%d seeds did not find out that %s", enough, s)
		})
	}
}

func sabotages() []sabotage {
	return []sabotage{
		keepStaging, replaceTargets, skipFences, commitUnasked, ignoreKills, keepOrphans, skipChecksums, hideDigests,
		boastSlots, keepJobs, applyEarly, swapEntries, oldSnapshots, loseProposals,
	}
}
