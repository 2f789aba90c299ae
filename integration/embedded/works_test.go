package embedded_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/compression"
)

// text returns words from a fixed seed.
func text(bytes int) string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < bytes {
		fmt.Fprintf(&b, "w%d", r.IntN(2000))
		if r.IntN(8) == 0 {
			b.WriteByte('\n')
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// smallSplits sets small splits, for many maps, and little memory, for many spills.
var smallSplits = []string{"-D", "mapreduce.input.fileinputformat.split.maxsize=20000", "-D", "mapreduce.task.io.sort.mb=1"}

func TestInputs(t *testing.T) {
	long := strings.Repeat("x", 30<<20)
	for name, content := range map[string]string{
		"empty":                "",
		"one byte":             "a",
		"no newline at end":    "a b\nc d",
		"CRLF":                 "a b\r\nb c\r\n",
		"NUL":                  "a\x00b a\x00b\nc\n",
		"invalid UTF-8":        "\xff\xfe \xff\xfe a\xc3\n",
		"only newlines":        "\n\n\n",
		"line of 30 MB":        "short\n" + long + "\nshort\n",
		"many":                 text(300_000),
		"long and many spills": text(3_000_000),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in, out := write(t, dir+"/in", content), dir+"/out"
			args := append([]string{"-input", in, "-output", out}, smallSplits...)
			if len(content) > 1<<20 {
				args = []string{"-input", in, "-output", out, "-D", "mapreduce.task.io.sort.mb=1"}
			}
			succeed(t, "wordcount", args...)
			checkEqual(t, "counts", readParts(t, out), countWords(content))
			checkNoLeftovers(t)
		})
	}
}

// TestCompressed: input, map output and output are compressed by each codec, and the counts are right.
func TestCompressed(t *testing.T) {
	content := text(2_500_000) // three blocks of bzip2
	for _, codec := range compression.Codecs() {
		t.Run(codec.Name, func(t *testing.T) {
			dir := t.TempDir()
			var stored bytes.Buffer
			w, err := codec.NewWriter(&stored)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, content); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			in, out := write(t, dir+"/in"+codec.Suffix, stored.String()), dir+"/out"
			ofMaps := codec.Class()
			if codec.Name == "bzip2" {
				ofMaps = "org.apache.hadoop.io.compress.DefaultCodec"
			}
			o := succeed(t, "wordcount", "-input", in, "-output", out, "-D", "mapreduce.task.io.sort.mb=1", "-D", "quern.embedded.trackers=2", "-D", "mapreduce.map.speculative=false",
				"-D", fmt.Sprint("mapreduce.input.fileinputformat.split.maxsize=", stored.Len()/3+1),
				"-D", "mapreduce.map.output.compress=true", "-D", "mapreduce.map.output.compress.codec="+ofMaps,
				"-D", "mapreduce.output.fileoutputformat.compress=true", "-D", "mapreduce.output.fileoutputformat.compress.codec="+codec.Class())
			if maps := counter(t, o.stderr, "Launched map tasks"); codec.Splits != (maps == 3) {
				t.Errorf("the maps of a file in three splits:\n%s", o.stderr)
			}
			if n := counter(t, o.stderr, "Map output materialized bytes"); n >= 10*counter(t, o.stderr, "Combine output records") {
				t.Errorf("map output of %d bytes is not compressed", n)
			}
			file, err := os.Open(out + "/part-r-00000" + codec.Suffix)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			r := codec.NewReader()
			defer r.Close()
			r.Reset(file, compression.Whole)
			got, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			checkEqual(t, "counts", string(got), countWords(content))
		})
	}
}

// counter returns the value of a counter that a run has printed.
func counter(t *testing.T, stderr, title string) (n int64) {
	t.Helper()
	_, after, _ := strings.Cut(stderr, "\t"+title+"=")
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatalf("counter %s: %v\n%s", title, err, stderr)
	}
	return n
}

