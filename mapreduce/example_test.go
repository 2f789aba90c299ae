package mapreduce_test

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

// Word count. In a program, pass the function that builds the job to mapreduce.Main;
// here mrtest runs it.
func Example() {
	wordcount := func() (*mapreduce.Job, error) {
		words := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
			for w := range mapreduce.Words(line) {
				emit(w, 1)
			}
			return nil
		})
		return mapreduce.Fold(words, mapreduce.Sum).Job("wordcount"), nil
	}

	job, err := wordcount()
	if err != nil {
		panic(err)
	}
	mrtest.Print(job, "to be or\nnot to be\n")
	// Output:
	// be	2
	// not	1
	// or	1
	// to	2
}

// Secondary sort: the pages of each user in the order of time. The first part of the
// key selects the group, the second part sorts within it.
func ExampleReduceSorted() {
	type userTime = mapreduce.Pair[string, int64]
	visits := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(userTime, string)) error {
		f := strings.Fields(line)
		if len(f) != 3 {
			return fmt.Errorf("want user, time, page: %q", line)
		}
		at, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			return err
		}
		emit(mapreduce.PairOf(f[0], at), f[2])
		return nil
	})
	paths := mapreduce.ReduceSorted(visits, func(_ *mapreduce.Task, user string, pages iter.Seq2[int64, string], emit func(string, string)) error {
		var path []string
		for _, page := range pages {
			path = append(path, page)
		}
		emit(user, strings.Join(path, " > "))
		return nil
	})
	mrtest.Print(paths.Job("paths"), "ann 30 cart\nbob 10 home\nann 5 home\nann 20 shoes\n")
	// Output:
	// ann	home > shoes > cart
	// bob	home
}

// Two inputs, each with its own map and type of values, joined by key. Customers come
// first, because the reduce keeps them in memory.
func ExampleJoin() {
	names := mapreduce.Map(mapreduce.KeyValues("customers"), func(_ *mapreduce.Task, c mapreduce.Pair[string, string], emit func(string, string)) error {
		emit(c.A, c.B)
		return nil
	})
	amounts := mapreduce.Map(mapreduce.KeyValues("orders"), func(_ *mapreduce.Task, o mapreduce.Pair[string, string], emit func(string, int64)) error {
		cents, err := strconv.ParseInt(o.B, 10, 64)
		emit(o.A, cents)
		return err
	})
	bought := mapreduce.Join(names, amounts, func(_ *mapreduce.Task, id string, names iter.Seq[string], amounts iter.Seq[int64], emit func(string, int64)) error {
		found := slices.Collect(names)
		for cents := range amounts {
			for _, name := range found {
				emit(name, cents)
			}
		}
		return nil
	})
	mrtest.PrintFiles(bought.Job("bought"), map[string]string{
		"customers": "c1\tann\nc2\tbob\nc3\tcid\n",
		"orders":    "c2\t1250\nc1\t300\n",
	})
	// Output:
	// part-r-00000:
	// ann	300
	// bob	1250
}

// Each worker reads the customers once. The orders are joined in the maps, which send only sums.
func ExampleBroadcastJoin() {
	large := mapreduce.Map(mapreduce.KeyValues("orders"), func(_ *mapreduce.Task, o mapreduce.Pair[string, string], emit func(string, int64)) error {
		cents, err := strconv.ParseInt(o.B, 10, 64)
		emit(o.A, cents)
		return err
	})
	small := mapreduce.Map(mapreduce.KeyValues("customers"), func(_ *mapreduce.Task, c mapreduce.Pair[string, string], emit func(string, string)) error {
		emit(c.A, c.B)
		return nil
	})
	byName := mapreduce.BroadcastJoin(large, small, mapreduce.InnerJoin, func(_ *mapreduce.Task, _ string, cents *int64, name *string, emit func(string, int64)) error {
		emit(*name, *cents)
		return nil
	})
	job := mapreduce.Fold(byName, mapreduce.Sum).Job("bought")
	mrtest.PrintFiles(job, map[string]string{
		"customers": "c1\tann\nc2\tbob\nc3\tcid\n",
		"orders":    "c2\t1250\nc1\t300\nc2\t50\nc9\t1\n",
	})
	// Output:
	// part-r-00000:
	// ann	300
	// bob	1300
}

