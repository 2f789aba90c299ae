package mapreduce

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quernmr/quern/wire"
)

// build builds a program of testdata, without symbols.
func build(t *testing.T, name string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "./testdata/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return program
}

// planOf runs a program in plan mode; the plan is nil if it writes none.
func planOf(t *testing.T, program string, args ...string) (sub *wire.Submission, stderr string, code int) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var errText bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "QUERN_MODE=plan")
	cmd.Stderr = &errText
	cmd.ExtraFiles = []*os.File{w}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if sub, err = wire.ReadAs[*wire.Submission](r); err != nil {
		sub = nil // the exit code reports the error
	}
	_ = cmd.Wait() // the exit code reports the error
	return sub, errText.String(), cmd.ProcessState.ExitCode()
}

func TestModes(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	program := build(t, "program")
	t.Run("plan", func(t *testing.T) {
		sub, stderr, code := planOf(t, program, "-input", "a,b{1,2}", "-D", "mapreduce.job.reduces=4", "-output", "/out", "-D", "x=y=z", "-D", "mapreduce.odd=1")
		if code != 0 || sub == nil {
			t.Fatalf("exit %d\n%s", code, stderr)
		}
		job := sub.Plan.Jobs[0]
		if sub.Plan.Flow != "" || job.Reduces != 4 || job.Output != "file:///out" || job.Properties["x"] != "y=z" || len(job.Inputs[0].Paths) != 2 {
			t.Errorf("plan %+v", sub.Plan)
		}
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"input": "a,b{1,2}", "output": "/out", "fault": "", "D mapreduce.job.reduces": "4", "D x": "y=z", "D mapreduce.odd": "1"}
		if !maps.Equal(sub.Program.Flags, want) || sub.Program.Dir != dir || len(sub.Program.Args) != 10 {
			t.Errorf("program %+v", sub.Program)
		}
		if !strings.Contains(stderr, "mapreduce.odd") {
			t.Errorf("no warning: %q", stderr)
		}
	})
	for name, c := range map[string]struct {
		code  int
		words []string
		args  []string
	}{
		"help":          {0, []string{"-input", "-output", "-D", "-fault", "comma-separated"}, []string{"-h"}},
		"unknown flag":  {2, []string{"-bogus", "-input"}, []string{"-bogus"}},
		"argument":      {2, []string{`"extra"`, "-input"}, []string{"-input", "x", "extra"}},
		"bad -D":        {2, []string{"name=value"}, []string{"-D", "x"}},
		"no input":      {2, []string{"-input"}, []string{"-output", "x"}},
		"no output":     {2, []string{"-output"}, []string{"-input", "x"}},
		"too much":      {2, []string{"mapreduce.job.counters.max", "from 0 to 2000"}, []string{"-input", "x", "-output", "y", "-D", "mapreduce.job.counters.max=1000000000"}},
		"bad property":  {2, []string{"mapreduce.job.reduces", `"many"`}, []string{"-input", "x", "-output", "y", "-D", "mapreduce.job.reduces=many"}},
		"build error":   {1, []string{"deliberate error"}, []string{"-input", "x", "-output", "y", "-fault", "error"}},
		"built nothing": {1, []string{"returned nil"}, []string{"-input", "x", "-output", "y", "-fault", "nil"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := planOf(t, program, c.args...)
			if code != c.code {
				t.Errorf("exit %d, want %d\n%s", code, c.code, stderr)
			}
			for _, w := range c.words {
				if !strings.Contains(stderr, w) {
					t.Errorf("no %q in\n%s", w, stderr)
				}
			}
		})
	}
	t.Run("parsed before", func(t *testing.T) {
		t.Setenv("PARSE_FIRST", "1")
		if _, stderr, code := planOf(t, program); code != 1 || !strings.Contains(stderr, "flag.Parse") {
			t.Errorf("exit %d\n%s", code, stderr)
		}
	})
	t.Run("worker", func(t *testing.T) { testWorker(t, program) })
	t.Run("marker", func(t *testing.T) {
		marker := fmt.Sprintf("quern-job-protocol:%d\n", wire.WorkerProtocol)
		for name, want := range map[string]bool{program: true, build(t, "nomain"): false} {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(data, []byte(marker)) != want {
				t.Errorf("%s: contains the marker: want %v", name, want)
			}
		}
	})
}

