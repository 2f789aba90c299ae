package mapreduce

import (
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce/internal/bridge"
)

// Typical jobs, each as short as an author would write it.

func wordPairs(paths ...string) *Pairs[string, int64] {
	return Map(Lines(paths...), func(_ *Task, line string, emit func(string, int64)) error {
		for w := range strings.FieldsSeq(line) {
			emit(w, 1)
		}
		return nil
	})
}

const poem = "b a b\nc b a\n\na\n"

func TestWordCount(t *testing.T) {
	checkOutput(t, func() bridge.Compiler { return Fold(wordPairs(), Sum).Job("wc") }, map[string]string{"in": poem}, "wc", "a\t3\nb\t3\nc\t1\n")

	b := &jobRunner{files: map[string]string{"in": poem}}
	if _, err := b.run(Fold(wordPairs(), Sum).Job("wc")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"MAP_OUTPUT_RECORDS": 7, "COMBINE_INPUT_RECORDS": 4, "REDUCE_INPUT_GROUPS": 3} {
		if got := b.counters[name]; got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
}

// TestHashPartition: keys have the same partition as with Hadoop's HashPartitioner.
func TestHashPartition(t *testing.T) {
	b := &jobRunner{files: map[string]string{"in": poem}}
	job := Fold(wordPairs(), Sum).Job("wc")
	job.Reduces = 3
	out, err := b.run(job)
	if err != nil {
		t.Fatal(err)
	}
	// The hash of "a" is 31+97 = 128, and 128 mod 3 is 2.
	for part, want := range map[string]string{"wc/part-r-00002": "a\t3\n", "wc/part-r-00000": "b\t3\n", "wc/part-r-00001": "c\t1\n"} {
		if out[part] != want {
			t.Errorf("%s holds %q, want %q", part, out[part], want)
		}
	}
}

// TestSignedZeros: -0 and 0 are two keys, and all NaNs are one. They are ordered and
// partitioned as Hadoop's DoubleWritable and FloatWritable.
func TestSignedZeros(t *testing.T) {
	b := &jobRunner{files: map[string]string{"in": "0\n-0\nnan\n1\n-0\n0\n0\n-1\nNaN\n"}}
	const want = "-0.0\t2\n0.0\t3\n"
	for name, job := range map[string]*Job{"double": Fold(numbered[float64](), Sum).Job("j"), "float": Fold(numbered[float32](), Sum).Job("j")} {
		job.Reduces = 1
		out, err := b.run(job)
		if all := "-1.0\t1\n" + want + "1.0\t1\nNaN\t2\n"; err != nil || out["j/part-r-00000"] != all {
			t.Errorf("%s: %q, %v; want %q", name, out, err, all)
		}
		job.Reduces = 7
		if out, err = b.run(job); err != nil || !strings.Contains(out["j/part-r-00000"], want) {
			t.Errorf("%s on seven reduces: %q, %v; want %q in the first", name, out, err, want)
		}
	}
}

// numbered emits the number in each line with 1.
func numbered[F float32 | float64]() *Pairs[F, int64] {
	return Map(Lines(), func(_ *Task, line string, emit func(F, int64)) error {
		f, err := strconv.ParseFloat(line, 64)
		emit(F(f), 1)
		return err
	})
}

func TestSecondarySort(t *testing.T) {
	visits := func() bridge.Compiler {
		byUser := Map(Lines(), func(_ *Task, line string, emit func(Pair[string, int64], string)) error {
			f := strings.Fields(line)
			at, err := strconv.ParseInt(f[1], 10, 64)
			emit(PairOf(f[0], at), f[2])
			return err
		})
		job := ReduceSorted(byUser, func(_ *Task, user string, pages iter.Seq2[int64, string], emit func(string, string)) error {
			var all []string
			for at, page := range pages {
				all = append(all, fmt.Sprint(at, page))
			}
			emit(user, strings.Join(all, " "))
			return nil
		}).Job("visits")
		job.Reduces = 2
		return job
	}
	checkOutput(t, visits, map[string]string{"in": "u2 9 x\nu 10 b\nu2 -5 y\nu 2 a\nu 30 c\n"}, "visits", "u\t2a 10b 30c\nu2\t-5y 9x\n")
}

type order struct{ ID, Amount int64 }

func (o *order) Fields(f *Fields) { f.Int64(&o.ID); f.Int64(&o.Amount) }

func TestJoin(t *testing.T) {
	make := func() bridge.Compiler {
		names := Map(Lines("customers"), func(_ *Task, line string, emit func(int64, string)) error {
			id, name, _ := strings.Cut(line, "|")
			n, err := strconv.ParseInt(id, 10, 64)
			emit(n, name)
			return err
		})
		bought := Map(Lines("orders"), func(_ *Task, line string, emit func(int64, order)) error {
			var o order
			var customer int64
			_, err := fmt.Sscanf(line, "%d|%d|%d", &o.ID, &customer, &o.Amount)
			emit(customer, o)
			return err
		}).Combine(func(a, b order) order { return order{min(a.ID, b.ID), a.Amount + b.Amount} })
		return Join(names, bought, func(_ *Task, id int64, ns iter.Seq[string], os iter.Seq[order], emit func(string, order)) error {
			all := slices.Collect(ns)
			if len(all) == 0 {
				all = []string{"nobody" + fmt.Sprint(id)}
			}
			sum := order{}
			for o := range os {
				sum = order{o.ID, sum.Amount + o.Amount}
			}
			for _, n := range all {
				emit(n, order{0, sum.Amount})
			}
			return nil
		}).Job("join")
	}
	files := map[string]string{"customers": "2|bob\n1|ann\n3|cid\n2|bea\n", "orders": "7|2|100\n8|1|5\n9|2|11\n10|4|1\n11|2|1000\n"}
	checkOutput(t, make, files, "join", "ann\t0\t5\nbob\t0\t1111\nbea\t0\t1111\ncid\t0\t0\nnobody4\t0\t1\n")
}

func TestTotalOrder(t *testing.T) {
	var lines, want []string
	for i := range 500 {
		lines = append(lines, fmt.Sprintf("%03d", i*7919%500))
		want = append(want, fmt.Sprintf("%03d", i))
	}
	b := &jobRunner{files: map[string]string{"in": strings.Join(lines, "\n") + "\n"}, splitLines: 50, properties: map[string]string{"mapreduce.job.reduces": "4"}}
	out, err := b.run(Sort(Map(Lines(), func(_ *Task, line string, emit func(string, struct{})) error {
		emit(line, struct{}{})
		return nil
	}).TotalOrder()).Job("sort"))
	if err != nil {
		t.Fatal(err)
	}
	if got := mainText(out, "sort"); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("not sorted: %.100s", got)
	}
	for name, part := range out {
		if len(part) < 400 || len(part) > 600 {
			t.Errorf("%s holds %d bytes", name, len(part))
		}
	}
}

