package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/dfs"
	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/mapreduce/streaming/streamtest"
)

var megabytes = flag.Int("megabytes", 10, "`size` of the standard error of streaming commands, in MB")

var onlyCase = flag.String("case", "", "run only the streaming cases with this `text` in their names")

// streamed runs mrsubmit streaming in a directory, on a cluster of its own.
func streamed(t *testing.T, dir string, args ...string) (code int, stderr string) {
	t.Helper()
	t.Chdir(dir)
	var messages bytes.Buffer
	tool := &tool{
		stdin: strings.NewReader(""), stdout: &messages, stderr: &messages, getenv: func(string) string { return "" },
		signals: client.Signals{}, embedded: embeddedCluster, poll: time.Millisecond,
	}
	code = tool.main(t.Context(), append([]string{"streaming"}, args...))
	return code, messages.String()
}

// TestStreamingCases compares the output of each case with what Hadoop has written.
func TestStreamingCases(t *testing.T) {
	names, err := filepath.Glob("../../mapreduce/streaming/testdata/cases/*.txt")
	if err != nil || len(names) < 100 {
		t.Fatalf("%d cases, %v", len(names), err)
	}
	for i := range names {
		if names[i], err = filepath.Abs(names[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		short := strings.TrimSuffix(filepath.Base(name), ".txt")
		if !strings.Contains(short, *onlyCase) {
			continue
		}
		t.Run(short, func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			c, err := streamtest.Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			needPrograms(t, c)
			dir := t.TempDir()
			if err := c.Write(dir); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"-quiet", "-D", "mapreduce.map.maxattempts=1", "-D", "mapreduce.reduce.maxattempts=1"}, c.Args...)
			code, stderr := streamed(t, dir, args...)
			if code != c.Exit {
				t.Errorf("exit code %d, want %d: %s", code, c.Exit, stderr)
			}
			got := *c
			if got.Out, err = c.Read(dir); err != nil {
				t.Fatal(err)
			}
			if c.Exit == 0 && got.String() != c.String() {
				t.Errorf("got\n%s\nwant\n%s\n%s", got.String(), c, stderr)
			}
		})
	}
}

// needPrograms skips a case with scripts for a program that is missing.
func needPrograms(t *testing.T, c *streamtest.Case) {
	for _, program := range []string{"perl", "python3"} {
		_, err := exec.LookPath(program)
		if err != nil && slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, program+" ") }) {
			t.Skip(err)
		}
	}
}

