package mrtest

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"

	mr "github.com/quernmr/quern/mapreduce"
)

const scores = "ann\t1\nbob\t5\nann\t2\nann\t9\nbob\t1\ncid\t4\nann\t4\n"

func scorePairs() *mr.Pairs[string, int64] {
	return mr.Map(mr.KeyValues(), func(_ *mr.Task, kv mr.Pair[string, string], emit func(string, int64)) error {
		n, err := strconv.ParseInt(kv.B, 10, 64)
		emit(kv.A, n)
		return err
	})
}

func linePairs() *mr.Pairs[string, struct{}] {
	return mr.Map(mr.Lines(), func(_ *mr.Task, line string, emit func(string, struct{})) error {
		emit(line, struct{}{})
		return nil
	})
}

// TestWrongJobs: mrtest detects jobs that are correct when run alone, but wrong on a
// cluster.
func TestWrongJobs(t *testing.T) {
	seen := make(map[string]bool)
	lines := 0
	for name, c := range map[string]struct {
		job Runnable
		how string // the run that detects it
	}{
		"package variable in a map": {mr.MapOnly(mr.Map(mr.KeyValues(), func(_ *mr.Task, kv mr.Pair[string, string], emit func(string, struct{})) error {
			if !seen[kv.A] {
				seen[kv.A] = true
				emit(kv.A, struct{}{})
			}
			return nil
		})).Job("distinct"), "split by record"},
		"package variable between map and reduce": {mr.Reduce(mr.Map(mr.Lines(), func(_ *mr.Task, line string, emit func(string, int64)) error {
			lines++
			emit("share", 1)
			return nil
		}), func(_ *mr.Task, k string, ones iter.Seq[int64], emit func(string, float64)) error {
			n := 0
			for range ones {
				n++
			}
			emit(k, float64(n)/float64(lines))
			return nil
		}).Job("share"), "split by record"},
		"an average as a fold": {mr.Fold(scorePairs(), func(a, b int64) int64 { return (a + b) / 2 }).Job("average"), "in reverse order"},
		"a combiner that is not the reduce": {mr.Reduce(scorePairs().Combine(mr.Max), func(_ *mr.Task, k string, vals iter.Seq[int64], emit func(string, int64)) error {
			sum := int64(0)
			for v := range vals {
				sum += v
			}
			emit(k, sum)
			return nil
		}).Job("sum"), "without its combiner"},
		"a reduce that keeps its []byte": {mr.Reduce(mr.Map(mr.KeyValues(), func(_ *mr.Task, kv mr.Pair[string, string], emit func(string, []byte)) error {
			emit(kv.A, []byte(kv.B))
			return nil
		}), func(_ *mr.Task, k string, vals iter.Seq[[]byte], emit func(string, []byte)) error {
			var smallest []byte
			for v := range vals {
				if smallest == nil || string(v) < string(smallest) {
					smallest = v
				}
			}
			emit(k, smallest)
			return nil
		}).Job("smallest"), "split by record"},
		"a combiner that keeps its []byte": {mr.Reduce(mr.Map(mr.KeyValues(), func(_ *mr.Task, kv mr.Pair[string, string], emit func(string, []byte)) error {
			emit(kv.A, []byte(kv.B))
			return nil
		}).CombineGroup(func(_ *mr.Task, k string, vals iter.Seq[[]byte], emit func([]byte)) error {
			for _, v := range slices.Collect(vals) {
				emit(v)
			}
			return nil
		}), func(_ *mr.Task, k string, vals iter.Seq[[]byte], emit func(string, []byte)) error {
			for v := range vals {
				emit(k, v)
			}
			return nil
		}).Job("all"), "on three reduces"},
		"a map that depends on the split": {mr.MapOnly(mr.MapSplit(mr.Lines(), func(_ *mr.Task, lines iter.Seq[string], emit func(int64, string)) error {
			n := int64(0)
			for line := range lines {
				n++
				emit(n, line)
			}
			return nil
		})).Job("numbered"), "split by record"},
		"a reduce that depends on its partition": {mr.ReduceAll(scorePairs(), func(_ *mr.Task, groups iter.Seq2[string, iter.Seq[int64]], emit func(string, int64)) error {
			n := int64(0)
			for k := range groups {
				n++
				emit(k, n)
			}
			return nil
		}).Job("numbered"), "on three reduces"},
		"a reduce that depends on the order of values": {mr.Reduce(scorePairs(), func(_ *mr.Task, k string, vals iter.Seq[int64], emit func(string, int64)) error {
			for v := range vals {
				emit(k, v)
				break
			}
			return nil
		}).Job("first"), "in reverse order"},
		"a format that is not text": {func() *mr.Job {
			j := mr.Sort(mr.MapSplit(mr.Lines(), func(_ *mr.Task, lines iter.Seq[string], emit func(string, string)) error {
				n := 0
				for line := range lines {
					n++
					emit(line, fmt.Sprint(n))
				}
				return nil
			})).Job("numbered")
			j.Format = mr.Raw{}
			return j
		}(), "split by record"},
	} {
		t.Run(name, func(t *testing.T) {
			clear(seen)
			lines = 0
			out, err := (&runner{ctx: t.Context(), dir: t.TempDir(), job: c.job}).runAll(map[string]string{inputName: scores}, true)
			if out == nil {
				t.Fatal(err)
			}
			if err == nil || !strings.Contains(err.Error(), c.how+": ") {
				t.Errorf("not detected %s: %v, output %q", c.how, err, out.Text())
			}
		})
	}
}

