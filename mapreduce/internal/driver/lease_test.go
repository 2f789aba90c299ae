package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/mem"
)

// TestTakeOverOnce: of two drivers that saw the same dead one, the slower one does not take over the faster one.
func TestTakeOverOnce(t *testing.T) {
	c := &fakeCluster{fs: mem.New(1 << 20)}
	d := c.driver("s", "p")
	loop(t, d, 1)
	if err := d.session.takeOver("the dead one"); err != nil {
		t.Fatal(err)
	}
	holder, _, _, err := d.session.holder()
	if err != nil || !strings.HasPrefix(processText(holder), fmt.Sprintf("process %d on ", os.Getpid())) {
		t.Errorf("the session is held by %q, %v", holder, err)
	}
	if err := d.Close(false); err != nil {
		t.Fatal(err)
	}
}

// TestHeld: only one driver uses a session. When it stops renewing it, another one takes it over, and the first one
// fails, whether it notices that before its end or not. It leaves the session to the other one.
func TestHeld(t *testing.T) {
	for name, c := range map[string]struct{ notices, fails bool }{
		"notices":        {true, true},
		"fails":          {false, true},
		"ends well":      {false, false},
		"ends well late": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { held(t, c.notices, c.fails) })
		})
	}
}

func held(t *testing.T, notices, fails bool) {
	c := &fakeCluster{fs: mem.New(1 << 20)}
	first := c.driver("s", "p")
	first.Note = func(text string) { t.Errorf("the first driver: %s", text) }
	loop(t, first, 1)
	refused(t, c)
	first.session.leave() // as if its process hung
	second := c.driver("s", "p")
	start := time.Now()
	loop(t, second, 1) // by the clock of the file system, which advances with each change
	if time.Since(start) == 0 {
		t.Error("took over at once")
	}
	isTaken := func(err error) bool {
		return err != nil && strings.HasPrefix(err.Error(), "session s was taken over by ")
	}
	if notices {
		first.session.renew(t.Context())
		synctest.Wait()
		<-time.After(2 * renewEvery)
		if err := first.Err(); !isTaken(err) {
			t.Errorf("the first driver: %v", err)
		}
	}
	if err := first.Close(fails); notices && err != nil || !notices && !isTaken(err) {
		t.Errorf("the first driver closes with %v", err)
	}
	<-time.After(2 * renewEvery)
	if err := second.Err(); err != nil {
		t.Errorf("the second driver: %v", err)
	}
	refused(t, c)
	loop(t, second, 1)
	if err := second.Close(false); err != nil || len(c.left(t)) > 0 {
		t.Errorf("the second driver closes with %v, left: %q", err, c.left(t))
	}
	if err := first.Close(fails); !notices && (err == nil || !strings.HasPrefix(err.Error(), "session s was removed, by hand or by another process")) {
		t.Errorf("without a session, the first driver closes with %v", err)
	}
}

// refused checks that a driver cannot use the session of another one.
func refused(t *testing.T, c *fakeCluster) {
	t.Helper()
	start := time.Now()
	_, err := c.driver("s", "p").Step(t.Context(), "step", []byte("0"))
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d on ", os.Getpid())) || time.Since(start) > 2*renewEvery {
		t.Fatalf("another driver: %v after %v", err, time.Since(start))
	}
}

// TestTakenAtEnd: a driver that loses its session while it ends leaves it to the other one.
func TestTakenAtEnd(t *testing.T) {
	for name, end := range map[string]func(*session) error{"release": (*session).release, "remove": (*session).remove} {
		t.Run(name, func(t *testing.T) {
			files := &takenFS{FS: mem.New(1 << 20)}
			c := &fakeCluster{fs: files}
			d := c.driver("s", "p")
			loop(t, d, 1)
			d.session.leave()
			files.taken = dfs.Join(d.session.dir, runningName, holderName)
			err := end(d.session)
			if holder, errRead := readFile(files, files.taken); string(holder) != "other" || errRead != nil {
				t.Errorf("the session is held by %q, %v; end: %v", holder, errRead, err)
			}
			if name == "remove" && !errors.Is(err, errTaken) {
				t.Errorf("end: %v", err)
			}
		})
	}
}