// TestTotalOrderKeepsGroups: a cut within a group of ReduceSorted does not divide it.
func TestTotalOrderKeepsGroups(t *testing.T) {
	b := &jobRunner{files: map[string]string{"in": strings.Repeat("a b b b c\n", 40)}, splitLines: 7, properties: map[string]string{"mapreduce.job.reduces": "5"}}
	pairs := MapSplit(Lines(), func(_ *Task, lines iter.Seq[string], emit func(Pair[string, int64], int64)) error {
		n := int64(0)
		for line := range lines {
			for w := range strings.FieldsSeq(line) {
				n++
				emit(PairOf(w, n), 1)
			}
		}
		return nil
	})
	out, err := b.run(ReduceSorted(pairs.TotalOrder(), func(_ *Task, w string, ones iter.Seq2[int64, int64], emit func(string, int64)) error {
		n := int64(0)
		for _, one := range ones {
			n += one
		}
		emit(w, n)
		return nil
	}).Job("j"))
	if err != nil {
		t.Fatal(err)
	}
	if got := mainText(out, "j"); got != "a\t40\nb\t120\nc\t40\n" {
		t.Errorf("got %s", got)
	}
}

// TestFoldStrings: values that point into decoded bytes are folded correctly.
func TestFoldStrings(t *testing.T) {
	first := func() bridge.Compiler {
		return Fold(Map(KeyValues(), func(_ *Task, kv Pair[string, string], emit func(string, string)) error {
			emit(kv.A, kv.B)
			return nil
		}), Min).Job("first")
	}
	checkOutput(t, first, map[string]string{"in": "x\tpear\ny\tfig\nx\tapple\nx\tkiwi\nz\n"}, "first", "x\tapple\ny\tfig\nz\t\n")
	longest := func() bridge.Compiler {
		return Fold(Map(KeyValues(), func(_ *Task, kv Pair[string, string], emit func(string, []byte)) error {
			emit(kv.A, []byte(kv.B))
			return nil
		}), func(a, b []byte) []byte {
			if len(a) > len(b) || len(a) == len(b) && string(a) < string(b) {
				return a
			}
			return b
		}).Job("longest")
	}
	checkOutput(t, longest, map[string]string{"in": "x\tpear\ny\tfig\nx\tapple\nx\tkiwi\n"}, "longest", "x\tapple\ny\tfig\n")
}

