package embedded_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestRefusedInput(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "a b\n")
	out := dir + "/out"
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	fmt.Fprint(w, text(100_000))
	w.Close()
	truncated := write(t, dir+"/cut.gz", zipped.String()[:zipped.Len()/2])
	empty := write(t, dir+"/empty.gz", "")
	packed := write(t, dir+"/x.xz", "\xfd7zXZ\x00")
	mislabelled := write(t, dir+"/text.bz2", "a line of text\n")
	long := write(t, dir+"/long", strings.Repeat("y", 3<<20)+"\n")
	odd := write(t, dir+"/odd", strings.Repeat("z", 250))
	for name, c := range map[string]struct {
		exit  int
		wants []string
		args  []string
	}{
		"missing input":      {1, []string{dir + "/nowhere"}, []string{"wordcount", "-input", dir + "/nowhere"}},
		"glob of nothing":    {1, []string{dir + "/no*"}, []string{"wordcount", "-input", dir + "/no*"}},
		"no input":           {2, []string{"-input"}, []string{"wordcount"}},
		"unknown flag":       {2, []string{"-bogus"}, []string{"wordcount", "-bogus", "-input", in}},
		"unknown scheme":     {1, []string{"gopher://"}, []string{"wordcount", "-input", "gopher://x/y"}},
		"short URL":          {1, []string{"fs.defaultFS"}, []string{"wordcount", "-input", in, "-output", "hdfs:/user/x"}},
		"colon":              {1, []string{"./a:b"}, []string{"wordcount", "-input", "a:b"}},
		"bad property":       {2, []string{"mapreduce.job.reduces", "many"}, []string{"wordcount", "-input", in, "-D", "mapreduce.job.reduces=many"}},
		"unknown property":   {2, []string{"quern.bogus"}, []string{"wordcount", "-input", in, "-D", "quern.bogus=1"}},
		"bad regexp":         {1, []string{"missing closing )"}, []string{"grep", "-e", "(", "-input", in}},
		"truncated gzip":     {1, []string{truncated, "truncated"}, []string{"wordcount", "-input", truncated}},
		"empty gzip":         {1, []string{empty, "is empty"}, []string{"wordcount", "-input", empty}},
		"unknown codec":      {1, []string{packed, "XZ"}, []string{"wordcount", "-input", packed}},
		"bzip2 that is text": {1, []string{mislabelled, "bzip2 data at offset 0"}, []string{"wordcount", "-input", mislabelled}},
		"record too large":   {1, []string{long, "quern.record.max.bytes"}, []string{"wordcount", "-input", long, "-D", "quern.record.max.bytes=1048576"}},
		"records not whole":  {1, []string{odd, "100"}, []string{"sort", "-records", "-input", odd}},
		"build error":        {1, []string{"deliberate error"}, []string{"faulty", "-at", "build", "-do", "error", "-input", in}},
	} {
		t.Run(name, func(t *testing.T) {
			checkRefused(t, c.exit, out, c.wants, c.args[0], append([]string{"-output", out}, c.args[1:]...)...)
		})
	}
	for _, long := range []string{dir + "/" + strings.Repeat("x", 256), dir + "/none/" + strings.Repeat("x", 256) + "/out", dir + strings.Repeat("/d", 2000)} {
		o := run(t, "wordcount", "-input", in, "-output", long)
		if o.exit != 1 || !strings.Contains(o.stderr, "at most") || len(o.stderr) > 300 {
			t.Errorf("an output of %d bytes: exit %d\n%s", len(long), o.exit, o.stderr)
		}
	}
	if _, err := os.Stat("hdfs:"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("hdfs:/user/x was used as a local path (%v)", err)
	}
}

// TestChecked: quern.check finds a map that emits other records when a worker process runs it a second time.
func TestChecked(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", text(1000))
	args := []string{"-input", in, "-output", dir + "/out", "-at", "map", "-D", "quern.check=true"}
	checkRefused(t, 1, dir+"/out", []string{"quern.check=true: job faulty, map of file://" + in, "emits something else"}, "faulty", append(args, "-do", "clock")...)
	succeed(t, "faulty", args...)
}

func TestUnreadableInput(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "a\n")
	if err := os.Chmod(in, 0); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := command(t, &stderr, "wordcount", "-input", in, "-output", dir+"/out")
	if os.Getuid() == 0 { // root can read every file, so the program runs as another user
		const user = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		if err := os.Chown(tempDir(t), user, user); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := wait(t, cmd, &stderr)
	if o.exit != 1 || !strings.Contains(o.stderr, in) || !strings.Contains(o.stderr, "permission denied") {
		t.Errorf("exit %d\n%s", o.exit, o.stderr)
	}
}