// testWorker: a worker says hello and ends when its pipe closes.
func testWorker(t *testing.T, program string) {
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(program, "-input", "x", "-output", "y")
	cmd.Env = append(os.Environ(), "QUERN_MODE=worker")
	cmd.Stderr = &stderr
	cmd.ExtraFiles = []*os.File{inR, outW}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	inR.Close()
	outW.Close()
	hello, err := wire.ReadAs[*wire.WorkerHello](outR)
	if err != nil || hello.Protocol != wire.WorkerProtocol {
		t.Errorf("hello %+v: %v\n%s", hello, err, &stderr)
	}
	inW.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("worker ended with %v\n%s", err, &stderr)
	}
}

// TestPaths: relative paths are relative to the client's working directory.
func TestPaths(t *testing.T) {
	c := places{dir: "/my [old] ü,files"}
	for name, want := range map[string]string{
		"a b":      `file:///my \[old\] ü,files/a b`,
		"*.txt":    `file:///my \[old\] ü,files/*.txt`,
		"../*.txt": "file:///*.txt",
		"/x/*":     "file:///x/*",
		"mem://x*": "mem://x*/",
		"mem:/x*":  "mem:///x*",
		"file:/x":  "file:///x",
		"./a:*":    `file:///my \[old\] ü,files/a:*`,
		"a:b":      "",
		"{a:b,c}":  "",
	} {
		if got, err := c.cleanInput(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, want %s (%v)", name, got, want, err)
		}
	}
	for name, want := range map[string]string{
		"out":           "file:///my [old] ü,files/out",
		"hdfs:/user/x":  "hdfs:///user/x",
		"./hdfs:/user":  "file:///my [old] ü,files/hdfs:/user",
		"hdfs:relative": "",
	} {
		if got, err := c.clean(name); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, want %s (%v)", name, got, want, err)
		}
	}
}

// TestDefaultFS: with fs.defaultFS, a path without a scheme is there, in all places where a job names one.
func TestDefaultFS(t *testing.T) {
	job := func() *Job {
		j := Fold(wordPairs("/in/*", "file:///local"), Sum).Job("j")
		j.Files, j.Output = map[string]string{"side": "/side"}, "/out"
		return j
	}
	for given, want := range map[string]string{
		"":                              "file:///in/* file:///local file:///side file:///out",
		"fs.defaultFS=hdfs://nn:8020":   "hdfs://nn:8020/in/* file:///local hdfs://nn:8020/side hdfs://nn:8020/out",
		"j:fs.default.name=hdfs:/":      "hdfs:///in/* file:///local hdfs:///side hdfs:///out",
		"fs.defaultFS=file:///":         "file:///in/* file:///local file:///side file:///out",
		"fs.defaultFS=hdfs://nn:8020/x": "",
	} {
		c, err := compiledWith([]*Job{job()}, strings.Fields(given)...)
		if err != nil {
			if want != "" || !isUsage(err) {
				t.Errorf("%s: %v", given, err)
			}
			continue
		}
		plan := c.plans[0]
		if got := strings.Join(append(plan.Inputs[0].Paths, plan.Files["side"], plan.Output), " "); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
	if _, err := compiledWith([]*Job{someJob("j")}, "fs.defaultFS=hdfs://nn"); err == nil || !strings.Contains(err.Error(), "must be absolute") {
		t.Errorf("a relative path on HDFS: %v", err)
	}
}

// TestImports: a job's program links no server.
func TestImports(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, banned := range []string{"hashicorp/raft", "memberlist", "bbolt", "prometheus"} {
		for pkg := range strings.Lines(string(out)) {
			if strings.Contains(pkg, banned) {
				t.Errorf("package mapreduce imports %s", pkg)
			}
		}
	}
}
