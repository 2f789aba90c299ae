package mapreduce

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
)

// TestDriveResume: started again with its session, a driver runs only what had not ended.
func TestDriveResume(t *testing.T) {
	x := newDriveTest(t, "b a\nb\n")
	x.session = "s"
	var ran atomic.Int64
	count := countDefinition(&ran)
	stop := errors.New("stopped")
	drive := func(until int) func(d *Driver) error {
		return func(d *Driver) error {
			var words Dataset[string, counted]
			for i := range 4 {
				if i == until {
					return stop
				}
				next, err := count.Run(d, countParams{Words: words, Times: 2})
				if err != nil {
					return err
				}
				words = next
			}
			if got, want := maps.Collect(words.All(d)), map[string]counted{"a": {8}, "b": {16}}; !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			return nil
		}
	}
	if err := x.run(t, drive(2), count); !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if n := ran.Swap(0); n != 4 {
		t.Errorf("%d records were mapped before, want 4", n)
	}
	if err := x.run(t, drive(5), count); err != nil {
		t.Fatal(err)
	}
	if n := ran.Swap(0); n != 4 {
		t.Errorf("%d records were mapped after, want 4", n)
	}
	if left, err := filepath.Glob(filepath.Join(x.dir, "quern-*", "sessions", "*")); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestDriveResumeRead: a driver that starts again reads what it had read and then dropped. Results that only a job has
// read are removed at once.
func TestDriveResumeRead(t *testing.T) {
	x := newDriveTest(t, "b a\nb\n")
	x.session = "s"
	var ran atomic.Int64
	count := countDefinition(&ran)
	stop := errors.New("stopped")
	drive := func(fail error) func(d *Driver) error {
		return func(d *Driver) error {
			words, err := count.Run(d, countParams{})
			if err != nil {
				return err
			}
			if got, want := maps.Collect(words.All(d)), map[string]counted{"a": {1}, "b": {2}}; !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			twice, err := count.Run(d, countParams{Words: words, Times: 2})
			if err != nil {
				return err
			}
			if _, err = count.Run(d, countParams{Words: twice, Times: 2}); err != nil {
				return err
			}
			if err := errors.Join(words.Drop(d), twice.Drop(d)); err != nil {
				return err
			}
			if _, err := os.Stat(strings.TrimPrefix(twice.Path(), "file://")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a result that only a job has read was dropped: %v", err)
			}
			return fail
		}
	}
	for _, fail := range []error{stop, stop, nil} {
		if err := x.run(t, drive(fail), count); !errors.Is(err, fail) {
			t.Fatal(err)
		}
	}
	if n := ran.Load(); n != 6 {
		t.Errorf("%d records were mapped, want 6", n)
	}
}

// TestDriveWorkingDirectory: in another directory, relative paths name other files, so no step of the session is known
// there. Properties of embedded runs change no step.
func TestDriveWorkingDirectory(t *testing.T) {
	top := t.TempDir()
	a, b := filepath.Join(top, "a"), filepath.Join(top, "b")
	for dir, text := range map[string]string{a: "x\n", b: "y y\n"} {
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "in"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var ran atomic.Int64
	count := countDefinition(&ran)
	stop := errors.New("stopped")
	for _, c := range []struct {
		dir, slots string
		ran        int64
		want       map[string]counted
	}{
		{a, "", 1, map[string]counted{"x": {1}}},
		{b, "", 1, map[string]counted{"y": {2}}},
		{a, "1", 0, map[string]counted{"x": {1}}},
	} {
		t.Chdir(c.dir)
		s := bridge.Settings{Inputs: []string{"in"}, Session: "s", Properties: map[string]string{"quern.embedded.dir": top}}
		if c.slots != "" {
			s.Properties["quern.embedded.slots"] = c.slots
		}
		err := RunInProcess(t.Context(), s, func(d *Driver) error {
			words, err := count.Run(d, countParams{})
			if err != nil {
				return err
			}
			if got := maps.Collect(words.All(d)); !maps.Equal(got, c.want) {
				t.Errorf("in %s: got %v, want %v", c.dir, got, c.want)
			}
			return stop
		}, count)
		if n := ran.Swap(0); n != c.ran || !errors.Is(err, stop) {
			t.Errorf("in %s: %d records were mapped, want %d; %v", c.dir, n, c.ran, err)
		}
	}
}
