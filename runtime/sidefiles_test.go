package runtime

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/local"
	"github.com/quernmr/quern/wire"
)

// TestLocalSideFile checks that one local file is used in place, for any path.
func TestLocalSideFile(t *testing.T) {
	dir := t.TempDir()
	localPath := dir + "/[odd]*/own"
	must(0, os.Mkdir(dir+"/[odd]*", 0o777))
	must(0, os.WriteFile(localPath, []byte("local"), 0o666))
	for _, path := range []string{localPath, dir + `/\[odd\]\*/own`, dir + `/\[odd]*/own`, dir + "/*/o?n", dir + `/\[odd\]\*`} {
		task := &Task{fs: local.New(), work: t.TempDir(), Plan: &wire.JobPlan{Files: map[string]string{"side": "file://" + path}}}
		if got, err := task.File("side"); got != localPath || err != nil {
			t.Errorf("%s is at %s: %v", path, got, err)
		}
	}
}

// TestSideFilesChange checks that an attempt fails at once if it uses a side file that has
// changed since the job's setup. Other attempts succeed.
func TestSideFilesChange(t *testing.T) {
	localPath := t.TempDir() + "/local"
	use := func(name string, parts bool) func(*Task) error {
		return func(t *Task) error {
			if parts {
				_, err := t.Parts(name)
				return err
			}
			_, err := t.File(name)
			return err
		}
	}
	records := func(name string) func(*Task) error {
		return func(t *Task) error {
			in, err := t.SideInput([]string{name}, &wire.InputPlan{Format: "lines"}, nil)
			if err != nil {
				return err
			}
			defer in.Close()
			var got []string
			for line := range in.Lines() {
				got = append(got, line)
			}
			if want := map[string]string{"one": "!", "dir": "1 2"}[name]; strings.Join(got, " ") != want {
				return fmt.Errorf("records %q, want %s (%v)", got, want, in.Err())
			}
			return nil
		}
	}
	replace := func(name string) func(*trackerSim) {
		return func(b *trackerSim) {
			must(0, b.fs.Remove(name))
			putFile(b.fs, name, []byte("?")) // same length as before
		}
	}
	for name, c := range map[string]struct {
		use    func(*Task) error
		change func(*trackerSim)
		want   string // parts of the error; empty: none
	}{
		"nothing":            {use("dir", false), nil, ""},
		"one":                {use("one", false), replace("mem://t/side/one"), "mem://t/side/one: file has changed"},
		"one, as parts":      {use("one", true), replace("mem://t/side/one"), "mem://t/side/one: file has changed"},
		"records":            {records("dir"), nil, ""},
		"one, as records":    {records("one"), replace("mem://t/side/one"), "mem://t/side/one: file has changed"},
		"more records":       {records("dir"), func(b *trackerSim) { putFile(b.fs, "mem://t/side/dir/z", nil) }, "mem://t/side/dir/z: file has changed"},
		"gone records":       {records("one"), func(b *trackerSim) { must(0, b.fs.Remove("mem://t/side/one")) }, "mem://t/side/one"},
		"gone":               {use("one", false), func(b *trackerSim) { must(0, b.fs.Remove("mem://t/side/one")) }, "mem://t/side/one"},
		"of a directory":     {use("dir", true), replace("mem://t/side/dir/b"), "mem://t/side/dir/b: file has changed"},
		"more in it":         {use("dir", false), func(b *trackerSim) { putFile(b.fs, "mem://t/side/dir/a1", nil) }, "mem://t/side/dir/"},
		"more at its end":    {use("dir", false), func(b *trackerSim) { putFile(b.fs, "mem://t/side/dir/z", nil) }, "mem://t/side/dir/z: file has changed"},
		"fewer":              {use("dir", false), func(b *trackerSim) { must(0, b.fs.Remove("mem://t/side/dir/b")) }, "mem://t/side/dir/b: file has changed"},
		"of no match":        {use("glob", false), func(b *trackerSim) { must(0, b.fs.Remove("mem://t/side/one")) }, "mem://t/side/o*"},
		"another":            {use("dir", false), replace("mem://t/side/one"), ""},
		"none is used":       {func(*Task) error { return nil }, replace("mem://t/side/one"), ""},
		"a local one":        {use("local", false), func(*trackerSim) { must(0, os.WriteFile(localPath, []byte("longer"), 0o666)) }, "local: file has changed since the job started; on a cluster all machines need it with the same size"},
		"error ignored":      {func(t *Task) error { use("one", false)(t); return nil }, replace("mem://t/side/one"), "mem://t/side/one: file has changed"},
		"error with another": {func(t *Task) error { return errors.Join(use("one", false)(t), errors.New("a consequence")) }, replace("mem://t/side/one"), "mem://t/side/one: file has changed"},
	} {
		for when, during := range map[string]bool{"before the attempt": false, "while it runs": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				must(0, os.WriteFile(localPath, []byte("local"), 0o666))
				plan := linesPlan()
				plan.Files = map[string]string{"one": "mem://t/side/one", "dir": "mem://t/side/dir", "glob": "mem://t/side/o*", "local": "file://" + localPath}
				var b *trackerSim
				ran := false
				b = newTrackerSim(t, plan, Job{Maps: []MapFunc{func(t *Task, _ *Split, _ Collector) error {
					err := c.use(t)
					if ran = true; during && c.change != nil {
						c.change(b)
					}
					return err
				}}, Reduce: wordCount().Reduce})
				putFile(b.fs, "mem://t/side/one", []byte("!"))
				putFile(b.fs, "mem://t/side/dir/a", []byte("1"))
				putFile(b.fs, "mem://t/side/dir/b", []byte("2"))
				b.stop()
				b.workerFS = dfs.Mux{"mem": b.fs, "file": local.New()}
				b.start()
				b.mustRun(wire.Setup, 0, nil)
				if !during && c.change != nil {
					c.change(b)
				}
				r := b.run(wire.Map, 0, nil)
				if r.Fatal != (c.want != "") || !strings.Contains(r.Error, c.want) || (r.Error == "") != (c.want == "") {
					t.Errorf("fatal %v, error %q, want %q", r.Fatal, r.Error, c.want)
				}
				if !ran {
					t.Error("the code did not run")
				}
			})
		}
	}
}
