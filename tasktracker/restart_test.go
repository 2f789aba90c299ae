package tasktracker

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/tasktracker/disks"
	"github.com/quernmr/quern/wire"
)

// TestRestart: map outputs survive their tracker, unless they are corrupt, truncated or
// unreported. Homes and attempts do not survive.
func TestRestart(t *testing.T) {
	dir, disk := t.TempDir(), t.TempDir()
	cfg := Config{ID: "t1", Dir: dir, Disks: []string{dir, disk}}
	l := startUnregistered(t, cfg)
	l.connect(1)
	var originals []*wire.MapOutput
	for m := range 6 {
		originals = append(originals, l.succeed(wire.Map, m, doMap).Output)
	}
	l.send(&wire.SetHome{Epoch: 1, Job: job1, Partition: 0, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: 6})
	l.launch(wire.Map, 6, doHang)
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}

	file := func(m int, name string) string {
		for _, d := range cfg.Disks {
			at := filepath.Join(filepath.Dir(core.MapOutputPath(d, job1, m, originals[m].Attempt)), name)
			if _, err := os.Stat(at); err == nil {
				return at
			}
		}
		t.Fatalf("map %d has no %s", m, name)
		return ""
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	damage := func(at string, offset int64) {
		f, err := os.OpenFile(at, os.O_RDWR, 0)
		must(err)
		_, err = f.WriteAt([]byte("damage"), offset)
		must(errors.Join(err, f.Close()))
	}
	damage(file(0, core.OutputFile), 22)
	must(os.Truncate(file(1, core.OutputFile), 30))
	must(os.Remove(file(2, core.ReportFile)))
	must(os.Truncate(file(3, core.ReportFile), 10))
	must(os.MkdirAll(filepath.Join(disk, core.JobsDir, job1.String(), "home-00007"), 0o777))
	must(os.MkdirAll(filepath.Join(disk, core.JobsDir, "nonsense"), 0o777))

	l = startUnregistered(t, cfg)
	inventory := l.connect(1)
	if as := inventory.Attempts; len(as) != 2 || len(inventory.Homes) != 0 {
		t.Fatalf("inventory is %+v", inventory)
	}
	for i, r := range inventory.Attempts {
		o := r.Result.Output
		if want := originals[4+i]; o.Digest != want.Digest || o.Map != want.Map || o.Addr != l.addr || r.State != wire.AttemptSucceeded {
			t.Errorf("restored %+v, original %+v", o, want)
		}
	}
	// Other trackers can fetch them.
	b := startTracker(t, "b", t.TempDir())
	b.send(&wire.SetHome{Epoch: 1, Job: job1, Partition: 1, Generation: wire.Generation{Epoch: 1, N: 1}, Maps: 2})
	var outputs []wire.MapOutput
	for i, r := range inventory.Attempts {
		o := *r.Result.Output
		o.Map = i
		outputs = append(outputs, o)
	}
	// The URL of an output has its map and attempt numbers.
	outputs[0].Map, outputs[1].Map = originals[4].Map, originals[5].Map
	b.send(&wire.SetHome{Epoch: 1, Job: job1, Partition: 0, Generation: wire.Generation{Epoch: 1, N: 2}, Maps: 6})
	b.send(wire.OutputsOf(1, job1, outputs...))
	await(b, func(h *wire.HomeReport) bool { return h.Partition == 0 && h.Maps == 2 })

	// All other files of the job are removed.
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	var remaining []string
	for _, d := range cfg.Disks {
		must(filepath.WalkDir(filepath.Join(d, core.JobsDir), func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				remaining = append(remaining, path)
			}
			return err
		}))
		if _, err := os.Stat(filepath.Join(d, disks.TrashDir)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("trash was not removed: %v", err)
		}
	}
	if len(remaining) != 4 {
		t.Errorf("remaining: %q", remaining)
	}
}

// TestTemporary: a temporary directory keeps nothing for a later process.
func TestTemporary(t *testing.T) {
	cfg := Config{ID: "t1", Dir: t.TempDir(), Temporary: true}
	l := startUnregistered(t, cfg)
	l.connect(1)
	o := l.succeed(wire.Map, 0, doMap).Output
	if _, err := os.Stat(filepath.Join(filepath.Dir(core.MapOutputPath(cfg.Dir, job1, 0, o.Attempt)), core.ReportFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("report: %v", err)
	}
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	l = startUnregistered(t, cfg)
	if inventory := l.connect(1); len(inventory.Attempts) > 0 {
		t.Errorf("inventory is %+v", inventory)
	}
	for _, name := range []string{core.JobsDir, core.LogsDir} {
		mustBeEmpty(t, l.path(name))
	}
}