func TestInputPaths(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/d/a", "x y\n")
	write(t, dir+"/d/b", "y z\n")
	write(t, dir+"/d/.hidden", "no\n")
	write(t, dir+"/d/_hidden", "no\n")
	os.Mkdir(dir+"/empty", 0o755)
	for name, c := range map[string]struct{ input, want string }{
		"directory":       {dir + "/d", "x\t1\ny\t2\nz\t1\n"},
		"glob":            {dir + "/d/[ab]", "x\t1\ny\t2\nz\t1\n"},
		"comma list":      {dir + "/d/a," + dir + "/d/a", "x\t2\ny\t2\n"},
		"URL":             {"file://" + dir + "/d/b", "y\t1\nz\t1\n"},
		"short URL":       {"file:" + dir + "/d/b", "y\t1\nz\t1\n"},
		"empty directory": {dir + "/empty", ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir() + "/out"
			succeed(t, "wordcount", "-input", c.input, "-output", out)
			checkEqual(t, "counts", readParts(t, out), c.want)
		})
	}
}

// TestLongOutput: an output's name may have the most bytes that file systems allow.
func TestLongOutput(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "a\n")
	for _, name := range []string{strings.Repeat("x", 255), strings.Repeat("ü", 127)} {
		succeed(t, "wordcount", "-input", in, "-output", dir+"/"+name)
		checkEqual(t, "counts", readParts(t, dir+"/"+name), "a\t1\n")
	}
}

// TestLazyOutput: reduces without records write no files, and the job succeeds with those of the others.
func TestLazyOutput(t *testing.T) {
	dir := t.TempDir()
	in, out := write(t, dir+"/in", "one one\n"), dir+"/out"
	succeed(t, "wordcount", "-input", in, "-output", out, "-D", "mapreduce.job.reduces=3", "-D", "quern.output.lazy=true")
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 2 {
		t.Fatalf("output %v, %v: want _SUCCESS and one part", entries, err)
	}
	none := dir + "/none"
	succeed(t, "wordcount", "-input", write(t, dir+"/empty", "\n"), "-output", none, "-D", "quern.output.lazy=true")
	if entries, err = os.ReadDir(none); err != nil || len(entries) != 1 {
		t.Errorf("output without records: %v, %v, want only _SUCCESS", entries, err)
	}
}

