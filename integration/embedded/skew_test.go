package embedded_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// largestPart returns the bytes of the largest part file, and of all.
func largestPart(t *testing.T, out string, parts int) (largest, all int64) {
	t.Helper()
	found, err := filepath.Glob(out + "/part-r-*")
	if err != nil || len(found) != parts {
		t.Errorf("%d part files, want %d, %v", len(found), parts, err)
	}
	for _, part := range found {
		info, err := os.Stat(part)
		if err != nil {
			t.Fatal(err)
		}
		largest, all = max(largest, info.Size()), all+info.Size()
	}
	return largest, all
}

// TestJoinHotKey joins orders with customers. Half of the orders are of one customer. They are in all part files, and the
// rows are those of a join that leaves them in one.
func TestJoinHotKey(t *testing.T) {
	r, dir := rand.New(rand.NewPCG(7, 8)), t.TempDir()
	var orders, customers strings.Builder
	orders.WriteString("order,customer,amount\n")
	for i := range 200_000 {
		customer := 42
		if r.IntN(2) == 0 {
			customer = r.IntN(3000) // a third of them is unknown
		}
		fmt.Fprintf(&orders, "%d,%d,%040d\n", i, customer, r.IntN(1e9))
	}
	customers.WriteString("id,name\n")
	for i := range 2000 {
		fmt.Fprintf(&customers, "%d,name of %d\n", i, i)
	}
	in := []string{"-orders", write(t, dir+"/orders", orders.String()), "-customers", write(t, dir+"/customers", customers.String())}
	join := func(out, divide string) (largest, all int64) {
		succeed(t, "leftjoin", append(in, "-output", out, "-D", "mapreduce.job.reduces=6", "-D", "quern.join.divide.keys="+divide)...)
		return largestPart(t, out, 6)
	}
	whole, all := join(dir+"/whole", "false")
	divided, _ := join(dir+"/divided", "true")
	if whole < all/2 || divided > all/5 {
		t.Errorf("of %d bytes the largest part has %d with the key in one part, and %d with a divided key", all, whole, divided)
	}
	checkEqual(t, "rows", sortedLines(readParts(t, dir+"/divided")), sortedLines(readParts(t, dir+"/whole")))
}

// hotLines returns the sides of a full join with a large key. Some keys are on one side only.
func hotLines(lines int) (small, large string) {
	r := rand.New(rand.NewPCG(9, 10))
	var a, b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&a, "k%d name%d\n", i*2, i)
	}
	for i := range lines {
		key := 42
		if r.IntN(2) == 0 {
			key = r.IntN(3000)
		}
		fmt.Fprintf(&b, "k%d %030d\n", key, i)
	}
	return a.String(), b.String()
}

// TestJoinSampleFails: if the job's code fails on the sample, or ends its process, a join has its rows all the same.
func TestJoinSampleFails(t *testing.T) {
	small, large := hotLines(250_000)
	dir := t.TempDir()
	args := []string{"-at", "shared", "-side", write(t, dir+"/small", small), "-input", write(t, dir+"/large", large), "-D", "mapreduce.job.reduces=4"}
	want := ""
	for _, c := range []struct {
		how, times string
		divided    bool
	}{{"error", "0", true}, {"panic", "1", false}, {"exit", "1", false}} {
		out := dir + "/" + c.how
		succeed(t, "faulty", append(args, "-output", out, "-do", c.how, "-times", c.times)...)
		if largest, all := largestPart(t, out, 4); (largest < all/3) != c.divided {
			t.Errorf("%s: the largest part has %d of %d bytes", c.how, largest, all)
		}
		rows := sortedLines(readParts(t, out))
		if want == "" {
			want = rows
		}
		checkEqual(t, c.how, rows, want)
	}
}

// TestSortSorted sorts files that are sorted, of very different sizes. Each has its own range of keys. The part files
// are of about equal size.
func TestSortSorted(t *testing.T) {
	dir, next := t.TempDir(), 0
	var all strings.Builder
	for file := range 60 {
		var content strings.Builder
		lines := 100 // of the first ones, which are small
		if file >= 40 {
			lines = 5000 * (1 + file%3)
		}
		for range lines {
			fmt.Fprintf(&content, "%010d %030d\n", next, next*7919%100_000)
			next++
		}
		write(t, fmt.Sprintf("%s/in/%02d", dir, file), content.String())
		all.WriteString(content.String())
	}
	const reduces = 16
	succeed(t, "sort", "-input", dir+"/in", "-output", dir+"/out", "-D", fmt.Sprintf("mapreduce.job.reduces=%d", reduces),
		"-D", "mapreduce.input.fileinputformat.split.maxsize=300000")
	if largest, n := largestPart(t, dir+"/out", reduces); largest > n/reduces*14/10 {
		t.Errorf("of %d bytes in %d part files the largest has %d", n, reduces, largest)
	}
	checkEqual(t, "sorted", readParts(t, dir+"/out"), all.String())
}
