package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/quernmr/quern/dfs/mem"
	"github.com/quernmr/quern/wire"
)

// count creates n counters of a group.
func count(t *Task, group string, n int) {
	for i := range n {
		t.Counter(group, fmt.Sprintf("c%04d", i)).Add(1)
	}
}

// TestCounterLimits checks that a counter beyond the job's limits fails the attempt and
// commits nothing, even if its code continues.
func TestCounterLimits(t *testing.T) {
	long := strings.Repeat("x", 65)
	for name, c := range map[string]struct {
		properties map[string]string
		code       func(t *Task)
		want       []string // nil: success
	}{
		"all":           {code: func(t *Task) { count(t, "mine", 120) }},
		"one more":      {code: func(t *Task) { count(t, "mine", 121) }, want: []string{`"c0120"`, `"mine"`, "at most 120", "mapreduce.job.counters.max"}},
		"raised":        {properties: map[string]string{"mapreduce.job.counters.max": "130"}, code: func(t *Task) { count(t, "mine", 130) }},
		"beyond raised": {properties: map[string]string{"mapreduce.job.counters.max": "130"}, code: func(t *Task) { count(t, "mine", 131) }, want: []string{"at most 130"}},
		"many more":     {code: func(t *Task) { count(t, "mine", 10_000) }, want: []string{"at most 120"}},
		"groups": {code: func(t *Task) {
			for i := range 51 {
				count(t, fmt.Sprint("g", i), 1)
			}
		}, want: []string{`"g50"`, "at most 50", "mapreduce.job.counters.groups.max"}},
		"a long name":  {code: func(t *Task) { t.Counter("mine", long) }, want: []string{long, "65 characters", "mapreduce.job.counters.counter.name.max"}},
		"a long group": {code: func(t *Task) { t.Counter(long+long, "c") }, want: []string{"130 characters", "mapreduce.job.counters.group.name.max"}},
		"not ours":     {code: func(t *Task) { count(t, wire.TaskCounters, 300) }, want: []string{"200"}},
		"from another goroutine": {code: func(t *Task) {
			done := make(chan bool)
			go func() { defer close(done); count(t, "mine", 121) }()
			<-done
		}, want: []string{"at most 120"}},
		"awaiting the end": {code: func(t *Task) { count(t, "mine", 121); <-t.Ctx.Done() }, want: []string{"at most 120"}},
		"and a panic":      {code: func(t *Task) { count(t, "mine", 121); panic("lost") }, want: []string{"at most 120"}},
	} {
		for _, reduces := range []int{0, 2} {
			t.Run(fmt.Sprint(name, " ", reduces), func(t *testing.T) {
				plan := linesPlan()
				plan.Properties = c.properties
				job := Job{Maps: []MapFunc{func(t *Task, in *Split, _ Collector) error {
					c.code(t)
					for range in.Lines() { // ignores the error
					}
					return nil
				}}}
				if plan.Reduces = reduces; reduces > 0 {
					job.Reduce = wordCount().Reduce
				}
				b := newTrackerSim(t, plan, job)
				b.mustRun(wire.Setup, 0, nil)
				r := b.run(wire.Map, 0, nil)
				if c.want == nil {
					if r.Error != "" || len(r.Counters["mine"]) < 120 {
						t.Errorf("error %q, %d counters", r.Error, len(r.Counters["mine"]))
					}
					return
				}
				if !r.Fatal || len(r.Counters) > 0 {
					t.Errorf("fatal is %v, counters in %d groups", r.Fatal, len(r.Counters))
				}
				for _, want := range c.want {
					if !strings.Contains(r.Error, want) {
						t.Errorf("error %.300q lacks %q", r.Error, want)
					}
				}
				b.mustRun(wire.Cleanup, 0, nil)
				b.checkOutput("")
			})
		}
	}
}