// TestProgramSize: a program without further formats stays small: it contains what every program contains.
func TestProgramSize(t *testing.T) {
	info, err := os.Stat(filepath.Join(programs, "wordcount"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 30<<20 {
		t.Errorf("wordcount has %d bytes, at most %d are allowed", info.Size(), 30<<20)
	}
}

func TestManySmallFiles(t *testing.T) {
	dir := t.TempDir()
	var all strings.Builder
	for i := range 10_000 {
		line := fmt.Sprintf("file %d\n", i%7)
		write(t, fmt.Sprintf("%s/in/%05d", dir, i), line)
		all.WriteString(line)
	}
	succeed(t, "wordcount", "-input", dir+"/in", "-output", dir+"/out")
	checkEqual(t, "counts", readParts(t, dir+"/out"), countWords(all.String()))
}

func TestReduces(t *testing.T) {
	dir := t.TempDir()
	content := "b a c b\n"
	in := write(t, dir+"/in", content)
	for _, reduces := range []int{1, 3, 40} {
		t.Run(fmt.Sprint(reduces), func(t *testing.T) {
			out := t.TempDir() + "/out"
			succeed(t, "wordcount", "-input", in, "-output", out, "-D", fmt.Sprintf("mapreduce.job.reduces=%d", reduces))
			checkEqual(t, "counts", sortedLines(readParts(t, out)), countWords(content))
			found, _ := filepath.Glob(out + "/part-r-*")
			if len(found) != reduces {
				t.Errorf("%d part files, want %d", len(found), reduces)
			}
		})
	}
}

func TestSkewedKey(t *testing.T) {
	var b strings.Builder
	for i := range 400_000 {
		if i%10 == 0 {
			fmt.Fprintf(&b, "k%d\n", i)
		} else {
			b.WriteString("hot\n")
		}
	}
	dir := t.TempDir()
	in := write(t, dir+"/in", b.String())
	// Unlike wordcount, faulty has no combiner.
	succeed(t, "faulty", "-input", in, "-output", dir+"/out", "-D", "mapreduce.task.io.sort.mb=1")
	checkEqual(t, "counts", readParts(t, dir+"/out"), countWords(b.String()))
}

func TestSortLines(t *testing.T) {
	content := text(2_000_000)
	dir := t.TempDir()
	in := write(t, dir+"/in", content)
	succeed(t, "sort", append([]string{"-input", in, "-output", dir + "/out", "-D", "mapreduce.job.reduces=3",
		"-D", "mapreduce.input.fileinputformat.split.maxsize=300000"}, "-D", "mapreduce.task.io.sort.mb=1")...)
	want := sortedLines(strings.TrimSuffix(content, "\n") + "\n")
	checkEqual(t, "sorted", readParts(t, dir+"/out"), want)
}

func TestSortRecords(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	content := make([]byte, 20_000*100)
	for i := range content {
		content[i] = byte(r.IntN(256))
	}
	dir := t.TempDir()
	in := write(t, dir+"/in", string(content))
	succeed(t, "sort", "-records", "-input", in, "-output", dir+"/out", "-D", "mapreduce.job.reduces=4",
		"-D", "mapreduce.input.fileinputformat.split.maxsize=333333")
	got := readParts(t, dir+"/out")
	if len(got) != len(content) {
		t.Fatalf("%d bytes of %d", len(got), len(content))
	}
	for i := 100; i < len(got); i += 100 {
		if got[i-100:i-90] > got[i:i+10] {
			t.Fatalf("record %d is out of order", i/100)
		}
	}
	found, _ := filepath.Glob(dir + "/out/part-r-*")
	for _, part := range found {
		if info, _ := os.Stat(part); info.Size() > int64(len(content))/2 {
			t.Errorf("%s has %d of %d bytes: partitions are not balanced", part, info.Size(), len(content))
		}
	}
}

// TestSortHotKey sorts records, half of them with one key. These are in several part files, which have the same
// records in the same order as those of a sort that leaves the key in one part file.
func TestSortHotKey(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var content []byte
	for i := range 20_000 {
		key := "hot.hot.ho"
		if r.IntN(2) == 0 {
			key = fmt.Sprintf("%010d", r.IntN(1e9))
			if r.IntN(2) == 0 {
				key = "z" + key[1:]
			}
		}
		content = fmt.Appendf(content, "%s%090d", key, i)
	}
	dir := t.TempDir()
	in := write(t, dir+"/in", string(content))
	sort := func(out, divide string) (largest int64) {
		succeed(t, "sort", "-records", "-input", in, "-output", out, "-D", "mapreduce.job.reduces=5",
			"-D", "mapreduce.input.fileinputformat.split.maxsize=333333", "-D", "quern.totalorder.divide.keys="+divide)
		found, _ := filepath.Glob(out + "/part-r-*")
		for _, part := range found {
			info, err := os.Stat(part)
			if err != nil {
				t.Fatal(err)
			}
			largest = max(largest, info.Size())
		}
		if len(found) != 5 {
			t.Errorf("%d part files, want 5", len(found))
		}
		return largest
	}
	whole, divided := sort(dir+"/whole", "false"), sort(dir+"/divided", "true")
	if n := int64(len(content)); whole < n*2/5 || divided > n*3/10 {
		t.Errorf("of %d bytes the largest part has %d with the key in one part, and %d with a divided key", n, whole, divided)
	}
	if readParts(t, dir+"/whole") != readParts(t, dir+"/divided") {
		t.Error("the part files of both sorts have other records, or another order")
	}
}

func TestGrep(t *testing.T) {
	content := text(500_000)
	dir := t.TempDir()
	in := write(t, dir+"/in", content)
	succeed(t, "grep", append([]string{"-e", "w19", "-input", in, "-output", dir + "/out"}, smallSplits...)...)
	var want strings.Builder
	for line := range strings.Lines(content) {
		if strings.Contains(line, "w19") {
			want.WriteString(line)
		}
	}
	checkEqual(t, "lines", readParts(t, dir+"/out"), want.String())
}

func TestGrepCount(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "b a b\nc b a\n")
	succeed(t, "grep", "-count", "-e", "[a-c]", "-input", in, "-output", dir+"/out")
	checkEqual(t, "matches", readParts(t, dir+"/out/grep-sort"), "3\tb\n2\ta\n1\tc\n")
	checkEqual(t, "directories of the output", names(t, dir+"/out"), "grep-sort")
	checkNoLeftovers(t)
}

// TestFlowKeep: quern.flow.keep keeps results that only later jobs read.
func TestFlowKeep(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "b a b\nc b a\n")
	succeed(t, "grep", "-count", "-e", "[a-c]", "-input", in, "-output", dir+"/out", "-D", "quern.flow.keep=true")
	checkEqual(t, "matches", readParts(t, dir+"/out/grep-sort"), "3\tb\n2\ta\n1\tc\n")
	checkEqual(t, "directories of the output", names(t, dir+"/out"), "grep-search grep-sort")
	if content := readParts(t, dir+"/out/grep-search"); !strings.HasPrefix(content, "QSEG") {
		t.Errorf("%q was kept, no segment file", content)
	}
	checkNoLeftovers(t)
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries { // sorted by name
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

// TestFaultsRetried: a task reruns after its attempt fails, exits or is killed.
func TestFaultsRetried(t *testing.T) {
	content := text(100_000)
	for _, where := range []string{"map", "reduce"} {
		for how, times := range map[string]int{"error": 2, "panic": 1, "exit": 1, "kill": 1, "stderr": 1} {
			t.Run(where+" "+how, func(t *testing.T) {
				dir := t.TempDir()
				in := write(t, dir+"/in", content)
				succeed(t, "faulty", append([]string{"-at", where, "-do", how, "-times", fmt.Sprint(times),
					"-input", in, "-output", dir + "/out"}, smallSplits...)...)
				checkEqual(t, "counts", readParts(t, dir+"/out"), countWords(content))
				checkNoLeftovers(t)
			})
		}
	}
}

// TestJoinFaultsRetried: when an attempt ends while a join has spilled, its file goes with it, and the next one joins all.
func TestJoinFaultsRetried(t *testing.T) {
	for _, how := range []string{"error", "panic", "exit", "kill"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			in := write(t, dir+"/in", "a\nb\nc\n")
			succeed(t, "faulty", "-at", "join", "-do", how, "-times", "1", "-input", in, "-output", dir+"/out",
				"-D", "quern.join.buffer.bytes=4")
			checkEqual(t, "pairs", sortedLines(readParts(t, dir+"/out")), "a\ta\na\tb\na\tc\nb\ta\nb\tb\nb\tc\nc\ta\nc\tb\nc\tc\n")
			checkNoLeftovers(t)
		})
	}
}