func TestOutputExists(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "a\n")
	file := write(t, dir+"/out/kept", "precious")
	o := run(t, "wordcount", "-input", in, "-output", dir+"/out")
	if o.exit != 1 || !strings.Contains(o.stderr, dir+"/out") || !strings.Contains(o.stderr, "exist") {
		t.Errorf("exit %d\n%s", o.exit, o.stderr)
	}
	entries, _ := os.ReadDir(dir + "/out")
	if content, _ := os.ReadFile(file); len(entries) != 1 || string(content) != "precious" {
		t.Errorf("output was touched: %v", entries)
	}
	if o := run(t, "wordcount", "-input", in, "-output", in); o.exit != 1 {
		t.Errorf("a file as output: exit %d\n%s", o.exit, o.stderr)
	}
}

// TestTwoJobsOneOutput: two jobs have the same output at the same time. One writes all of it, the
// other fails.
func TestTwoJobsOneOutput(t *testing.T) {
	content := text(300_000)
	dir := t.TempDir()
	in, out := write(t, dir+"/in", content), dir+"/out"
	var errs [2]bytes.Buffer
	var cmds [2]*exec.Cmd
	for i := range cmds {
		cmds[i] = start(t, &errs[i], "wordcount", "-input", in, "-output", out)
	}
	succeeded := 0
	for i := range cmds {
		switch o := wait(t, cmds[i], &errs[i]); {
		case o.exit == 0:
			succeeded++
		case o.exit != 1 || !strings.Contains(o.stderr, out):
			t.Errorf("exit %d\n%s", o.exit, o.stderr)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d jobs succeeded, want 1\n%s\n%s", succeeded, &errs[0], &errs[1])
	}
	checkEqual(t, "counts", readParts(t, out), countWords(content))
}

// TestFaultsFinal: if every attempt of a task fails, the job fails, and the error names the cause.
func TestFaultsFinal(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", text(1000))
	for _, where := range []string{"map", "reduce"} {
		for how, wants := range map[string][]string{
			"error": {"deliberate error"},
			"panic": {"deliberate panic", "faulty.go"},
			"exit":  {"exit status 3", "last lines of standard output:\n    about to exit\n    last lines of standard error:\n    deliberate exit"},
			"kill":  {"killed"},
			"hang":  {"mapreduce.task.timeout"},
		} {
			t.Run(where+" "+how, func(t *testing.T) {
				t.Parallel()
				out := t.TempDir() + "/out"
				wants := append([]string{"attempt_", "_" + where[:1] + "_000000"}, wants...)
				args := []string{"-at", where, "-do", how, "-input", in, "-output", out, "-D", "mapreduce.map.maxattempts=2", "-D", "mapreduce.reduce.maxattempts=2"}
				if how == "hang" {
					args = append(args, "-D", "mapreduce.task.timeout=5000")
				}
				checkRefused(t, 1, out, wants, "faulty", args...)
			})
		}
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := tmpfs(t, "size=2m")
	dir := t.TempDir()
	in := write(t, dir+"/in", text(8<<20))
	// Faulty has no combiner, so its map output is larger than the disk.
	o := run(t, "faulty", "-input", in, "-output", disk+"/out", "-D", "quern.embedded.dir="+disk)
	if o.exit != 1 || !strings.Contains(o.stderr, "no space left on device") {
		t.Errorf("exit %d\n%s", o.exit, o.stderr)
	}
	if left, _ := filepath.Glob(disk + "/*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestRelativeFile: if a program reads a relative file outside its functions, the error
// explains that workers run in another directory.
func TestRelativeFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := write(t, dir+"/in", text(10))
	write(t, dir+"/relative.txt", "x")
	for _, c := range []struct {
		start, at string
		wants     []string
	}{
		{"relative-file", "", []string{"its worker did not start: exit status 1 before mapreduce.Main", "open relative.txt: no such file"}},
		{"", "build", []string{"build the job: open relative.txt: no such file", "the client has built the job"}},
	} {
		var stderr bytes.Buffer
		cmd := command(t, &stderr, "faulty", "-at", c.at, "-do", "relative-file", "-input", in, "-output", dir+"/out")
		cmd.Dir, cmd.Env = dir, append(cmd.Env, "FAULTY_START="+c.start)
		if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%v", err)
		}
		for _, want := range append(c.wants, "a worker runs in ", "not in "+dir+",", "environment of its task tracker", "Job.Files") {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("message lacks %q:\n%s", want, &stderr)
			}
		}
	}
}

// TestInputRewritten: if the first map rewrites the input, later maps fail.
func TestInputRewritten(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", text(50_000))
	checkRefused(t, 1, dir+"/out", []string{in, "changed"}, "faulty", "-at", "map", "-do", "rewrite", "-input", in, "-output", dir+"/out",
		"-D", "quern.embedded.slots=1", "-D", "mapreduce.input.fileinputformat.split.maxsize=20000")
}

func TestFullOutputDisk(t *testing.T) {
	t.Parallel()
	disk := tmpfs(t, "size=1m")
	dir := t.TempDir()
	in := write(t, dir+"/in", text(8<<20))
	o := run(t, "grep", "-e", "w", "-input", in, "-output", disk+"/out")
	if o.exit != 1 || !strings.Contains(o.stderr, disk+"/out") || !strings.Contains(o.stderr, "no space left on device") {
		t.Errorf("exit %d\n%s", o.exit, o.stderr)
	}
	if left, _ := filepath.Glob(disk + "/*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	checkNoLeftovers(t)
}

func TestReadOnlyOutput(t *testing.T) {
	t.Parallel()
	disk := tmpfs(t, "ro,size=1m")
	dir := t.TempDir()
	in := write(t, dir+"/in", "a\n")
	checkRefused(t, 1, disk+"/out", []string{disk, "read-only"}, "wordcount", "-input", in, "-output", disk+"/out")
}

func tmpfs(t *testing.T, options string) string {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("mounting a small disk needs root on Linux")
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("umount", dir).Run() })
	return dir
}

