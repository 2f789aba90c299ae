package mapreduce

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
)

// counted is a record of the definitions below.
type counted struct{ N int64 }

func (c *counted) Fields(f *Fields) { f.Int64(&c.N) }

type countParams struct {
	Words  Dataset[string, counted]
	Times  int64
	Output string
	Binary bool
}

// countDefinition counts words of -input, or multiplies earlier counts. It counts the maps that ran.
func countDefinition(maps *atomic.Int64) *Definition[countParams, string, counted] {
	return Define("count", func(job *Job, p countParams) (*Result[string, counted], error) {
		job.Output = p.Output
		if p.Binary {
			job.Format = Binary{}
		}
		pairs := Map(p.Words.Input(), func(t *Task, rec Pair[string, counted], emit func(string, counted)) error {
			maps.Add(1)
			emit(rec.A, counted{rec.B.N * p.Times})
			return nil
		})
		if p.Words.Path() == "" {
			pairs = Map(Lines(), func(t *Task, line string, emit func(string, counted)) error {
				maps.Add(1)
				t.Counter("test", "lines").Add(1)
				for w := range strings.FieldsSeq(line) {
					emit(w, counted{1})
				}
				return nil
			})
		}
		return Fold(pairs, func(a, b counted) counted { return counted{a.N + b.N} }), nil
	})
}

// driveTest runs a driver with an input, in this process.
type driveTest struct {
	dir     string
	session string
	output  string // below dir; empty: out
}

func newDriveTest(t *testing.T, input string) *driveTest {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	return &driveTest{dir: dir}
}