// TestStreamingCommands: whatever a command does, the job ends, with a result or with an error that names the cause.
func TestStreamingCommands(t *testing.T) {
	large := strings.Repeat(strings.Repeat("x", 99)+"\n", 10_000) // more than a pipe and the buffer before it hold
	much := fmt.Sprint(*megabytes * 1_000_000)
	for _, c := range []struct {
		name, mapper string // sh ./mapper
		small        bool   // of input
		properties   []string
		fail         []string // in the error; none: the job succeeds
		out          string
	}{
		{name: "reads nothing, exits 0", mapper: "exit 0", fail: []string{`the mapper "sh mapper" did not read its input`}},
		{name: "reads one line", mapper: "read line; exit 0", fail: []string{"did not read its input", "set stream.minRecWrittenToEnableSkip_=0"}},
		{name: "closes standard input", mapper: "exec <&-; echo done", fail: []string{"did not read its input"}},
		{name: "exits 1", mapper: "cat; echo sorry >&2; exit 1", fail: []string{`the mapper "sh mapper" subprocess failed with code 1`, "sorry"}},
		{name: "reads nothing, exits 3", mapper: "echo sorry >&2; exit 3", fail: []string{"subprocess failed with code 3", "sorry"}},
		{name: "killed", mapper: "kill -9 $$", fail: []string{"subprocess failed with code 137: signal 9, killed"}},
		{name: "terminated", mapper: "cat > /dev/null; kill -15 $$", fail: []string{"subprocess failed with code 143"}},
		{name: "reads nothing, exits 1, which is accepted", mapper: "exit 1", properties: []string{"-D", "stream.non.zero.exit.is.failure=false"}, fail: []string{"did not read its input"}},
		{name: "reads nothing, and leaves a process that holds standard input", mapper: "exec 3<&0; sleep 600 <&3 >&- 2>&- & exit 0", fail: []string{"did not read its input"}},
		{name: "exits 1, and leaves a process that holds standard output", mapper: "cat > /dev/null; echo sorry >&2; sleep 600 2>&- & exit 1", fail: []string{"subprocess failed with code 1", "sorry"}},
		{name: "exits 1, and leaves a process that holds standard error", mapper: "cat > /dev/null; echo sorry >&2; sleep 600 >&- & exit 1", fail: []string{"subprocess failed with code 1", "sorry"}},
		{name: "reads nothing, exits 3, and leaves a process that holds all pipes", mapper: "exec 3<&0; echo sorry >&2; sleep 600 <&3 & exit 3", fail: []string{"subprocess failed with code 3", "sorry"}},
		{name: "leaves a process that writes the last record", mapper: "exec 3<&0; cat > /dev/null; (read line <&3; echo a) 2>&- & exit 0", out: "a\t\n"},
		{name: "never reads, and never ends", mapper: "exec sleep 600", properties: []string{"-D", "mapreduce.task.timeout=1000"}, fail: []string{"mapreduce.task.timeout"}},
		{name: "closes standard output", mapper: "exec >&-; cat > /dev/null"},
		{name: "closes standard output, exits 1", mapper: "exec >&-; cat > /dev/null; exit 1", fail: []string{"subprocess failed with code 1"}},
		{name: "closes standard error", mapper: "exec 2>&-; cat > /dev/null; echo a", out: "a\t\n"},
		{name: "writes much, then reads", mapper: "yes '' | head -n 300000; cat > /dev/null", out: strings.Repeat("\t\n", 300_000)},
		{name: "writes much, reads nothing", mapper: "yes '' | head -n 300000", fail: []string{"did not read its input"}},
		{name: "writes much, reads nothing of a small input", mapper: "yes '' | head -n 300000", small: true, out: strings.Repeat("\t\n", 300_000)},
		{name: "neither tab nor newline", mapper: "cat > /dev/null; printf 'a\\nb'", out: "a\t\nb\t\n"},
		{name: "invalid UTF-8", mapper: "cat > /dev/null; printf '\\377\\300\\t\\200\\n'", out: "\xff\xc0\t\x80\n"},
		{name: "much standard error", mapper: "yes 0123456789abcde | head -c " + much + " >&2; cat > /dev/null; echo a", out: "a\t\n"},
		{name: "much standard error in one line", mapper: "head -c " + much + " /dev/zero | tr '\\0' x >&2; exit 1", fail: []string{"subprocess failed with code 1", "xxx"}},
		{name: "a million counters", mapper: `awk 'BEGIN { for (i = 0; i < 1000000; i++) print "reporter:counter:G,n" i ",1" }' >&2; cat > /dev/null`, fail: []string{"at most 120", "mapreduce.job.counters.max"}},
		{name: "reports that are not UTF-8", mapper: `cat > /dev/null; printf 'reporter:status:\377\nreporter:counter:\377,\300,1\nreporter:counter:a,b\nreporter:\n' >&2; echo a`, out: "a\t\n"},
		{name: "a large property", mapper: "cat > /dev/null; echo a", properties: []string{"-conf", "large.xml"}, fail: []string{"argument list too long", "stream.jobconf.truncate.limit"}},
		{name: "a large property, cut", mapper: "cat > /dev/null; echo a", properties: []string{"-D", "stream.jobconf.truncate.limit=1000", "-conf", "large.xml"}, out: "a\t\n"},
		{name: "a long line of much output", mapper: "cat > /dev/null; head -c " + much + " /dev/zero | tr '\\0' x; cat > /dev/null",
			properties: []string{"-D", "quern.record.max.bytes=1000000"}, fail: []string{"a line is longer than quern.record.max.bytes=1000000"}},
		{name: "a long line of input", mapper: "cat", properties: []string{"-D", "quern.record.max.bytes=50", "-D", "mapreduce.job.reduces=0"}, fail: []string{"quern.record.max.bytes=50"}},
		{name: "a long line, and a process that holds all pipes", mapper: "exec 3<&0; sleep 600 <&3 & head -c 2000000 /dev/zero; wait",
			properties: []string{"-D", "quern.record.max.bytes=1000000"}, fail: []string{"a line is longer than quern.record.max.bytes=1000000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, input := t.TempDir(), large
			if c.small {
				input = "line\n"
			}
			write(t, filepath.Join(dir, "in"), input)
			write(t, filepath.Join(dir, "mapper"), c.mapper)
			write(t, filepath.Join(dir, "large.xml"), "<configuration><property><name>a.large</name><value>"+strings.Repeat("x", 200_000)+"</value></property></configuration>")
			args := append([]string{"-quiet", "-D", "mapreduce.map.maxattempts=1"}, c.properties...)
			code, stderr := streamed(t, dir, append(args, "-files", "mapper", "-input", "in", "-output", "out", "-mapper", "sh mapper", "-reducer", "cat")...)
			checkStreamed(t, code, stderr, c.fail)
			if got, err := os.ReadFile(filepath.Join(dir, "out/part-00000")); len(c.fail) == 0 && (err != nil || string(got) != c.out) {
				t.Errorf("%v; %d bytes are written, want %d: %.100q", err, len(got), len(c.out), got)
			}
		})
	}
}