// TestKilledInJobCommit kills the workers while the job's commit moves files into place. A kill
// may come too late, so the test repeats until a commit attempt is killed.
func TestKilledInJobCommit(t *testing.T) {
	content := text(50_000)
	in := write(t, t.TempDir()+"/in", content)
	for range 20 {
		out := t.TempDir() + "/out"
		var stderr bytes.Buffer
		cmd := start(t, &stderr, "wordcount", "-input", in, "-output", out, "-D", "mapreduce.job.reduces=300")
		whileRuns(cmd, time.Millisecond, func() bool { return !missing(out + "/part-r-00000") })
		killWorkers(cmd.Process.Pid)
		o := wait(t, cmd, &stderr)
		if o.exit != 0 {
			t.Fatalf("exit %d\n%s", o.exit, o.stderr)
		}
		checkEqual(t, "counts", sortedLines(readParts(t, out)), countWords(content))
		checkNoLeftovers(t)
		if strings.Contains(o.stderr, "_c_000000_") { // the messages name the commit's first attempt
			return
		}
	}
	t.Error("no kill came during a job's commit")
}

func TestWithoutReduces(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "b a\nb\n")
	succeed(t, "faulty", "-input", in, "-output", dir+"/out", "-D", "mapreduce.job.reduces=0")
	checkEqual(t, "map output", readParts(t, dir+"/out"), "b\t1\na\t1\nb\t1\n")
	checkNoLeftovers(t)
}

