package runtime

import (
	"errors"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/wire"
)

// Setup attempts that are thought lost begin, go on and die at any time beside the cleanups
// of their job and after them, and cleanups beside each other: nothing of the job is left,
// but for empty directories where a setup attempt could not remove its own.
func TestLateSetups(t *testing.T) {
	built, turned := 0, 0
	for seed := range uint64(5_000) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		f, healthy := newData(), seed%2 == 0
		running := []*actor{
			act(f, false, func(f dfs.FS) error { return setUp(f, 0) }),
			act(f, false, func(f dfs.FS) error { return setUp(f, 1) }),
		}
		cleaned, cleanups := false, 0
		for at := 0; len(running) > 0 || !cleaned; {
			if len(running) == 0 || !cleaned && rnd.IntN(20) == 0 {
				if cleanups++; cleanups > 100 {
					t.Fatalf("seed %d: no cleanup succeeds, there is %s", seed, state(f, "mem://t/data"))
				}
				running = append(running, act(f, true, func(f dfs.FS) error { return newTree(f).cleanup() }))
			}
			if at >= len(running) || rnd.IntN(8) == 0 {
				at = rnd.IntN(len(running))
			}
			x, fate := running[at], lives
			if !healthy && rnd.IntN(20) == 0 {
				fate = fate + 1 + fates(rnd.IntN(4))
			}
			if x.goesOn(fate) {
				continue
			}
			running = append(running[:at], running[at+1:]...)
			switch {
			case x.cleans:
				cleaned = cleaned || x.err == nil
			case x.err == nil:
				built++
			case strings.Contains(x.err.Error(), "was stopped"):
				turned++
			}
		}
		left := state(f, "mem://t/data")
		if left != "" && (healthy || strings.Contains(left, "=") || !strings.HasPrefix(left, "/data/.out.")) {
			t.Fatalf("seed %d: left %s", seed, left)
		}
	}
	if built < 500 || turned < 500 {
		t.Errorf("%d setups have built the output, %d have been turned back", built, turned)
	}
}

// Cleanups beside each other remove, of a job whose commit has failed, its files and no others'.
func TestLateCleanups(t *testing.T) {
	for seed := range uint64(2_000) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		f := newData()
		commitsHalf(t, f)
		var running []*actor
		for range 2 {
			running = append(running, act(f, true, func(f dfs.FS) error { return newTree(f).cleanup() }))
		}
		for at := 0; len(running) > 0; {
			if at >= len(running) || rnd.IntN(8) == 0 {
				at = rnd.IntN(len(running))
			}
			if !running[at].goesOn(lives) {
				running = append(running[:at], running[at+1:]...)
			}
		}
		if err := newTree(f).cleanup(); err != nil {
			t.Fatal(err)
		}
		if got := state(f, "mem://t/data"); got != "/data/out/ /data/out/part-r-00001=foreign" {
			t.Fatalf("seed %d: left %s", seed, got)
		}
	}
}

// Once a job is cleaned up, it can be cleaned up again, by any worker, and not be set up,
// neither by one that has read the submission before nor by another.
func TestStopped(t *testing.T) {
	b := newBench(t, linesPlan(), wordCount())
	b.must(wire.Setup, 0, nil)
	b.must(wire.Cleanup, 0, nil)
	for _, want := range []string{"the job was stopped or is over", "read submission"} {
		if r := b.try(wire.Setup, 0, nil); !strings.Contains(r.Error, want) || r.Fatal {
			t.Errorf("setup after cleanup: %+v", r)
		}
		b.output("")
		b.stop()
		b.start()
	}
	b.must(wire.Cleanup, 0, nil)
}

func setUp(f dfs.FS, n int) error {
	tr := newTree(f)
	if state, err := tr.checkOwner(); state != unclaimed {
		return err
	}
	return tr.build(testAttempt(wire.Setup, 0, n))
}

// actor is code that waits before each of its calls to the file system.
type actor struct {
	cleans bool
	next   func() (struct{}, bool)
	fate   fates
	err    error // once it is over
}

// fates are what becomes of a call, and of who makes it.
type fates int

const (
	lives  fates = iota
	fails        // the call
	seems        // to fail, and does not
	dies         // before the call
	spooks       // the call is made all the same
)

var errDied = errors.New("died")

func act(f dfs.FS, cleans bool, code func(dfs.FS) error) *actor {
	x := &actor{cleans: cleans}
	x.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			switch died := recover(); died {
			case nil:
			case errDied:
				x.err = errDied
			default:
				panic(died)
			}
		}()
		x.err = code(&turns{FS: f, take: func(call func() error) error {
			yield(struct{}{})
			return x.fate.befall(call)
		}})
	})
	x.next()
	return x
}

// goesOn has the call that is waited for meet its fate. It says whether there is another.
func (x *actor) goesOn(fate fates) bool {
	x.fate = fate
	_, more := x.next()
	return more
}

func (x fates) befall(call func() error) error {
	if x == fails || x == dies {
		call = func() error { return nil }
	}
	err := call()
	switch x {
	case lives:
		return err
	case fails, seems:
		return errors.New("input/output error")
	}
	panic(errDied)
}

// turns is a file system each call to which waits for its turn. Trees are removed piece by
// piece, as local ones are.
type turns struct {
	dfs.FS
	take func(call func() error) error
}

func (f *turns) Open(name string) (file dfs.File, err error) {
	err = f.take(func() (err error) { file, err = f.FS.Open(name); return err })
	return file, err
}

func (f *turns) Create(name string) (out dfs.Writer, err error) {
	err = f.take(func() (err error) { out, err = f.FS.Create(name); return err })
	return out, err
}

func (f *turns) Stat(name string) (info dfs.Info, err error) {
	err = f.take(func() (err error) { info, err = f.FS.Stat(name); return err })
	return info, err
}

func (f *turns) List(name string) (infos []dfs.Info, err error) {
	err = f.take(func() (err error) { infos, err = f.FS.List(name); return err })
	return infos, err
}

func (f *turns) Mkdir(name string) error {
	return f.take(func() error { return f.FS.Mkdir(name) })
}

func (f *turns) RenameDir(from, to string) error {
	return f.take(func() error { return f.FS.RenameDir(from, to) })
}

func (f *turns) RenameFile(from, to string) error {
	return f.take(func() error { return f.FS.RenameFile(from, to) })
}

func (f *turns) Remove(name string) error {
	return f.take(func() error { return f.FS.Remove(name) })
}

func (f *turns) RemoveAll(name string) error {
	err := f.Remove(name)
	if err == nil || missing(err) {
		return nil
	}
	inside, err := f.List(name)
	for _, info := range inside {
		if err := f.RemoveAll(info.Name); err != nil {
			return err
		}
	}
	if err == nil {
		err = f.Remove(name)
	}
	if missing(err) {
		return nil
	}
	return err
}
