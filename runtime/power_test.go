package runtime

import (
	"errors"
	"fmt"
	"math/rand/v2"
	pathpkg "path"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// TestPowerCut cuts the power at each call of a job's attempts, and after its end. If
// _SUCCESS survives, the whole output must survive. Reported results must not be lost, and
// further attempts must finish the job.
func TestPowerCut(t *testing.T) { powerCuts(t, "true", copiedOutput) }

// TestPowerCutUnmarked is TestPowerCut without _SUCCESS in the output.
func TestPowerCutUnmarked(t *testing.T) {
	powerCuts(t, "false", strings.Replace(copiedOutput, "/data/out/_SUCCESS= ", "", 1))
}

func powerCuts(t *testing.T, mark, output string) {
	calls := 0
	for ended := false; !ended && !t.Failed(); calls++ {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("call %d/%d", calls, seed), func(t *testing.T) {
				x := newPowerJob(t, "true")
				x.sub.Plan.Jobs[0].Properties[MarkSuccess] = mark
				x.stage()
				x.fs.Settle()
				ended = x.runAttempts(calls) == ""
				x.powerCut(uint64(calls), seed)
				if success := x.success(); success && !x.complete(output) || ended && !success && mark == "true" || ended && !x.complete(output) {
					t.Fatalf("the power cut leaves %s", listing(x.fs, "mem://t/data"))
				}
				if ended {
					return
				}
				if failure := x.runAttempts(-1); failure != "" {
					t.Fatal(failure)
				}
				x.checkOutput(output)
			})
		}
	}
	if calls < 60 {
		t.Errorf("the power was cut at only %d calls", calls)
	}
}

// TestPowerCutUnsynced checks that power cuts without sync lose output. So TestPowerCut
// would detect a missing sync.
func TestPowerCutUnsynced(t *testing.T) {
	harm := 0
	for seed := range uint64(50) {
		x := newPowerJob(t, "false")
		if failure := x.runAttempts(-1); failure != "" {
			t.Fatal(failure)
		}
		if x.powerCut(0, seed); x.success() && !x.complete(copiedOutput) {
			harm++
		}
	}
	if harm == 0 {
		t.Error("no power cut left _SUCCESS beside partial output")
	}
}

// TestSyncByPlace checks that clusters sync and embedded runs do not. The property
// changes this for the output.
func TestSyncByPlace(t *testing.T) {
	for _, c := range []struct{ hash, property, synced string }{
		{"", "", ""}, {"", "true", "/data"}, {"", "false", ""},
		{"of a cluster", "", "/data /staging"}, {"of a cluster", "true", "/data /staging"}, {"of a cluster", "false", "/staging"},
	} {
		var synced []string
		for _, dir := range []string{"/data", "/staging"} {
			x := newPowerJob(t, c.property)
			x.sub.Program.Hash = c.hash
			x.stage()
			must(0, x.fs.SetFaults("syncdir "+dir+"/**"))
			if x.runAttempts(-1) != "" {
				synced = append(synced, dir)
			}
		}
		if got := strings.Join(synced, " "); got != c.synced {
			t.Errorf("program hash %q, %s=%q: synced %q, want %q", c.hash, OutputSync, c.property, got, c.synced)
		}
	}
	x := newPowerJob(t, "perhaps")
	if r := x.run(wire.Setup, 0, nil); !r.Fatal || !strings.Contains(r.Error, OutputSync+`="perhaps": want true or false`) {
		t.Errorf("invalid value: %+v", r)
	}
}

// TestSyncFails checks that a failed sync fails the attempt with the path, and that the
// next attempt succeeds.
func TestSyncFails(t *testing.T) {
	for _, c := range []struct{ call, path string }{
		{"close", "/staging/s1/*/splits.*"}, {"syncdir", "/staging/s1"}, {"syncdir", "/data"},
		{"close", "/data/out/_temporary/*/a/*/part-m-00001"}, {"syncdir", "/data/out/_temporary/*/a/*_000001_*"},
		{"syncdir", "/data/out/_temporary/*/t"}, {"syncdir", "/data/out"}, {"close", "/data/out/_SUCCESS"},
	} {
		x := newPowerJob(t, "true")
		must(0, x.fs.SetFaults(c.call+" "+c.path+" times=1"))
		failure := x.runAttempts(-1)
		path, _, _ := strings.Cut(failure[strings.Index(failure, "mem://t")+len("mem://t"):], ": ")
		if ok, err := pathpkg.Match(c.path, path); !ok || err != nil || !strings.Contains(failure, "input/output error") {
			t.Errorf("%s %s fails: %s", c.call, c.path, failure)
		}
		if failure := x.runAttempts(-1); failure != "" {
			t.Errorf("after a failed %s of %s: %s", c.call, c.path, failure)
		}
		x.checkOutput(copiedOutput)
	}
}