// Two jobs in one submission: the second reads the typed result of the first, and sorts
// words from the most to the least frequent.
func ExampleFrom() {
	words := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
		for w := range strings.FieldsSeq(line) {
			emit(w, 1)
		}
		return nil
	})
	counts := mapreduce.Fold(words, mapreduce.Sum)
	byCount := mapreduce.Map(mapreduce.From(counts), func(_ *mapreduce.Task, c mapreduce.Pair[string, int64], emit func(mapreduce.Desc[int64], string)) error {
		emit(mapreduce.Descending(c.B), c.A)
		return nil
	})
	flow := &mapreduce.Flow{Name: "frequent", Jobs: []*mapreduce.Job{
		counts.Job("count"),
		mapreduce.Sort(byCount).Job("sort"),
	}}
	mrtest.Print(flow, "b a b\nc b a\n")
	// Output:
	// 3	b
	// 2	a
	// 1	c
}

// The two most frequent words of all: with one key, one reduce gets the values. Each map sends it
// only two words.
func ExampleTop() {
	words := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, int64)) error {
		for w := range mapreduce.Words(line) {
			emit(w, 1)
		}
		return nil
	})
	counts := mapreduce.Fold(words, mapreduce.Sum)
	type count = mapreduce.Pair[string, int64]
	all := mapreduce.Map(mapreduce.From(counts), func(_ *mapreduce.Task, c count, emit func(struct{}, count)) error {
		emit(struct{}{}, c)
		return nil
	})
	top := mapreduce.Top(all, 2, func(a, b count) int { return cmp.Compare(a.B, b.B) })
	flow := &mapreduce.Flow{Name: "frequent", Jobs: []*mapreduce.Job{counts.Job("count"), top.Job("top")}}
	mrtest.Print(flow, "to be or not to be\nto see\n")
	// Output:
	// to	3
	// be	2
}

// Each visit goes to a file of its day. The job has no other records, so it writes no main file if they
// are written lazily.
func ExampleWriteBy() {
	visits := mapreduce.Map(mapreduce.KeyValues(), func(t *mapreduce.Task, visit mapreduce.Pair[string, string], _ func(string, string)) error {
		mapreduce.WriteBy(t, "days", visit.A, visit.A, visit.B)
		return nil
	})
	job := mapreduce.MapOnly(visits).Job("visits")
	job.Outputs = []string{"days"}
	job.Properties = map[string]string{"quern.output.lazy": "true"}
	mrtest.PrintFiles(job, map[string]string{"in": "2026-11-28\tann\n2026-11-29\tbob\n2026-11-28\tcid\n"})
	// Output:
	// days-2026-11-28-m-00000:
	// 2026-11-28	ann
	// 2026-11-28	cid
	// days-2026-11-29-m-00000:
	// 2026-11-29	bob
}

// A job with a second output: lines that cannot be parsed go to separate files, which
// appear together with the main ones.
func ExampleWrite() {
	numbers := mapreduce.Map(mapreduce.Lines(), func(t *mapreduce.Task, line string, emit func(int64, struct{})) error {
		n, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			mapreduce.Write(t, "bad", struct{}{}, line)
			return nil
		}
		emit(n, struct{}{})
		return nil
	})
	job := mapreduce.MapOnly(numbers).Job("numbers")
	job.Outputs = []string{"bad"}
	mrtest.PrintFiles(job, map[string]string{"in": "12\ntwelve\n7\n"})
	// Output:
	// bad-m-00000:
	// twelve
	// part-m-00000:
	// 12
	// 7
}

// A total order: every part file is sorted and holds a range of the keys. So all files,
// in the order of their names, are sorted too.
func ExamplePairs_TotalOrder() {
	lines := mapreduce.Map(mapreduce.Lines(), func(_ *mapreduce.Task, line string, emit func(string, struct{})) error {
		emit(line, struct{}{})
		return nil
	})
	job := mapreduce.Sort(lines.TotalOrder()).Job("sort")
	job.Reduces = 2
	mrtest.PrintFiles(job, map[string]string{"in": "pear\nfig\napple\nquince\n"})
	// Output:
	// part-r-00000:
	// apple
	// fig
	// part-r-00001:
	// pear
	// quince
}

// Code before the loop is setup, code after it is cleanup. This map adds up its whole
// split and emits once.
func ExampleMapSplit() {
	lengths := mapreduce.MapSplit(mapreduce.Lines(), func(_ *mapreduce.Task, lines iter.Seq[string], emit func(string, int64)) error {
		var n, size int64
		for line := range lines {
			n, size = n+1, size+int64(len(line))
		}
		emit("lines", n)
		emit("bytes", size)
		return nil
	})
	mrtest.Print(mapreduce.Fold(lengths, mapreduce.Sum).Job("lengths"), "one\nthree\n")
	// Output:
	// bytes	8
	// lines	2
}