// TestSubmit: mrsubmit runs a package directory and an executable alike.
func TestSubmit(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "b a b\n")
	for name, job := range map[string]string{"package": "../../examples/wordcount", "executable": filepath.Join(programs, "wordcount")} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir() + "/out"
			o := succeed(t, "mrsubmit", "run", "-D", "mapreduce.job.reduces=2", job, "-input", in, "-output", out)
			checkEqual(t, "counts", sortedLines(readParts(t, out)), "a\t1\nb\t2\n")
			for _, want := range []string{"map 100%", "reduce 100%", "Map input records=1", "output: file://" + out} {
				if !strings.Contains(o.stderr, want) {
					t.Errorf("the messages lack %q:\n%s", want, o.stderr)
				}
			}
			checkNoLeftovers(t)
		})
	}
}

// TestInProcess: with quern.task.inprocess, attempts run in the program's own process, for
// debuggers.
func TestInProcess(t *testing.T) {
	content := text(50_000)
	dir := t.TempDir()
	in := write(t, dir+"/in", content)
	succeed(t, "wordcount", append([]string{"-input", in, "-output", dir + "/out", "-D", "quern.task.inprocess=true"}, smallSplits...)...)
	checkEqual(t, "counts", readParts(t, dir+"/out"), countWords(content))
	checkNoLeftovers(t)
}

// TestWorkerMemory: a worker stays within its memory limit on an input of several times its
// budget, with lines of 12 MB among short ones.
func TestWorkerMemory(t *testing.T) {
	const budget, longest = 4 << 20, 12 << 20
	var b strings.Builder
	for i := range 3 {
		b.WriteString(text(15 << 20))
		b.WriteString("\n" + strings.Repeat(fmt.Sprint(i), longest) + "\n")
	}
	content := b.String()
	dir := t.TempDir()
	in := write(t, dir+"/in", content)
	var stderr bytes.Buffer
	cmd := start(t, &stderr, "sort", "-input", in, "-output", dir+"/out", "-D", fmt.Sprintf("mapreduce.task.io.sort.mb=%d", budget>>20),
		"-D", "quern.embedded.slots=1")
	peak := 0
	whileRuns(cmd, filePoll, func() bool {
		for _, worker := range children(cmd.Process.Pid) {
			peak = max(peak, highWater(worker)) // the kernel keeps the maximum
		}
		return false
	})
	if o := wait(t, cmd, &stderr); o.exit != 0 {
		t.Fatalf("exit %d\n%s", o.exit, o.stderr)
	}
	checkEqual(t, "sorted", readParts(t, dir+"/out"), sortedLines(content))
	t.Logf("peak %d MB", peak>>20)
	if limit := budget + 64<<20 + 4*longest; peak > limit || peak == 0 {
		t.Errorf("a worker used %d MB, want at most %d MB", peak>>20, limit>>20)
	}
	checkNoLeftovers(t)
}

// highWater returns the peak memory of a process in bytes; 0 if it has ended.
func highWater(pid int) int {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kb := 0
	fmt.Sscan(after, &kb)
	return kb << 10
}