// checkStreamed checks the exit code and the error, which is short.
func checkStreamed(t *testing.T, code int, stderr string, fail []string) {
	t.Helper()
	if want := min(len(fail), 1); code != want || len(stderr) > 10_000 {
		t.Errorf("exit code %d, want %d; %d bytes of errors: %.2000s", code, want, len(stderr), stderr)
	}
	for _, text := range fail {
		if !strings.Contains(stderr, text) {
			t.Errorf("no %q in: %.2000s", text, stderr)
		}
	}
}

// TestStreamingNoCommand: the error names a command that cannot be run.
func TestStreamingNoCommand(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in"), "line\n")
	plain := filepath.Join(dir, "plain")
	write(t, plain, "echo a")
	write(t, filepath.Join(dir, "old.py"), "#! /no/python2.6 -u\nprint 1\n")
	write(t, filepath.Join(dir, "dos.sh"), "#!/bin/sh\r\ncat\r\n")
	for _, c := range []struct{ mapper, reducer, stderr string }{
		{"no-such-command -x", "cat", `cannot run the mapper "no-such-command -x": "no-such-command" is neither in the working directory of the attempt nor on PATH: ship it with -file`},
		{plain, "cat", "permission denied: use chmod a+x"},
		{dir, "cat", "permission denied"},
		{"cat", "/no/such/command", `cannot run the reducer "/no/such/command"`},
		{"old.py", "cat", `the interpreter "/no/python2.6", which is not there`},
		{"cat", "dos.sh", "ends in a carriage return: save it with line feeds only"},
		{"com.acme.WordMapper", "cat", "Quern runs no Java, and has of Hadoop's classes only IdentityMapper, IdentityReducer, aggregate"},
	} {
		code, stderr := streamed(t, dir, "-quiet", "-D", "mapreduce.map.maxattempts=1", "-D", "mapreduce.reduce.maxattempts=1", "-files", "old.py,dos.sh",
			"-input", "in", "-output", "out", "-mapper", c.mapper, "-reducer", c.reducer)
		checkStreamed(t, code, stderr, []string{c.stderr})
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestStreamingCounters: counters of commands and of combiners, as Hadoop's own tests check them.
func TestStreamingCounters(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in", "roses.are.red\nviolets.are.blue\nbunnies.are.pink\n")
	write(t, "map.sh", "while read line; do echo reporter:counter:UserCounters,InputLines,1 >&2; echo \"$line\"; done")
	code, _, stderr := answered(t, nil, "mapred", "streaming", "-files", "map.sh", "-input", "in", "-output", "out", "-mapper", "sh map.sh", "-combiner", "cat", "-reducer", "cat")
	if code != 0 || !inOrder(stderr, "\t\tCombine input records=3\n\t\tCombine output records=3\n…\tUserCounters\n\t\tInputLines=3\n") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestStreamingGroups: the groups that reduces read are runs of equal keys, as Hadoop counts them, also if the comparator
// takes other keys for equal.
func TestStreamingGroups(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "in", "a.1\tx\nb.1\tx\na.2\tx\na.1\ty\n")
	for _, c := range []struct {
		args    []string
		reducer string
		groups  string
	}{
		{nil, "cat", "3"},
		{nil, "org.apache.hadoop.mapred.lib.IdentityReducer", "3"},
		{[]string{"-D", "mapreduce.job.output.key.comparator.class=org.apache.hadoop.mapred.lib.KeyFieldBasedComparator",
			"-D", "mapreduce.map.output.key.field.separator=.", "-D", "mapreduce.partition.keycomparator.options=-k1,1"}, "cat", "4"},
	} {
		if err := os.RemoveAll("out"); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"streaming"}, c.args...)
		code, _, stderr := answered(t, nil, "mapred", append(args, "-input", "in", "-output", "out", "-mapper", "cat", "-reducer", c.reducer)...)
		if code != 0 || !strings.Contains(stderr, "\t\tReduce input groups="+c.groups+"\n") {
			t.Errorf("%q: exit code %d: %s", c.args, code, stderr)
		}
	}
}