// TestCorrect: jobs of every shape pass all runs.
func TestCorrect(t *testing.T) {
	edit := func(j *mr.Job, f func(*mr.Job)) *mr.Job {
		f(j)
		return j
	}
	sumAll := func(_ *mr.Task, groups iter.Seq2[string, iter.Seq[int64]], emit func(string, int64)) error {
		sum := int64(0)
		for _, vals := range groups {
			for v := range vals {
				sum += v
			}
		}
		emit("all", sum)
		return nil
	}
	counts := mr.Fold(scorePairs(), mr.Sum)
	for name, c := range map[string]struct {
		job  Runnable
		want string
	}{
		"fold":                   {mr.Fold(scorePairs(), mr.Sum).Job("j"), "ann\t16\nbob\t6\ncid\t4\n"},
		"map only":               {mr.MapOnly(linePairs()).Job("j"), scores},
		"sort":                   {mr.Sort(linePairs().TotalOrder()).Job("j"), sortLines(scores)},
		"own format":             {edit(mr.Sort(linePairs()).Job("j"), func(j *mr.Job) { j.Format = csv{} }), strings.ReplaceAll(sortLines(scores), "\n", ";")},
		"all keys in one reduce": {edit(mr.ReduceAll(scorePairs(), sumAll).Job("j"), func(j *mr.Job) { j.Reduces = 1 }), "all\t26\n"},
		"no reduces, by property": {edit(mr.Sort(linePairs()).Job("j"), func(j *mr.Job) {
			j.Properties = map[string]string{"mapreduce.job.reduces": "0"}
		}), scores},
		"secondary sort": {mr.ReduceSorted(mr.Map(mr.KeyValues(), func(_ *mr.Task, kv mr.Pair[string, string], emit func(mr.Pair[string, string], []byte)) error {
			emit(mr.PairOf(kv.A, kv.B), []byte(kv.B))
			return nil
		}), func(_ *mr.Task, user string, vals iter.Seq2[string, []byte], emit func(string, string)) error {
			all := ""
			for k, v := range vals {
				if string(v) == k {
					all += k
				}
			}
			emit(user, all)
			return nil
		}).Job("j"), "ann\t1249\nbob\t15\ncid\t4\n"},
		"join": {mr.Join(scorePairs(), linePairs().Combine(func(a, _ struct{}) struct{} { return a }),
			func(_ *mr.Task, k string, as iter.Seq[int64], bs iter.Seq[struct{}], emit func(string, bool)) error {
				left, right := 0, 0
				for range as {
					left++
				}
				for range bs {
					right++
				}
				emit(k, left > 0 && right == 0 || left == 0 && right > 0)
				return nil
			}).Job("j"), "ann\ttrue\nann\t1\ttrue\nann\t2\ttrue\nann\t4\ttrue\nann\t9\ttrue\nbob\ttrue\nbob\t1\ttrue\nbob\t5\ttrue\ncid\ttrue\ncid\t4\ttrue\n"},
		"flow of two outputs": {&mr.Flow{Name: "f", Jobs: []*mr.Job{
			counts.Job("counts"),
			mr.MapOnly(mr.Map(mr.From(counts), func(_ *mr.Task, c mr.Pair[string, int64], emit func(string, struct{})) error {
				emit(c.A, struct{}{})
				return nil
			})).Job("names"),
			mr.Fold(mr.Map(mr.From(counts), func(_ *mr.Task, c mr.Pair[string, int64], emit func(struct{}, int64)) error {
				emit(struct{}{}, c.B)
				return nil
			}), mr.Sum).Job("total"),
		}}, "ann\nbob\ncid\n26\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Run(t, c.job, scores); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := Run(t, counts.Job("empty"), ""); got != "" {
		t.Errorf("of no input: %q", got)
	}
}

type csv struct{}

func (csv) Name() string { return "csv" }

func (csv) AppendRecord(dst, key, _ []byte) []byte { return append(append(dst, key...), ';') }

// scored inherits its Fields method from an embedded type.
type (
	scored struct {
		named
		Points int64
	}
	named struct{ Name string }
)

func (n *named) Fields(f *mr.Fields) { f.String(&n.Name) }

// fakeTest records errors like a testing.TB.
type fakeTest struct {
	testing.TB
	errors, fatals []string
}

func (v *fakeTest) Helper()           {}
func (v *fakeTest) Error(args ...any) { v.errors = append(v.errors, fmt.Sprint(args...)) }
func (v *fakeTest) Fatal(args ...any) {
	v.fatals = append(v.fatals, fmt.Sprint(args...))
	panic(v)
}

// TestReport: a failed job is fatal for the test, different outputs are errors.
func TestReport(t *testing.T) {
	broken := mr.MapOnly(mr.Map(mr.Lines(), func(_ *mr.Task, line string, _ func(string, int64)) error {
		return fmt.Errorf("what is %q", line)
	})).Job("broken")
	first := mr.Fold(scorePairs(), func(a, _ int64) int64 { return a }).Job("first")
	for name, c := range map[string]struct {
		job           Runnable
		errors, fatal string
	}{
		"fails":     {broken, "", `job broken, as it is: failed`},
		"disagrees": {first, `output part differs when the job is run with its input in reverse order: sorted by line, "ann	4" instead of "ann	1"`, ""},
		"forgets":   {mr.Sort(mr.Map(mr.Lines(), func(*mr.Task, string, func(scored, int64)) error { return nil })).Job("j"), "", "mrtest.scored leaves out Points"},
		"no job":    {&mr.Flow{Name: "f"}, "", "flow f has no jobs"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &fakeTest{TB: t}
			func() {
				defer func() {
					if r := recover(); r != nil && r != any(v) {
						panic(r)
					}
				}()
				Run(v, c.job, scores)
			}()
			if got := strings.Join(v.errors, "\n"); (c.errors == "") != (got == "") || !strings.Contains(got, c.errors) {
				t.Errorf("errors %q, want %q", got, c.errors)
			}
			if got := strings.Join(v.fatals, "\n"); (c.fatal == "") != (got == "") || !strings.Contains(got, c.fatal) {
				t.Errorf("fatal %q, want %q", got, c.fatal)
			}
			if name == "fails" && !strings.Contains(v.fatals[0], `what is "ann\t1"`) {
				t.Errorf("no cause in %q", v.fatals)
			}
			func() {
				defer func() {
					if recover() == nil {
						t.Error("Print does not panic")
					}
				}()
				Print(c.job, scores)
			}()
		})
	}
}

