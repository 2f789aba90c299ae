package tasktracker

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestShuffle runs maps on two trackers. A reduce reads outputs of its own tracker in place,
// and fetched copies of the others.
func TestShuffle(t *testing.T) {
	a, b := startTracker(t, "a", t.TempDir()), startTracker(t, "b", t.TempDir())
	outputs := []wire.MapOutput{
		*a.succeed(wire.Map, 0, doMap).Output, *a.succeed(wire.Map, 1, doMap).Output, *b.succeed(wire.Map, 2, doMap).Output,
	}
	if o := outputs[0]; o.Tracker != "a" || o.Addr != a.addr || o.Digest == 0 {
		t.Fatalf("output is %+v", o)
	}
	b.send(&wire.SetHome{Epoch: 1, Job: job1, Partition: 1, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: 3})
	b.send(wire.OutputsOf(1, job1, outputs...))
	home := await(b, func(h *wire.HomeReport) bool { return h.Complete })
	if want := outputs[0].Digest + outputs[1].Digest + outputs[2].Digest; home.Digest != want {
		t.Errorf("the home's digest is %x, want %x", home.Digest, want)
	}
	r := b.succeed(wire.Reduce, 1, doReduce)
	got := slices.Sorted(maps.Keys(r.Counters["records"]))
	want := strings.Fields("key0=map0 key0=map1 key0=map2 key1=map0 key1=map1 key1=map2 key2=map0 key2=map1 key2=map2")
	if !slices.Equal(got, want) {
		t.Errorf("the reduce read %q", got)
	}
	// A dropped job leaves only its logs.
	for _, l := range []*leader{a, b} {
		l.send(&wire.DropJob{Epoch: 1, Job: job1})
		l.send(&wire.Kill{Epoch: 1, Attempt: wire.AttemptID{Task: wire.TaskID{Job: job1, Kind: wire.Map}, N: 1}})
		await(l, func(r *wire.Report) bool { return r.Attempt.N == 1 })
		if err := l.stop(); err != nil {
			t.Error(err)
		}
		if entries, err := os.ReadDir(l.path(core.JobsDir)); err != nil || len(entries) > 0 {
			t.Errorf("%s holds %v, %v", core.JobsDir, entries, err)
		}
		if _, err := os.Stat(l.path(core.LogsDir, job1.String())); err != nil {
			t.Error(err)
		}
	}
}

// TestDamagedOutput: corrupt map outputs are not used.
func TestDamagedOutput(t *testing.T) {
	a, b := startTracker(t, "a", t.TempDir()), startTracker(t, "b", t.TempDir())
	remote, local := a.succeed(wire.Map, 0, doMap).Output, b.succeed(wire.Map, 1, doMap).Output
	damage := func(l *leader, o *wire.MapOutput, from int64) {
		f, err := os.OpenFile(core.MapOutputPath(l.dir, job1, o.Map, o.Attempt), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if from < 0 {
			from += o.Bytes
		}
		if _, err := f.WriteAt([]byte("damage"), from); err != nil {
			t.Fatal(err)
		}
	}
	damage(a, remote, 22) // the first partition's records
	damage(b, local, -20) // the index
	b.send(&wire.SetHome{Epoch: 1, Job: job1, Partition: 0, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: 2})
	b.send(wire.OutputsOf(1, job1, *remote, *local))
	lost := map[int]bool{}
	for len(lost) < 2 {
		m := await[*wire.OutputLost](b, nil)
		if !m.Corrupt || !strings.Contains(m.Reason, "corrupt") {
			t.Errorf("lost: %+v", m)
		}
		lost[m.Map] = true
	}
	again := []wire.MapOutput{*a.succeed(wire.Map, 0, doMap).Output, *b.succeed(wire.Map, 1, doMap).Output}
	b.send(wire.OutputsOf(1, job1, again...))
	await(b, func(h *wire.HomeReport) bool { return h.Complete })
}

// TestReconnect: after a broken stream the tracker registers again with all its attempts.
func TestReconnect(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	if l.hello.Incarnation != 0 || l.hello.Addr != l.addr || l.hello.Process == 0 {
		t.Errorf("hello is %+v", l.hello)
	}
	process := l.hello.Process
	ended := l.launch(wire.Map, 0, doMap)
	l.final(ended, wire.AttemptSucceeded)
	committing := l.launch(wire.Map, 1, doCommit)
	await(l, func(r *wire.Report) bool { return r.Attempt == committing && r.State == wire.AttemptReady })
	l.conn.Close()
	inventory := l.connect(2)
	if l.hello.Incarnation != 9 || l.hello.Process != process {
		t.Errorf("second hello is %+v", l.hello)
	}
	if as := inventory.Attempts; len(as) != 2 || as[0].Attempt != ended || as[0].Result == nil || as[1].State != wire.AttemptReady {
		t.Errorf("inventory is %+v", as)
	}
	l.send(&wire.Grant{Epoch: 2, Attempt: committing})
	l.final(committing, wire.AttemptSucceeded)
}

func TestDirectoryInUse(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	second, err := New(Config{ID: "t2", Host: "here", Service: Service{Listen: "127.0.0.1:0"}, Dir: l.dir, FS: local.FS{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second tracker: %v", err)
	}
	l.succeed(wire.Map, 0, doSucceed)
}

// TestDrained: a drained tracker ends with ErrDrained.
func TestDrained(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	l.send(&wire.Drained{Epoch: 1})
	if err := l.ended(); !errors.Is(err, ErrDrained) {
		t.Errorf("it ended with %v", err)
	}
}