// TestStreamingDefaultFS: fs.defaultFS decides where inputs and outputs without a scheme are. The configuration alone does not.
func TestStreamingDefaultFS(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HADOOP_CONF_DIR", dir)
	t.Setenv("HADOOP_USER_NAME", "ann")
	t.Chdir(dir)
	others := files
	files = sync.OnceValue(func() dfs.FS { return builtin.FileSystems() }) // others have read their configuration
	t.Cleanup(func() { files = others })
	write(t, "core-site.xml", "<configuration><property><name>fs.defaultFS</name><value>hdfs://c:1</value></property></configuration>")
	write(t, "conf.xml", "<configuration><property><name>fs.defaultFS</name><value>hdfs://x:1</value></property></configuration>")
	for _, c := range []struct{ args, home, fail string }{
		{"", "", ""},
		{"-D fs.defaultFS=hdfs://p:1", "hdfs://p:1/user/ann", ""},
		{"-Dfs.default.name=hdfs://p:1", "hdfs://p:1/user/ann", ""},
		{"-D fs.defaultFS=hdfs:///", "hdfs:///user/ann", ""},
		{"-conf conf.xml", "hdfs://x:1/user/ann", ""},
		{"-conf conf.xml -D fs.defaultFS=file:///", "", ""},
		{"-D fs.defaultFS=p:1", "", "property fs.defaultFS"},
	} {
		tool := &tool{stderr: io.Discard, stdout: io.Discard, getenv: func(string) string { return "" }}
		set := newFlags("streaming")
		args := append(strings.Fields(c.args), "-input", "in", "-output", "out", "-mapper", "cat")
		command, err := tool.parseStreaming(set, tool.declareRun(set), args)
		if c.fail != "" {
			if err == nil || !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%q: %v, expected an error with %q", c.args, err, c.fail)
			}
			continue
		}
		if err != nil || command.Job.Home != c.home {
			t.Errorf("%q: %+v, %v, expected the home %q", c.args, command.Job, err, c.home)
		}
	}
}
