package tasktracker

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/tasktracker/core"
	"github.com/quernmr/quern/wire"
)

// TestForeignDirectories: a tracker does not start in another program's directory, and
// removes nothing there.
func TestForeignDirectories(t *testing.T) {
	job := filepath.Join(core.JobsDir, job1.String(), "thesis.tex")
	for _, c := range []struct {
		name, file string                            // a file of a user
		make       func(dir, elsewhere string) error // makes other files
		want       string
	}{
		{"files of a user", "thesis.tex", nil, "out of it: thesis.tex"},
		{"in names of the tracker", filepath.Join(core.RunDir, "thesis.tex"), nil, "so it is probably not the directory of a task tracker"},
		{"all of them", job, nil, "so it is probably not the directory of a task tracker"},
		{"with a lock", job, func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, "lock"), []byte("x"), 0o600)
		}, "so it is probably not the directory of a task tracker"},
		{"behind a link", "", func(dir, elsewhere string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, layout.Marker), nil, 0o600), os.Symlink(elsewhere, filepath.Join(dir, core.JobsDir)))
		}, "jobs in it is a symbolic link"},
		{"of a job tracker", "", func(dir, _ string) error {
			return os.WriteFile(filepath.Join(dir, "quern-jobtracker"), nil, 0o600)
		}, "it has the file quern-jobtracker of another kind of daemon"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, elsewhere := t.TempDir(), t.TempDir()
			thesis := filepath.Join(elsewhere, job1.String(), "thesis.tex") // where an attempt's file would be
			if c.file != "" {
				thesis = filepath.Join(dir, c.file)
			}
			if err := errors.Join(os.MkdirAll(filepath.Dir(thesis), 0o700), os.WriteFile(thesis, []byte("years of work"), 0o600)); err != nil {
				t.Fatal(err)
			}
			if c.make != nil {
				if err := c.make(dir, elsewhere); err != nil {
					t.Fatal(err)
				}
			}
			tracker, err := New(Config{ID: "t1", Host: "here", Service: Service{Listen: "127.0.0.1:0"}, Dir: dir, FS: local.FS{}, Ready: func(string) { t.Error("the tracker started") }})
			if err != nil {
				t.Fatal(err)
			}
			if err := tracker.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := os.Stat(thesis); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestForeignDisk: the directory of another program is a bad disk, and stays unchanged.
func TestForeignDisk(t *testing.T) {
	dir, disk := t.TempDir(), t.TempDir()
	thesis := filepath.Join(disk, "thesis.tex")
	if err := os.WriteFile(thesis, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := startUnregistered(t, Config{ID: "t1", Dir: dir, Disks: []string{dir, disk}})
	l.connect(1)
	for m := range 3 {
		l.succeed(wire.Map, m, doMap)
	}
	if got := names(t, disk); len(got) != 1 {
		t.Errorf("the disk has %q", got)
	}
	if got := names(t, filepath.Join(dir, core.JobsDir, job1.String())); len(got) != 3 {
		t.Errorf("the directory has %q", got)
	}
}

// TestOlderDirectory: a tracker uses the directory of an older build without a marker,
// with its map outputs.
func TestOlderDirectory(t *testing.T) {
	l := startTracker(t, "t1", t.TempDir())
	made := l.succeed(wire.Map, 0, doMap).Output
	if err := errors.Join(l.stop(), os.Remove(l.path(layout.Marker))); err != nil {
		t.Fatal(err)
	}
	again := startUnregistered(t, Config{ID: "t1", Dir: l.dir})
	inventory := again.connect(1)
	if as := inventory.Attempts; len(as) != 1 || as[0].Attempt.N != made.Attempt {
		t.Errorf("inventory is %+v", as)
	}
	if _, err := os.Stat(l.path(layout.Marker)); err != nil {
		t.Error(err)
	}
}

// TestStagingIsStored: later processes use the staging directory that the first job
// tracker named, unless another one is configured.
func TestStagingIsStored(t *testing.T) {
	file := nonceFile(t)
	if err := os.WriteFile(file, []byte("n1"), 0o600); err != nil {
		t.Fatal(err)
	}
	staging := "file://" + filepath.Dir(filepath.Dir(file))
	l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Staging: ""})
	l.accept()
	l.send(&wire.Staging{File: "file://" + file})
	await[*wire.Hello](l, nil)
	l.send(&wire.Welcome{Epoch: 1, Incarnation: 9, Lease: deadline, Cluster: "c1"})
	await[*wire.Inventory](l, nil)
	if err := l.stop(); err != nil {
		t.Fatal(err)
	}
	if stored, err := readLine(l.dir, stagingName); err != nil || stored != staging {
		t.Errorf("stored is %q, %v, want %q", stored, err, staging)
	}
	refuses := func(cfg Config, other string) {
		t.Helper()
		log := new(logBuffer)
		cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
		l = startUnregistered(t, cfg)
		l.accept()
		l.send(&wire.Staging{File: dfs.Join(other, wire.StagingClusters, "c1")})
		for range l.received { // until the tracker closes the stream
		}
		if err := l.stop(); err != nil {
			t.Fatal(err)
		}
		if text := log.String(); !strings.Contains(text, other) || !strings.Contains(text, staging) || !strings.Contains(text, "-staging") {
			t.Errorf("it logs %s", text)
		}
	}
	refuses(Config{ID: "t1", Dir: l.dir}, "file:///elsewhere")
	before := staging
	staging = "file:///elsewhere"
	refuses(Config{ID: "t1", Dir: l.dir, Staging: "file:///somewhere/../elsewhere/"}, before)
	refuses(Config{ID: "t1", Dir: l.dir}, before) // the configured one was stored
}

// TestOutsideStaging: a tracker refuses submissions and programs outside the staging
// directory, and programs without a hash.
func TestOutsideStaging(t *testing.T) {
	good, uploaded, hash := stageHashed(t)
	root := filepath.Dir(strings.TrimPrefix(good, "file://"))
	for _, c := range []struct{ name, staging, want string }{
		{"good", good, ""},
		{"submission elsewhere", "file:///etc", "file:///etc is not in the staging directory"},
		{"submission above", "file://" + root + "/../x", "is not in the staging directory"},
		{"program elsewhere", stageProgramAs(t, wire.Program{Path: "file:///bin/sh", Hash: hash}), `"file:///bin/sh", which is not in the staging directory`},
		{"program above", stageProgramAs(t, wire.Program{Path: "file://" + root + "/../../bin/sh", Hash: hash}), "which is not in the staging directory"},
		{"program without a scheme", stageProgramAs(t, wire.Program{Path: uploaded, Hash: hash}), "which is not in the staging directory"},
		{"program without a hash", stageProgramAs(t, wire.Program{Path: "file://" + uploaded}), "without its SHA-256"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := startUnregistered(t, Config{ID: "t1", Dir: t.TempDir(), Staging: "file://" + root})
			l.connect(1)
			l.staging = c.staging
			if c.want == "" {
				l.succeed(wire.Map, 0, doSucceed)
				return
			}
			if r := l.fail(doSucceed); !strings.Contains(r.Error, c.want) {
				t.Errorf("error is %q, want %q", r.Error, c.want)
			}
		})
	}
}