func (x *driveTest) run(t *testing.T, drive func(*Driver) error, definitions ...Defined) error {
	s := bridge.Settings{
		Inputs: []string{filepath.Join(x.dir, "in")}, Output: filepath.Join(x.dir, cmp.Or(x.output, "out")), Session: x.session,
		Properties: map[string]string{"quern.embedded.dir": x.dir},
	}
	return RunInProcess(t.Context(), s, drive, definitions...)
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

// TestDrive: a driver reads typed results and counters of its jobs, and later jobs read the results. Other
// programs read binary output by its path. No file remains but the outputs.
func TestDrive(t *testing.T) {
	x := newDriveTest(t, "b a\nb\n")
	var ran atomic.Int64
	count := countDefinition(&ran)
	kept := filepath.Join(x.dir, "kept")
	stored := Define("stored", func(job *Job, output string) (*Result[string, int64], error) {
		job.Output = output
		return Fold(Map(Stored[string, struct{ counted }](kept), func(_ *Task, rec Pair[string, struct{ counted }], emit func(string, int64)) error {
			emit(rec.A, rec.B.N)
			return nil
		}), Sum), nil
	})
	wrong := Define("wrong", func(*Job, struct{}) (*Result[string, int64], error) {
		return Sort(Map(Stored[string, int64](kept), func(_ *Task, rec Pair[string, int64], emit func(string, int64)) error {
			emit(rec.A, rec.B)
			return nil
		})), nil
	})
	textual := Define("textual", func(*Job, struct{}) (*Result[string, int64], error) {
		return Sort(Map(Lines(kept), func(_ *Task, line string, emit func(string, int64)) error {
			emit(line, 1)
			return nil
		})), nil
	})
	err := x.run(t, func(d *Driver) error {
		first, err := count.Run(d, countParams{})
		if err != nil {
			return err
		}
		if n := first.Counter("test", "lines"); n != 2 {
			t.Errorf("%d lines counted, want 2", n)
		}
		second, err := count.Run(d, countParams{Words: first, Times: 3, Output: kept, Binary: true})
		if err != nil {
			return err
		}
		if err := first.Drop(d); err != nil {
			t.Error(err)
		}
		_, err = count.Run(d, countParams{Words: first})
		wantError(t, err, "run count: parameters: ")
		wantError(t, err, first.Path()+": the driver has dropped this Dataset")
		if got, want := maps.Collect(second.All(d)), map[string]counted{"a": {3}, "b": {6}}; !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		_, err = wrong.Run(d, struct{}{})
		wantError(t, err, "run wrong: job wrong: input: bad input: file://"+kept+" has records of string and fields{int64}, but the program reads string and int64")
		_, err = textual.Run(d, struct{}{})
		wantError(t, err, "file://"+kept+" has binary records, not lines of text: read them with mapreduce.Stored")
		if err := second.Drop(d); err == nil {
			t.Error("a result outside of the session was dropped")
		}
		_, err = stored.Run(d, filepath.Join(x.dir, "out"))
		return err
	}, count, stored, wrong, textual)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(x.dir, "out", "part-r-00000")); string(got) != "a\t3\nb\t6\n" {
		t.Errorf("output %q, %v", got, err)
	}
	if left, err := filepath.Glob(filepath.Join(x.dir, "quern-*", "*")); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestDriveReadFails: a driver that ignores that a result cannot be read fails all the same, and runs
// nothing more.
func TestDriveReadFails(t *testing.T) {
	x := newDriveTest(t, "b a\nb\n")
	var ran atomic.Int64
	count := countDefinition(&ran)
	err := x.run(t, func(d *Driver) error {
		words, err := count.Run(d, countParams{})
		if err != nil {
			return err
		}
		if err := os.WriteFile(strings.TrimPrefix(words.Path(), "file://")+"/part-r-00000", []byte("damaged"), 0o600); err != nil {
			return err
		}
		for range words.All(d) {
			t.Error("a record came from a damaged file")
		}
		_, err = count.Run(d, countParams{Words: words})
		wantError(t, err, "part-r-00000")
		return nil
	}, count)
	wantError(t, err, "part-r-00000")
}

// loop runs three steps; the last one writes -output.
func (x *driveTest) loop(t *testing.T, count *Definition[countParams, string, counted], fail bool) error {
	return x.run(t, func(d *Driver) error {
		output, err := d.Output()
		if err != nil {
			return err
		}
		var words Dataset[string, counted]
		for i := range 3 {
			p := countParams{Words: words, Times: 2}
			if i == 2 {
				p.Output = output
			}
			if words, err = count.Run(d, p); err != nil {
				return err
			}
		}
		if fail {
			return errors.New("stopped")
		}
		return nil
	}, count)
}

// TestDriveOutputExists: if its -output exists, a driver fails before its first job, unless its session has written there.
// With another -output it goes on with the session.
func TestDriveOutputExists(t *testing.T) {
	for _, session := range []string{"", "s"} {
		t.Run("session "+session, func(t *testing.T) {
			x := newDriveTest(t, "b a\nb\n")
			x.session = session
			var ran atomic.Int64
			count := countDefinition(&ran)
			if err := os.Mkdir(filepath.Join(x.dir, "out"), 0o700); err != nil {
				t.Fatal(err)
			}
			err := x.loop(t, count, false)
			wantError(t, err, "output exists: file://"+x.dir+"/out")
			if n := ran.Load(); n != 0 {
				t.Errorf("%d records were mapped", n)
			}
			if session == "" {
				return
			}
			if left, err := filepath.Glob(filepath.Join(x.dir, "*", "sessions", "*")); len(left) > 0 || err != nil {
				t.Errorf("a session without steps is kept: %q, %v", left, err)
			}
			if strings.Contains(err.Error(), "goes on") {
				t.Errorf("a session without steps goes on: %v", err)
			}
			x.output = "other"
			for range 2 { // the second time, the session has written the output
				wantError(t, x.loop(t, count, true), "stopped")
			}
			if n := ran.Swap(0); n != 6 {
				t.Errorf("%d records were mapped, want 6", n)
			}
			if left, err := filepath.Glob(filepath.Join(x.dir, "*", "sessions", "*")); len(left) != 1 || err != nil {
				t.Errorf("sessions: %q, %v", left, err)
			}
			x.output = "third"
			if err := x.loop(t, count, false); err != nil {
				t.Fatal(err)
			}
			if n := ran.Load(); n != 2 {
				t.Errorf("with another -output, %d records were mapped, want 2", n)
			}
			if got, err := os.ReadFile(filepath.Join(x.dir, "third", "part-r-00000")); string(got) != "a\t4\nb\t8\n" {
				t.Errorf("output %q, %v", got, err)
			}
		})
	}
}

// TestDriveNoOutput: a driver that asks for -output fails without it, as bad usage. Others need none.
func TestDriveNoOutput(t *testing.T) {
	x := newDriveTest(t, "a\n")
	var ran atomic.Int64
	count := countDefinition(&ran)
	s := bridge.Settings{Inputs: []string{filepath.Join(x.dir, "in")}, Properties: map[string]string{"quern.embedded.dir": x.dir}}
	run := func(asks bool) error {
		return RunInProcess(t.Context(), s, func(d *Driver) error {
			if _, err := d.Output(); asks {
				return err
			}
			_, err := count.Run(d, countParams{})
			return err
		}, count)
	}
	err := run(true)
	wantError(t, err, "no output directory: give -output")
	if _, ok := errors.AsType[bridge.UsageError](err); !ok {
		t.Errorf("%T is no usage error", err)
	}
	if err := run(false); err != nil {
		t.Error(err)
	}
}

// TestDriveKills: when the context of a run ends, its job is killed, and the driver goes on.
func TestDriveKills(t *testing.T) {
	x := newDriveTest(t, "a\n")
	began := make(chan struct{}, 1)
	hang := Define("hang", func(*Job, struct{}) (*Result[string, string], error) {
		return MapOnly(Map(Lines(), func(t *Task, line string, _ func(string, string)) error {
			began <- struct{}{}
			<-t.Done()
			return t.Err()
		})), nil
	})
	var ran atomic.Int64
	count := countDefinition(&ran)
	err := x.run(t, func(d *Driver) error {
		ctx, cancel := context.WithCancelCause(d)
		go func() {
			<-began
			cancel(errors.New("enough"))
		}()
		_, err := hang.Run(d.WithContext(ctx), struct{}{})
		wantError(t, err, "killed: enough")
		_, err = count.Run(d, countParams{})
		return err
	}, hang, count)
	if err != nil {
		t.Error(err)
	}
}

// TestDriveRefusals: a job that workers could not build is refused, by the name of its definition.
func TestDriveRefusals(t *testing.T) {
	x := newDriveTest(t, "a\n")
	lines := func(*Job) (*Result[string, int64], error) {
		return Fold(Map(Lines(), func(_ *Task, line string, emit func(string, int64)) error { emit(line, 1); return nil }), Sum), nil
	}
	calls := 0
	differs := Define("differs", func(job *Job, _ struct{}) (*Result[string, int64], error) {
		calls++
		job.Reduces = calls
		return lines(job)
	})
	hidden := Define("hidden", func(job *Job, _ struct{ A struct{ b int } }) (*Result[string, int64], error) { return lines(job) })
	any := Define("any", func(job *Job, _ []any) (*Result[string, int64], error) { return lines(job) })
	renamed := Define("renamed", func(job *Job, _ int) (*Result[string, int64], error) { job.Name = "x"; return lines(job) })
	fails := Define("fails", func(job *Job, n int) (*Result[string, int64], error) { return nil, fmt.Errorf("no %d", n) })
	infinite := Define("infinite", func(job *Job, _ []struct{ X float64 }) (*Result[string, int64], error) { return lines(job) })
	absent := Define("absent", func(job *Job, _ int) (*Result[string, int64], error) { return lines(job) })
	empty := Define("empty", func(_ *Job, p Dataset[string, int64]) (*Result[string, int64], error) {
		return Sort(Map(p.Input(), func(_ *Task, r Pair[string, int64], emit func(string, int64)) error { emit(r.A, r.B); return nil })), nil
	})
	hides := Define("hides", func(job *Job, _ hiding) (*Result[string, int64], error) { return lines(job) })
	encoded := Define("encoded", func(job *Job, p selfEncoded) (*Result[string, int64], error) {
		if !p.Addr.IsValid() || p.N.Sign() == 0 {
			return nil, fmt.Errorf("the parameters are %v and %v", p.Addr, &p.N)
		}
		return lines(job)
	})
	err := x.run(t, func(d *Driver) error {
		_, err := differs.Run(d, struct{}{})
		wantError(t, err, "definition differs depends on more than its parameters and the flags: field Jobs[0].Reduces")
		_, err = hidden.Run(d, struct{ A struct{ b int } }{})
		wantError(t, err, "run hidden: params.A.b is not exported")
		_, err = hides.Run(d, hiding{})
		wantError(t, err, `run hides: params.Base.Rank and params.Rank have the name "Rank" in JSON`)
		if _, err = encoded.Run(d, selfEncoded{netip.IPv6Loopback(), *big.NewInt(1)}); err != nil {
			t.Error(err)
		}
		_, err = any.Run(d, nil)
		wantError(t, err, "run any: params has the interface type")
		_, err = renamed.Run(d, 1)
		wantError(t, err, `run renamed: its definition set Job.Name to "x"`)
		_, err = fails.Run(d, 7)
		wantError(t, err, "run fails: no 7")
		_, err = infinite.Run(d, []struct{ X float64 }{{1}, {math.Inf(1)}})
		wantError(t, err, "run infinite: parameters: params[1].X is not a finite number")
		_, err = absent.Run(d, 1)
		wantError(t, err, "definition absent was not given to mapreduce.Drive")
		_, err = empty.Run(d, Dataset[string, int64]{})
		wantError(t, err, "the input is an empty Dataset")
		_, err = lines2(d)
		return err
	}, differs, hidden, any, renamed, fails, empty, infinite, hides, encoded)
	wantError(t, err, "definition lines2 was not given")
	err = x.run(t, func(d *Driver) error { return nil }, fails, fails)
	wantError(t, err, "two definitions given to mapreduce.Drive are named fails")
}

type hiding struct {
	Base
	Rank float64
}

// selfEncoded has fields that encode themselves.
type selfEncoded struct {
	Addr netip.Addr
	N    big.Int
}

func lines2(d *Driver) (Dataset[string, int64], error) {
	return Define("lines2", func(*Job, int) (*Result[string, int64], error) { return nil, nil }).Run(d, 1)
}
