package compose_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/integration/tpch/peers"
)

// jobs runs word count, sort, grep and a query from the client's container. In the same
// files there must be what the program makes alone, on this machine.
func jobs(c *cluster) {
	c.books()
	for name, rows := range peers.Small(30) {
		c.put("hdfs:///test/tpch/"+name+".tbl", []byte(rows))
	}
	for _, j := range []struct {
		program string
		args    []string
		sub     string
	}{
		{"wordcount", []string{"-input", books}, ""},
		{"sort", []string{"-input", books}, ""},
		{"grep", []string{"-input", books, "-e", "1f[0-9]-[a-z]*"}, ""},
		{"tpch", []string{"-query", "3", "-tables", "hdfs:///test/tpch"}, "answer"},
	} {
		c.likeAlone(j.program, j.sub, j.args...)
	}
}

// books is several blocks of text in HDFS.
const books = "hdfs:///test/books"

// books writes them, unless they are there.
func (c *cluster) books() {
	c.t.Helper()
	if _, err := c.files.Stat(books); err == nil {
		return
	}
	for i := range 3 {
		c.put(fmt.Sprintf("%s/%d", books, i), words(uint64(i), 6<<20))
	}
}

// words makes about so many bytes of lines of words, some words often and most
// seldom, the same from run to run.
func words(seed uint64, size int) []byte {
	r := rand.New(rand.NewPCG(5, seed))
	b := make([]byte, 0, size+200)
	for len(b) < size {
		for range 4 + r.IntN(12) {
			b = fmt.Appendf(b, "%x-%s ", r.IntN(1<<14)&r.IntN(1<<14), "abcdefghijklmnop"[:r.IntN(3)])
		}
		b[len(b)-1] = '\n'
	}
	return b
}

func (c *cluster) put(name string, content []byte) {
	c.t.Helper()
	err := c.files.MkdirAll(dfs.Dir(name))
	if err != nil {
		c.t.Fatal(err)
	}
	w, err := c.files.Create(name)
	if err == nil {
		_, err = w.Write(content)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// likeAlone runs a program on the cluster and, once for all parts of the test, alone,
// and compares what they write, file by file.
func (c *cluster) likeAlone(program, sub string, args ...string) {
	c.t.Helper()
	*c.made++
	out := fmt.Sprintf("hdfs:///test/out%d", *c.made)
	reduces := []string{"-D", "mapreduce.job.reduces=3"}
	c.client(slices.Concat([]string{"run"}, reduces, []string{"/jobs/" + program, "-output", out}, args)...).succeed()
	got := c.parts(dfs.Join(out, sub))
	want := c.alone(program, sub, slices.Concat(reduces, args))
	if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
		c.t.Fatalf("%s: files %q, alone %q", program, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
	for name, content := range want {
		if !bytes.Equal(got[name], content) {
			c.t.Errorf("%s: %s has %d bytes and differs from what one process makes, which has %d", program, name, len(got[name]), len(content))
		}
	}
}

// alone runs a program by itself, over the same input.
func (c *cluster) alone(program, sub string, args []string) map[string][]byte {
	c.t.Helper()
	dir := filepath.Join(c.dir, "alone")
	jobs := filepath.Join(dir, "jobs")
	if _, err := os.Stat(jobs); err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			c.t.Fatal(err)
		}
		c.docker("cp", c.container("client")+":/jobs", dir)
	}
	out := filepath.Join(dir, fmt.Sprintf("%x", strings.Join(append(args, program), " ")))
	if _, err := os.Stat(out); err != nil {
		cmd := exec.CommandContext(c.ctx, filepath.Join(jobs, program), append(args, "-output", out)...)
		cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+c.conf(), "HADOOP_USER_NAME=quern", "TMPDIR="+c.dir)
		if said, err := cmd.CombinedOutput(); err != nil {
			c.t.Fatalf("%s alone: %v\n%s", program, err, said)
		}
	}
	parts := make(map[string][]byte)
	names, _ := filepath.Glob(filepath.Join(out, sub, "part-*")) // the pattern is well-formed
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			c.t.Fatal(err)
		}
		parts[filepath.Base(name)] = content
	}
	if len(parts) == 0 {
		c.t.Fatalf("%s alone has written nothing", program)
	}
	return parts
}

// parts reads the part files of an output directory, which must be whole.
func (c *cluster) parts(out string) map[string][]byte {
	c.t.Helper()
	infos, err := c.files.List(out)
	if err != nil {
		c.t.Fatal(err)
	}
	parts, success := make(map[string][]byte), false
	for _, info := range infos {
		switch name := dfs.Base(info.Name); {
		case name == "_SUCCESS":
			success = true
		case strings.HasPrefix(name, "part-"):
			parts[name] = c.read(info.Name)
		default:
			c.t.Errorf("%s holds %s", out, name)
		}
	}
	if !success {
		c.t.Errorf("%s lacks _SUCCESS", out)
	}
	return parts
}

func (c *cluster) read(name string) []byte {
	c.t.Helper()
	file, err := c.files.Open(name)
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		c.t.Fatal(err)
	}
	return content
}

// run is a command that runs in the client's container.
type run struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout output
	stderr output
	ended  chan struct{}
}