// TestNotAJob: files that are not job programs are refused and never executed.
func TestNotAJob(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "a\n")
	ran := dir + "/ran"
	script := write(t, dir+"/script", "#!/bin/sh\ntouch "+ran+"\n")
	os.Chmod(script, 0o755)
	other := dir + "/other"
	arch := "arm64"
	if runtime.GOARCH == arch {
		arch = "amd64"
	}
	write(t, dir+"/tiny/go.mod", "module example.com/tiny\n\ngo 1.26.0\n")
	write(t, dir+"/tiny/main.go", "package main\n\nfunc main() { print(\"quern-job-protocol:2\\n\") }\n")
	build := exec.Command("go", "build", "-o", other)
	build.Dir = dir + "/tiny"
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOARCH="+arch)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, c := range map[string]struct {
		job   string
		wants []string
	}{
		"missing":            {dir + "/nowhere", []string{dir + "/nowhere"}},
		"script":             {script, []string{script}},
		"our own command":    {filepath.Join(programs, "mrsubmit"), []string{"mapreduce.Main"}},
		"other architecture": {other, []string{arch, runtime.GOARCH}},
		"text file":          {in, []string{in}},
	} {
		t.Run(name, func(t *testing.T) {
			checkRefused(t, 1, dir+"/out", c.wants, "mrsubmit", "run", c.job, "-input", in, "-output", dir+"/out")
		})
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the script was executed")
	}
}

// TestBadStart: a program that fails before mapreduce.Main is refused.
func TestBadStart(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "a\n")
	job := filepath.Join(programs, "faulty")
	for how, want := range map[string]string{"panic": "deliberate panic", "exit": "exit status 3", "kill": "killed"} {
		t.Run(how, func(t *testing.T) {
			t.Setenv("FAULTY_START", how)
			checkRefused(t, 1, dir+"/out", []string{want, job}, "mrsubmit", "run", job, "-input", in, "-output", dir+"/out")
		})
	}
}

func TestSubmitUsage(t *testing.T) {
	dir := t.TempDir()
	in := write(t, dir+"/in", "a\n")
	job := filepath.Join(programs, "wordcount")
	for name, args := range map[string][]string{
		"no command":       {},
		"unknown command":  {"fly"},
		"no job":           {"run"},
		"unknown flag":     {"run", "-bogus", job},
		"bad -D":           {"run", "-D", "novalue", job, "-input", in, "-output", dir + "/out"},
		"unknown job flag": {"run", job, "-bogus", "-input", in, "-output", dir + "/out"},
	} {
		t.Run(name, func(t *testing.T) {
			checkRefused(t, 2, dir+"/out", nil, "mrsubmit", args...)
		})
	}
}