func TestNamedOutputs(t *testing.T) {
	make := func() *Job {
		r := MapOnly(Map(Lines(), func(t *Task, line string, emit func(string, int64)) error {
			n, err := strconv.ParseInt(line, 10, 64)
			if err != nil {
				Write(t, "bad", struct{}{}, line)
				t.Counter("test", "mine").Add(1)
				return nil
			}
			Write(t, "odd", n%2 == 1, n)
			emit("n", n)
			return nil
		}))
		job := r.Job("split")
		job.Outputs = []string{"bad", "odd"}
		return job
	}
	b := &jobRunner{files: map[string]string{"in": "1\nx\n2\n"}}
	out, err := b.run(make())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"split/part-m-00000": "n\t1\nn\t2\n", "split/bad-m-00000": "x\n", "split/odd-m-00000": "true\t1\nfalse\t2\n"}
	for name, content := range want {
		if out[name] != content {
			t.Errorf("%s holds %q, want %q", name, out[name], content)
		}
	}
	if len(out) != len(want) || b.counters["mine"] != 1 {
		t.Errorf("outputs %q, counters %v", out, b.counters)
	}
	job := make()
	job.Outputs = []string{"bad"}
	checkError(t, job, b, "odd", "Job.Outputs", "bad")
}

func grepFlow(pattern string) *Flow {
	re := regexp.MustCompile(pattern)
	counts := Fold(Map(Lines(), func(_ *Task, line string, emit func(string, int64)) error {
		for _, m := range re.FindAllString(line, -1) {
			emit(m, 1)
		}
		return nil
	}), Sum)
	byCount := Map(From(counts), func(_ *Task, c Pair[string, int64], emit func(Desc[int64], string)) error {
		emit(Descending(c.B), c.A)
		return nil
	})
	// The order of jobs does not matter.
	return &Flow{Name: "grep", Jobs: []*Job{Sort(byCount).Job("grep-sort"), counts.Job("grep-search")}}
}

func TestFlow(t *testing.T) {
	files := map[string]string{"in": "b a b\nc b a\nbb\n"}
	checkOutput(t, func() bridge.Compiler { return grepFlow("[a-c]") }, files, "grep-sort", "5\tb\n2\ta\n1\tc\n")
	c, err := grepFlow("x").Compile(bridge.Settings{Inputs: []string{"in"}, Output: "hdfs://nn/out", Dir: "/w"})
	if err != nil {
		t.Fatal(err)
	}
	search, sort := c.Program.Plan.Jobs[0], c.Program.Plan.Jobs[1]
	if search.Name != "grep-search" || search.Output != "" || search.Format != "binary" || search.Inputs[0].Paths[0] != "file:///w/in" {
		t.Errorf("search: %+v", search)
	}
	if sort.Output != "hdfs://nn/out/grep-sort" || sort.Format != "text" || sort.Inputs[0].From != 1 || sort.Key != "Desc[int64]" {
		t.Errorf("sort: %+v", sort)
	}
	if len(c.Program.Jobs) != 2 || c.Program.Jobs[0].Combine == nil || c.Program.Jobs[1].Combine != nil {
		t.Errorf("code: %+v", c.Program.Jobs)
	}
}

// TestReduceAll: the two most frequent words, with state across groups.
func TestReduceAll(t *testing.T) {
	top := func() bridge.Compiler {
		return ReduceAll(wordPairs(), func(_ *Task, groups iter.Seq2[string, iter.Seq[int64]], emit func(string, int64)) error {
			type count struct {
				w string
				n int64
			}
			var all []count
			for w, ones := range groups {
				if w == "c" {
					continue // unread values are skipped
				}
				c := count{w: w}
				for one := range ones {
					c.n += one
				}
				all = append(all, c)
			}
			slices.SortFunc(all, func(a, b count) int { return int(b.n - a.n) })
			for _, c := range all[:2] {
				emit(c.w, c.n)
			}
			return nil
		}).Job("top")
	}
	checkOutput(t, top, map[string]string{"in": "x yy x\nc c c c c\nyy zzz x\n"}, "top", "x\t3\nyy\t2\n")
}