// TestRemoved: a driver without its session's directory says that it was removed, whether it notices that before its end
// or not.
func TestRemoved(t *testing.T) {
	for _, notices := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := &fakeCluster{fs: mem.New(1 << 20)}
			d := c.driver("s", "p")
			loop(t, d, 1)
			if err := c.fs.RemoveAll(d.session.dir); err != nil {
				t.Fatal(err)
			}
			want := "session s was removed, by hand or by another process that took it over: " + d.session.dir + " is missing"
			if notices {
				<-time.After(2 * renewEvery)
				if err := d.Err(); err == nil || err.Error() != want {
					t.Errorf("%v, want %s", err, want)
				}
			}
			if err := d.Close(true); notices && err != nil || !notices && (err == nil || err.Error() != want) {
				t.Errorf("the driver closes with %v", err)
			}
		})
	}
}

// TestNotRenamedBack: a driver that cannot give a session back to the one that has taken it over reports that.
func TestNotRenamedBack(t *testing.T) {
	files := &takenFS{FS: mem.New(1 << 20)}
	c := &fakeCluster{fs: files}
	d := c.driver("s", "p")
	loop(t, d, 1)
	d.session.leave()
	files.taken, files.stuck = dfs.Join(d.session.dir, runningName, holderName), true
	d.Fail(errors.New("the driver has failed already"))
	if err := d.Close(false); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "remove session: session s was taken over by") {
		t.Errorf("the driver closes with %v", err)
	}
}

// takenFS lets another driver take over a session before the first rename of its directory, or of the lease.
type takenFS struct {
	dfs.FS
	taken string // file of the holder
	stuck bool   // only the first rename succeeds
}

func (f *takenFS) RenameDir(from, to string) error {
	if name := f.taken; name != "" && strings.HasPrefix(name, from) {
		if err := errors.Join(f.Remove(name), writeFile(f.FS, name, []byte("other"))); err != nil {
			return err
		}
	} else if f.stuck {
		return fs.ErrPermission
	}
	return f.FS.RenameDir(from, to)
}

// TestDeadHolder: the session of a dead process is free at once.
func TestDeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCluster{fs: mem.New(1 << 20)}
		host, _ := os.Hostname()
		dir := dfs.Join(sessions, "s", runningName)
		if err := errors.Join(c.fs.MkdirAll(dir), writeFile(c.fs, dfs.Join(dir, holderName), []byte(host+" 999999999 x"))); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		d := c.driver("s", "p")
		loop(t, d, 1)
		if time.Since(start) > 0 {
			t.Errorf("waited %v for a dead process", time.Since(start))
		}
		if err := d.Close(false); err != nil {
			t.Fatal(err)
		}
	})
}

// TestEndsWhileWaiting: a driver that waits for a session begins a new one if the process that had it ends well.
func TestEndsWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCluster{fs: mem.New(1 << 20)}
		first := c.driver("s", "p")
		loop(t, first, 1)
		c.ran()
		second := c.driver("s", "p")
		var notes []string
		second.Note = func(text string) { notes = append(notes, text) }
		ended := make(chan error)
		go func() {
			_, err := second.Step(t.Context(), "step", []byte("0"))
			ended <- err
		}()
		synctest.Wait()
		if err := first.Close(false); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil || c.ran() != "step0" {
			t.Errorf("the second driver: %v", err)
		}
		self := processText(fmt.Sprintf("%s %d", must(os.Hostname()), os.Getpid()))
		want := []string{
			"session s is in use by " + self + "; waiting to see whether it still runs",
			"session s was ended and removed by " + self + ": a new one begins",
		}
		if !slices.Equal(notes, want) {
			t.Errorf("notes %q", notes)
		}
		if err := second.Close(false); err != nil || len(c.left(t)) > 0 {
			t.Errorf("%v, left: %q", err, c.left(t))
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestSweep: sessions that have not changed for their lease are removed, others not.
func TestSweep(t *testing.T) {
	files := mem.New(1 << 20)
	if err := files.MkdirAll(dfs.Join(sessions, "s")); err != nil {
		t.Fatal(err)
	}
	c := &fakeCluster{fs: files}
	info, err := files.Stat(dfs.Join(sessions, "s"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Sweep(files, sessions, info.Modified.Add(Lease-time.Hour)); err != nil || len(c.left(t)) != 1 {
		t.Errorf("%v, %q", err, c.left(t))
	}
	if err := Sweep(files, sessions, info.Modified.Add(Lease+time.Hour)); err != nil || len(c.left(t)) != 0 {
		t.Errorf("%v, %q", err, c.left(t))
	}
}