// output collects what a program says.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// client starts a command of mrsubmit.
func (c *cluster) client(args ...string) *run {
	c.t.Helper()
	line := append([]string{"exec", c.container("client"), "mrsubmit"}, args...)
	r := &run{t: c.t, cmd: exec.CommandContext(c.ctx, "docker", line...), ended: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, &r.stderr
	if err := r.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		r.cmd.Wait()
	}()
	return r
}

// succeed waits for the command, which must exit 0, and gives its standard output.
func (r *run) succeed() string {
	r.t.Helper()
	<-r.ended
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		r.t.Fatalf("%s: exit %d\n%s%s", strings.Join(r.cmd.Args, " "), code, r.stdout.String(), r.stderr.String())
	}
	return r.stdout.String()
}

// fail waits for the command, which must exit so and say all that.
func (r *run) fail(code int, wants ...string) {
	r.t.Helper()
	<-r.ended
	said := r.stderr.String()
	lacks := slices.ContainsFunc(wants, func(want string) bool { return !strings.Contains(said, want) })
	if got := r.cmd.ProcessState.ExitCode(); got != code || lacks {
		r.t.Errorf("%s: exit %d, want %d and %q:\n%s", strings.Join(r.cmd.Args, " "), got, code, wants, said)
	}
}

// job is a run of the program paced.
type job struct {
	*run
	c     *cluster
	text  string // of the input
	out   string // URL
	trace string
	gate  string
}

// paced submits a word count over so many splits. With -gate in flags its maps wait
// until open is called.
func (c *cluster) paced(splits int, flags ...string) *job {
	c.t.Helper()
	*c.made++
	name := fmt.Sprintf("job%d", *c.made)
	dir, url := filepath.Join(c.traces(), name), "hdfs:///test/"+name
	j := &job{c: c, text: lines(splits), out: url + "/out", trace: dir, gate: filepath.Join(dir, "gate")}
	if err := errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777)); err != nil {
		c.t.Fatal(err)
	}
	c.put(url+"/in", []byte(j.text))
	args := []string{"run", "-D", fmt.Sprintf("mapreduce.input.fileinputformat.split.maxsize=%d", splitBytes), "/jobs/paced",
		"-input", url + "/in", "-output", j.out, "-trace", "/traces/" + name}
	for _, flag := range flags {
		if args = append(args, flag); flag == "-gate" {
			args = append(args, "/traces/"+name+"/gate")
		}
	}
	j.run = c.client(args...)
	return j
}

// open lets the maps of a job with a gate go on.
func (j *job) open() {
	j.t.Helper()
	if err := os.WriteFile(j.gate, nil, 0o666); err != nil {
		j.t.Fatal(err)
	}
}

// traces lists the attempts of a kind of task that have begun or ended.
func (j *job) traces(kind, what string) []string {
	files, _ := filepath.Glob(filepath.Join(j.trace, "*_"+kind+"_*."+what)) // the pattern is well-formed
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), "."+what)
	}
	return files
}

// began waits until so many attempts of a kind have begun.
func (j *job) began(kind string, n int) {
	j.t.Helper()
	within(deadline, func() bool {
		select {
		case <-j.ended:
			return true
		default:
			return j.c.ctx.Err() != nil || len(j.traces(kind, "began")) >= n
		}
	})
	if got := len(j.traces(kind, "began")); got < n {
		j.t.Fatalf("%d attempts of kind %s have begun, want %d\n%s", got, kind, n, j.stderr.String())
	}
}

// correct waits for the job's success and compares its output.
func (j *job) correct() {
	j.t.Helper()
	j.succeed()
	j.same()
}

// same compares the job's output with what is right.
func (j *job) same() {
	j.t.Helper()
	var got []byte
	parts := j.c.parts(j.out)
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		got = append(got, parts[name]...)
	}
	if want := counted(j.text); string(got) != want {
		j.t.Errorf("%s: output differs: got %d bytes, want %d", j.out, len(got), len(want))
	}
}

// once checks that no map was tried twice and that every attempt came to its end.
func (j *job) once() {
	j.t.Helper()
	began, ended := j.traces("m", "began"), j.traces("m", "ended")
	if !slices.Equal(began, ended) {
		j.t.Errorf("attempts did not all run to their end:\nbegan %v\nended %v", began, ended)
	}
	tasks := make(map[string]bool)
	for _, a := range began {
		task, _, _ := strings.Cut(a, ".")
		if tasks[task] {
			j.t.Errorf("%s ran twice: %v", task, began)
		}
		tasks[task] = true
	}
}

// splitBytes is the length of a split, one line of text.
const splitBytes = 128

// lines makes so many lines of splitBytes each.
func lines(n int) string {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	var b strings.Builder
	for range n {
		line := ""
		for len(line) < splitBytes-6 {
			line += fmt.Sprintf("w%d ", r.IntN(300))
		}
		fmt.Fprintf(&b, "%-*s\n", splitBytes-1, line)
	}
	return b.String()
}

// counted is a dumb word count.
func counted(text string) string {
	counts := make(map[string]int)
	for w := range strings.FieldsSeq(text) {
		counts[w]++
	}
	var b strings.Builder
	for _, w := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%s\t%d\n", w, counts[w])
	}
	return b.String()
}