// TestLongTexts checks that long errors, statuses and panics are cut with a mark. The cause
// comes first, and the errors are not fatal.
func TestLongTexts(t *testing.T) {
	long := "the cause " + strings.Repeat("x", 5<<20)
	for name, c := range map[string]struct {
		code func(t *Task) error
		want []string
	}{
		"error":  {func(*Task) error { return errors.New(long) }, []string{"xxx…"}},
		"panic":  {func(*Task) error { panic(long) }, []string{"xxx…", "bounds_test.go"}},
		"status": {func(t *Task) error { t.Status(long); return errors.New("the cause") }, []string{"(its status: the cause xxx", "xxx…)"}},
		"both":   {func(t *Task) error { t.Status(long); return errors.New(long) }, []string{"xxx…\n(its status: the cause xxx", "xxx…)"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTrackerSim(t, linesPlan(), Job{Maps: []MapFunc{func(t *Task, _ *Split, _ Collector) error { return c.code(t) }}, Reduce: wordCount().Reduce})
			b.mustRun(wire.Setup, 0, nil)
			r := b.run(wire.Map, 0, nil)
			cause, _, _ := strings.Cut(r.Error, "xxx")
			if r.Fatal || !strings.Contains(cause, "the cause") || len(cause) > 50 || len(r.Error) > 2*wire.MaxText {
				t.Errorf("fatal is %v, %d bytes: %.100s", r.Fatal, len(r.Error), r.Error)
			}
			for _, want := range c.want {
				if !strings.Contains(r.Error, want) {
					t.Errorf("%.100s … lacks %q", r.Error, want)
				}
			}
		})
	}
}

// TestEndlessLine checks that a line beyond the limit is refused before all of it is read: it
// may be longer than the memory.
func TestEndlessLine(t *testing.T) {
	const limit, block = 10_000, 1000
	f := mem.New(1 << 20)
	putFile(f, "mem://t/in", make([]byte, 100*limit))
	s := splitSettings(math.MaxInt64)
	s.recordMax = limit
	splits := reader(t, f, wire.InputPlan{Format: formatLines, Paths: []string{"mem://t/in"}}, s, block)
	if err := firstError(splits); !errors.Is(err, ErrRecordTooLarge) {
		t.Errorf("got %v", err)
	}
	if n := splits[0].rawBytes.Load(); n > limit+3*block {
		t.Errorf("%d bytes were read, the limit is %d", n, limit)
	}
}

// TestChangedInput checks that no split reads a file that differs from the one that was cut into
// splits, or that ends early.
func TestChangedInput(t *testing.T) {
	content := []byte("one\ntwo\nthree\n")
	for name, c := range map[string]struct {
		change func(c *Chunk)
		want   error // nil: success
	}{
		"same":                 {func(*Chunk) {}, nil},
		"longer":               {func(c *Chunk) { c.Size-- }, ErrChanged},
		"shorter":              {func(c *Chunk) { c.Size++ }, ErrChanged},
		"another time":         {func(c *Chunk) { c.Modified++ }, ErrChanged},
		"time not known":       {func(c *Chunk) { c.Modified = 0 }, nil},
		"shorter, not known":   {func(c *Chunk) { c.Modified, c.Size, c.Length = 0, c.Size+5, c.Length+5 }, ErrTruncated},
		"shorter, second half": {func(c *Chunk) { c.Modified, c.Offset = 0, 5 }, ErrTruncated},
	} {
		f := mem.New(1 << 20)
		putFile(f, "mem://t/in", content)
		for _, in := range []wire.InputPlan{{Format: formatLines}, {Format: formatRecords, RecordSize: 1}} {
			in.Paths = []string{"mem://t/in"}
			splits := reader(t, f, in, splitSettings(math.MaxInt64), blockSize)
			c.change(&splits[0].chunks[0])
			if err := firstError(splits); !errors.Is(err, c.want) || c.want == ErrChanged && !isFatal(err) {
				t.Errorf("%s, as %s: %v, want %v", name, in.Format, err, c.want)
			}
		}
	}
}

// TestDamagedCuts checks that cuts with a changed byte, or without their end, are refused.
func TestDamagedCuts(t *testing.T) {
	good, err := encodeHashed(&cutsFile{Cuts: [][]byte{[]byte("be"), []byte("rose")}})
	if err != nil {
		t.Fatal(err)
	}
	if cuts, err := decodeCuts(good); err != nil || len(cuts.Cuts) != 2 {
		t.Errorf("%q, %v", cuts.Cuts, err)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		for _, data := range [][]byte{bad, good[:i]} {
			if _, err := decodeCuts(data); !errors.Is(err, ErrCorrupt) {
				t.Errorf("%x: %v, want ErrCorrupt", data, err)
			}
		}
	}
}