// TestNamedOutput: the main and the named output of a job are returned by name.
func TestNamedOutput(t *testing.T) {
	job := mr.MapOnly(mr.Map(mr.Lines(), func(t *mr.Task, line string, emit func(string, struct{})) error {
		if strings.HasPrefix(line, "bob") {
			mr.Write(t, "bobs", struct{}{}, line)
			t.Counter("seen", "bobs").Add(1)
			return nil
		}
		emit(line, struct{}{})
		return nil
	})).Job("j")
	job.Outputs = []string{"bobs"}
	out := RunFiles(t, job, map[string]string{"a": "bob 1\nann\n", "dir/b": "bob 2\n"})
	if out.Text() != "ann\n" || out.Named("bobs") != "bob 1\nbob 2\n" || out.Counters["seen"]["bobs"] != 2 {
		t.Errorf("got %+v", out)
	}
	if out.Files["part-m-00000"] != "ann\n" || out.Files["bobs-m-00000"] != "bob 1\nbob 2\n" {
		t.Errorf("files %q", out.Files)
	}
}

// TestMisuse: an error that every attempt would repeat ends the job at the first one.
func TestMisuse(t *testing.T) {
	ignore := func(*mr.Task, string, iter.Seq[int64], func(string, int64)) error { return nil }
	read := func(vals iter.Seq[int64]) {
		for range vals {
		}
	}
	for name, c := range map[string]struct {
		job  func(attempt func()) *mr.Job // attempt is called once by each attempt
		want string
	}{
		"values again": {func(attempt func()) *mr.Job {
			return mr.Reduce(scorePairs(), func(_ *mr.Task, w string, vals iter.Seq[int64], _ func(string, int64)) error {
				attempt()
				read(vals)
				read(vals)
				return nil
			}).Job("j")
		}, "again after their end"},
		"values of an earlier group": {func(attempt func()) *mr.Job {
			return mr.ReduceAll(scorePairs(), func(_ *mr.Task, groups iter.Seq2[string, iter.Seq[int64]], _ func(string, int64)) error {
				attempt()
				var saved []iter.Seq[int64]
				for _, vals := range groups {
					saved = append(saved, vals)
				}
				read(saved[0])
				return nil
			}).Job("j")
		}, "after the group"},
		"values of an earlier group in a combiner": {func(attempt func()) *mr.Job {
			var saved []iter.Seq[int64]
			return mr.Reduce(scorePairs().CombineGroup(func(_ *mr.Task, user string, vals iter.Seq[int64], _ func(int64)) error {
				if saved = append(saved, vals); user == "ann" {
					attempt()
					saved = saved[len(saved)-1:]
				}
				read(saved[0])
				return nil
			}), ignore).Job("j")
		}, "after the group"},
		"a panic that follows": {func(attempt func()) *mr.Job {
			return mr.Reduce(scorePairs(), func(_ *mr.Task, w string, vals iter.Seq[int64], _ func(string, int64)) error {
				attempt()
				read(vals)
				all := []int64{}
				for v := range vals {
					all = append(all, v)
				}
				return fmt.Errorf("the first is %d", all[0])
			}).Job("j")
		}, "again after their end"},
		"a panic that follows in a map": {writing(func(t *mr.Task) {
			mr.Write(t, "bobs", "k", "v")
			panic("nothing was written")
		}), "not in Job.Outputs"},
		"groups again": {func(attempt func()) *mr.Job {
			return mr.ReduceAll(scorePairs(), func(_ *mr.Task, groups iter.Seq2[string, iter.Seq[int64]], _ func(string, int64)) error {
				attempt()
				for range groups {
				}
				for range groups {
				}
				return nil
			}).Job("j")
		}, "again after their end"},
		"records again": {func(attempt func()) *mr.Job {
			return mr.MapOnly(mr.MapSplit(mr.Lines(), func(_ *mr.Task, lines iter.Seq[string], _ func(string, int64)) error {
				attempt()
				for range 2 {
					for range lines {
					}
				}
				return nil
			})).Job("j")
		}, "a second time"},
		"left values of a join after the right ones": {func(attempt func()) *mr.Job {
			return mr.Join(scorePairs(), scorePairs(), func(_ *mr.Task, _ string, as, bs iter.Seq[int64], _ func(string, int64)) error {
				attempt()
				read(bs)
				read(as)
				return nil
			}).Job("j")
		}, "after the right ones"},
		"unknown output":                           {writing(func(t *mr.Task) { mr.Write(t, "bobs", "k", "v") }), "not in Job.Outputs"},
		"an output's type without encoding":        {writing(func(t *mr.Task) { mr.Write(t, "known", "k", struct{ ch chan int }{}) }), "has no encoding"},
		"an output's type that leaves a field out": {writing(func(t *mr.Task) { mr.Write(t, "known", "k", scored{}) }), "leaves out Points"},
		"an output of other types": {writing(func(t *mr.Task) {
			mr.Write(t, "known", "k", "v")
			mr.Write(t, "known", "k", 1)
		}), "holds records of string and string"},
		"partition out of range": {func(attempt func()) *mr.Job {
			job := mr.Reduce(scorePairs().Partition(func(string, int) int { attempt(); return -1 }), ignore).Job("j")
			job.Reduces = 2
			return job
		}, `partition -1 of key "ann"`},
	} {
		t.Run(name, func(t *testing.T) {
			attempts := 0
			k := &runner{ctx: t.Context(), dir: t.TempDir(), job: c.job(func() { attempts++ })}
			_, err := k.run(map[string]string{inputName: scores}, variant{combine: true})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			if attempts != 1 {
				t.Errorf("%d attempts", attempts)
			}
		})
	}
}

// writing makes a job with a map that calls write.
func writing(write func(*mr.Task)) func(func()) *mr.Job {
	return func(attempt func()) *mr.Job {
		job := mr.MapOnly(mr.MapSplit(mr.Lines(), func(t *mr.Task, _ iter.Seq[string], _ func(string, int64)) error {
			attempt()
			write(t)
			return nil
		})).Job("j")
		job.Outputs = []string{"known"}
		return job
	}
}

// TestPlaces: Run accepts a job that depends on the places of records, which a reversed input would change.
func TestPlaces(t *testing.T) {
	job := mr.Sort(mr.Map(mr.Lines(), func(t *mr.Task, line string, emit func(string, int64)) error {
		n, err := t.Line()
		emit(line, n*100+t.Position().Offset)
		return err
	})).Job("places")
	if got := Run(t, job, "b\na\n"); got != "a\t202\nb\t100\n" {
		t.Errorf("got %q", got)
	}
}
