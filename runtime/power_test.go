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

// The power fails at any call of a job's attempts, and after its end. A _SUCCESS that
// survives is beside the whole output, nothing is lost that an attempt has reported, and
// further attempts finish the job.
func TestPowerCut(t *testing.T) {
	calls := 0
	for ended := false; !ended && !t.Failed(); calls++ {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("call %d/%d", calls, seed), func(t *testing.T) {
				x := newPowered(t, "true")
				ended = x.runs(calls) == ""
				x.powerCut(uint64(calls), seed)
				if success := x.success(); success && !x.whole() || ended && !success {
					t.Fatalf("the power cut leaves %s", state(x.fs, "mem://t/data"))
				}
				if ended {
					return
				}
				if why := x.runs(-1); why != "" {
					t.Fatal(why)
				}
				x.output(copied)
			})
		}
	}
	if calls < 60 {
		t.Errorf("the power has failed at %d calls only", calls)
	}
}

// Without sync, power cuts do harm: the test above would notice.
func TestPowerCutUnsynced(t *testing.T) {
	harm := 0
	for seed := range uint64(50) {
		x := newPowered(t, "false")
		if why := x.runs(-1); why != "" {
			t.Fatal(why)
		}
		if x.powerCut(0, seed); x.success() && !x.whole() {
			harm++
		}
	}
	if harm == 0 {
		t.Error("no power cut has left _SUCCESS beside less than the output")
	}
}

// What is synced depends on the place, and of the output on the property if that is set.
func TestSyncByPlace(t *testing.T) {
	for _, c := range []struct{ hash, property, synced string }{
		{"", "", ""}, {"", "true", "/data"}, {"", "false", ""},
		{"of a cluster", "", "/data /staging"}, {"of a cluster", "true", "/data /staging"}, {"of a cluster", "false", "/staging"},
	} {
		var synced []string
		for _, dir := range []string{"/data", "/staging"} {
			x := newPowered(t, c.property)
			x.sub.Program.Hash = c.hash
			x.stage()
			must(0, x.fs.SetFaults("syncdir "+dir+"/**"))
			if x.runs(-1) != "" {
				synced = append(synced, dir)
			}
		}
		if got := strings.Join(synced, " "); got != c.synced {
			t.Errorf("program hash %q, %s=%q: synced %q, want %q", c.hash, OutputSync, c.property, got, c.synced)
		}
	}
	x := newPowered(t, "perhaps")
	if r := x.try(wire.Setup, 0, nil); !r.Fatal || !strings.Contains(r.Error, OutputSync+`="perhaps": want true or false`) {
		t.Errorf("a value that is none: %+v", r)
	}
}

// A sync that fails ends the attempt, naming the path; the next one does the work again.
func TestSyncFails(t *testing.T) {
	for _, c := range []struct{ call, path string }{
		{"close", "/staging/s1/*/splits.*"}, {"syncdir", "/staging/s1"}, {"syncdir", "/data"},
		{"close", "/data/out/_temporary/*/a/*/part-m-00001"}, {"syncdir", "/data/out/_temporary/*/a/*_000001_*"},
		{"syncdir", "/data/out/_temporary/*/t"}, {"syncdir", "/data/out"}, {"close", "/data/out/_SUCCESS"},
	} {
		x := newPowered(t, "true")
		must(0, x.fs.SetFaults(c.call+" "+c.path+" times=1"))
		why := x.runs(-1)
		path, _, _ := strings.Cut(why[strings.Index(why, "mem://t")+len("mem://t"):], ": ")
		if ok, err := pathpkg.Match(c.path, path); !ok || err != nil || !strings.Contains(why, "input/output error") {
			t.Errorf("%s %s fails: %s", c.call, c.path, why)
		}
		if why := x.runs(-1); why != "" {
			t.Errorf("after %s %s has failed: %s", c.call, c.path, why)
		}
		x.output(copied)
	}
}

// A fence that tells of a commit has made it durable: the attempt may have died before.
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

const copied = "/data/out/ /data/out/_SUCCESS= /data/out/part-m-00000=a rose is a rose\nis a rose\n " +
	"/data/out/part-m-00001=to be or not to be\n"

// powered is a map-only job, and what its job tracker's log has of it.
type powered struct {
	*bench
	done    int             // tasks
	granted *wire.AttemptID // it may have committed
}

func newPowered(t *testing.T, sync string) *powered {
	plan := linesPlan()
	plan.Reduces, plan.Combine, plan.Properties = 0, false, map[string]string{OutputSync: sync, SplitMaxSize: "26"}
	x := &powered{bench: newBench(t, plan, Job{Maps: []MapFunc{func(t *Task, in *Split, _ Collector) error {
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

// runs runs attempts, each task's until it is done, and says why one has failed. From a
// call of the file system on, if that is not negative, none works.
func (x *powered) runs(calls int) (why string) {
	if calls >= 0 {
		must(0, x.fs.SetFaults(fmt.Sprintf("any ** after=%d", calls)))
	}
	tasks := []wire.TaskID{testTask(wire.Setup, 0), testTask(wire.Map, 0), testTask(wire.Map, 1), testTask(wire.Commit, 0)}
	for ; x.done < len(tasks); x.done++ {
		task := tasks[x.done]
		if x.granted != nil {
			r := x.try(wire.Fence, task.N, func(run *wire.Run) { run.Subject = *x.granted })
			if r.Error != "" {
				return r.Error
			}
			if x.granted = nil; r.Committed {
				continue
			}
		}
		grants := x.grants
		if r := x.try(task.Kind, task.N, nil); r.Error != "" {
			if x.grants > grants {
				id := testAttempt(task.Kind, task.N, x.tries)
				x.granted = &id
			}
			return r.Error
		}
	}
	return ""
}

// powerCut takes the worker with it.
func (x *powered) powerCut(seed1, seed2 uint64) {
	must(0, x.fs.SetFaults(""))
	x.stop()
	x.fs.PowerCut(rand.New(rand.NewPCG(seed1, seed2)))
	x.start()
}

func (x *powered) success() bool { return must(newTree(x.fs).exists(testOut + "/_SUCCESS")) }

// whole says whether the output is there, whatever else is.
func (x *powered) whole() bool {
	there := " " + state(x.fs, testOut) + " "
	for file := range strings.SplitSeq(strings.TrimPrefix(copied, "/data/out/ "), " /data") {
		if !strings.Contains(there, file+" ") {
			return false
		}
	}
	return true
}