// TestFencePowerCut checks that a fence makes a commit durable before reporting it: the
// attempt may have died before its sync.
func TestFencePowerCut(t *testing.T) {
	for seed := range uint64(20) {
		f := newData()
		tr, id := newTree(f), testAttempt(wire.Reduce, 0, 0)
		if err := errors.Join(tr.build(testAttempt(wire.Setup, 0, 0)), writeAttempt(tr, id, "x")); err != nil {
			t.Fatal(err)
		}
		f.Settle()
		must(0, f.SetFaults("syncdir ** times=1"))
		if err := tr.commitTask(id); err == nil {
			t.Fatal("a commit that is not durable was reported")
		}
		if m, err := tr.fence(id); err != nil || m == nil {
			t.Fatalf("fence of the committed attempt: %v %v", m, err)
		}
		f.PowerCut(rand.New(rand.NewPCG(seed, 0)))
		if m, err := tr.committed(id.Task); err != nil || m == nil {
			t.Fatalf("after the power cut: %v %v", m, err)
		}
	}
}

const copiedOutput = "/data/out/ /data/out/_SUCCESS= /data/out/part-m-00000=a rose is a rose\nis a rose\n " +
	"/data/out/part-m-00001=to be or not to be\n"

// powerJob is a map-only job, with the job tracker's state of it.
type powerJob struct {
	*trackerSim
	done    int             // ended tasks
	granted *wire.AttemptID // it may have committed
}

func newPowerJob(t *testing.T, sync string) *powerJob {
	plan := linesPlan()
	plan.Reduces, plan.Combine, plan.Properties = 0, false, map[string]string{OutputSync: sync, SplitMaxSize: "26"}
	x := &powerJob{trackerSim: newTrackerSim(t, plan, Job{Maps: []MapFunc{func(t *Task, in *Split, _ Collector) error {
		out, err := t.Output("")
		for line := range in.Lines() {
			if err == nil {
				err = out.Write([]byte(line + "\n"))
			}
		}
		return err
	}}})}
	x.sub.Program.Hash = "of a cluster"
	x.stage()
	x.fs.Settle()
	return x
}

// runAttempts runs each task's attempts until it succeeds, and returns the first error. If
// calls is not negative, all calls of the file system after that number fail.
func (x *powerJob) runAttempts(calls int) (failure string) {
	if calls >= 0 {
		must(0, x.fs.SetFaults(fmt.Sprintf("any ** after=%d", calls)))
	}
	tasks := []wire.TaskID{testTask(wire.Setup, 0), testTask(wire.Map, 0), testTask(wire.Map, 1), testTask(wire.Commit, 0)}
	for ; x.done < len(tasks); x.done++ {
		task := tasks[x.done]
		if x.granted != nil {
			r := x.run(wire.Fence, task.N, func(run *wire.Run) { run.Subject = *x.granted })
			if r.Error != "" {
				return r.Error
			}
			if x.granted = nil; r.Committed {
				continue
			}
		}
		grants := x.grants
		if r := x.run(task.Kind, task.N, nil); r.Error != "" {
			if x.grants > grants {
				id := testAttempt(task.Kind, task.N, x.attempts)
				x.granted = &id
			}
			return r.Error
		}
	}
	return ""
}

// powerCut stops the worker too.
func (x *powerJob) powerCut(seed1, seed2 uint64) {
	must(0, x.fs.SetFaults(""))
	x.stop()
	x.fs.PowerCut(rand.New(rand.NewPCG(seed1, seed2)))
	x.start()
}

func (x *powerJob) success() bool { return must(newTree(x.fs).exists(testOut + "/_SUCCESS")) }

// complete reports whether all output is there. Other files may be there too.
func (x *powerJob) complete(output string) bool {
	there := " " + listing(x.fs, testOut) + " "
	for file := range strings.SplitSeq(strings.TrimPrefix(output, "/data/out/ "), " /data") {
		if !strings.Contains(there, file+" ") {
			return false
		}
	}
	return true
}