// TestValuesInPieces: after a break, a second range continues where the first stopped.
func TestValuesInPieces(t *testing.T) {
	job := Reduce(wordPairs(), func(_ *Task, w string, ones iter.Seq[int64], emit func(string, string)) error {
		first, rest := 0, 0
		for range ones {
			if first++; first == 2 {
				break
			}
		}
		if first == 2 {
			for range ones {
				rest++
			}
		}
		emit(w, fmt.Sprint(first, "+", rest))
		return nil
	}).Job("j")
	checkOutput(t, func() bridge.Compiler { return job }, map[string]string{"in": "a b b c c c d d d d\n"}, "j", "a\t1+0\nb\t2+0\nc\t2+1\nd\t2+2\n")
}

func TestCombineGroup(t *testing.T) {
	average := func() bridge.Compiler {
		scores := Map(KeyValues(), func(_ *Task, kv Pair[string, string], emit func(string, Pair[float64, int32])) error {
			f, err := strconv.ParseFloat(kv.B, 64)
			emit(kv.A, PairOf(f, int32(1)))
			return err
		}).CombineGroup(func(_ *Task, _ string, vals iter.Seq[Pair[float64, int32]], emit func(Pair[float64, int32])) error {
			var sum Pair[float64, int32]
			for v := range vals {
				sum = PairOf(sum.A+v.A, sum.B+v.B)
			}
			emit(sum)
			return nil
		})
		return Reduce(scores, func(_ *Task, user string, vals iter.Seq[Pair[float64, int32]], emit func(string, float64)) error {
			var sum Pair[float64, int32]
			for v := range vals {
				sum = PairOf(sum.A+v.A, sum.B+v.B)
			}
			emit(user, sum.A/float64(sum.B))
			return nil
		}).Job("average")
	}
	checkOutput(t, average, map[string]string{"in": "x\t1\ny\t100\nx\t2\nx\t4.5\n"}, "average", "x\t2.5\ny\t100.0\n")
}

func TestRecordsRaw(t *testing.T) {
	make := func() bridge.Compiler {
		recs := Map(Records(4), func(_ *Task, rec []byte, emit func([]byte, []byte)) error {
			emit(rec[:2], rec[2:])
			return nil
		})
		job := Sort(recs).Job("sort")
		job.Format = Raw{Keys: true}
		return job
	}
	checkOutput(t, make, map[string]string{"in": "bb01aa\n2ba\x00\t"}, "sort", "aa\n2ba\x00\tbb01")
	job := Sort(wordPairs()).Job("j")
	job.Format = Raw{}
	checkError(t, job, &jobRunner{}, "raw", "int64")
}

func TestFilesAndMerge(t *testing.T) {
	inverted := func() bridge.Compiler {
		words := Map(Files("a", "b"), func(_ *Task, f Pair[string, []byte], emit func(string, string)) error {
			for w := range strings.FieldsSeq(string(f.B)) {
				emit(w, f.A[len(f.A)-1:])
			}
			return nil
		})
		lines := MapSplit(Lines("in"), func(t *Task, lines iter.Seq[string], emit func(string, string)) error {
			for line := range lines {
				emit(line, t.Splits()[0].Path[len("file:///w/"):])
			}
			return nil
		})
		return Reduce(Merge(words, lines), func(_ *Task, w string, in iter.Seq[string], emit func(string, string)) error {
			all := slices.Sorted(in)
			emit(w, strings.Join(slices.Compact(all), ","))
			return nil
		}).Job("index")
	}
	checkOutput(t, inverted, map[string]string{"a": "x y", "b": "y y", "in": "z\nx\n"}, "index", "x\ta,in\ny\ta,b\nz\tin\n")
}

// TestPartition: the author's partition function is used, but not if a property sets zero
// reduces.
func TestPartition(t *testing.T) {
	b := &jobRunner{files: map[string]string{"in": poem}, properties: map[string]string{"mapreduce.job.reduces": "2"}}
	make := func(add int) *Job {
		return Fold(wordPairs().Partition(func(w string, n int) int { return int(w[0]-'a')%n + add }), Sum).Job("wc")
	}
	out, err := b.run(make(0))
	if err != nil {
		t.Fatal(err)
	}
	if out["wc/part-r-00000"] != "a\t3\nc\t1\n" || out["wc/part-r-00001"] != "b\t3\n" {
		t.Errorf("got %q", out)
	}
	checkError(t, make(1), b, `partition 2 of key "b"`, "0 to 1")
	b.properties = map[string]string{"mapreduce.job.reduces": "0"}
	out, err = b.run(make(0))
	if err != nil {
		t.Fatal(err)
	}
	if got := out["wc/part-m-00000"]; got != "b\t1\na\t1\nb\t1\nc\t1\nb\t1\na\t1\na\t1\n" {
		t.Errorf("zero reduces: %q", got)
	}
}
