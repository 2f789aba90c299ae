// Package pages_test runs the commands on the pages for newcomers, in the order of the pages. It
// compares the commands' output with the output on the pages.
//
// It runs these fenced blocks of a page, in one shell for each page, which starts in the
// repository:
//
//	sh       each line is a command
//	console  lines that begin with "$ " are commands, others are the command's output
//	go       with a first line such as "// main.go": the block becomes that file
//
// The command must print each line that the page shows, in this order. Other lines may
// come between; a page marks them with a line "…". Within a line, … matches any text. A
// command must succeed unless the next one is "echo $?". A command that ends with "&"
// keeps running after it has printed the lines. A command with the comment
// "# repeat until" is repeated until it prints them.
//
// The test has its own home directory, /tmp/ and 127.0.0.1, which all pages share:
// getting-started.md creates the module that later pages change.
package pages_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// deadline is generous: it only ends a test that hangs.
const deadline = 15 * time.Minute

var pages = []string{"README.md", "docs/getting-started.md", "docs/writing-jobs.md", "docs/debugging.md"}

func TestPages(t *testing.T) {
	box := newSandbox(t)
	for _, page := range pages {
		ok := t.Run(filepath.Base(page), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(box.root, page))
			if err != nil {
				t.Fatal(err)
			}
			steps := stepsOf(string(text))
			if len(steps) == 0 {
				t.Fatalf("%s has no command", page)
			}
			sh := box.shell(t)
			for i, s := range steps {
				mayFail := i+1 < len(steps) && steps[i+1].command == "echo $?"
				sh.do(t, s, mayFail)
			}
		})
		if !ok {
			return // later pages need the results of this page
		}
	}
}

// TestGoBlocks: Go code on a page is a part of a tested example, unless it has a file name. Its
// indentation may differ.
func TestGoBlocks(t *testing.T) {
	var examples strings.Builder
	for _, name := range []string{"examples/wordcount/wordcount.go", "mapreduce/example_test.go", "mapreduce/example_fields_test.go", "formats/sequence/example_test.go", "formats/avro/example_test.go", "examples/revenue/main.go", "examples/pagerank/main.go", "examples/leftjoin/main.go"} {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		examples.WriteString(unindented(string(text)))
	}
	blocks := 0
	for _, page := range pages {
		text, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocksOf(string(text)) {
			if b.language != "go" || fileName.MatchString(b.text) {
				continue
			}
			blocks++
			if !strings.Contains(examples.String(), unindented(b.text)) {
				t.Errorf("%s: no example has\n%s", page, b.text)
			}
		}
	}
	if blocks == 0 {
		t.Error("no page shows a part of an example")
	}
}

func unindented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimLeft(line, "\t"))
	}
	return b.String()
}

// TestSteps: a page is parsed into commands and the lines that they must print.
func TestSteps(t *testing.T) {
	const page = "```sh\na\nb # c\n```\n```\nnot run\n```\n```go\nx := 1\n```\n```go\n// f.go\n\npackage f\n```\n" +
		"```console\n$ one \\\n    two\nout\n\n… more\n$ echo $?\n1\n```\n"
	want := []step{
		{command: "a"}, {command: "b # c"}, {command: "cat > f.go <<'END OF FILE'\n// f.go\n\npackage f\nEND OF FILE"},
		{command: "one \\\n    two", shows: []string{"out", "… more"}}, {command: "echo $?", shows: []string{"1"}},
	}
	if got := fmt.Sprintf("%q", stepsOf(page)); got != fmt.Sprintf("%q", want) {
		t.Errorf("steps %s, want %q", got, want)
	}
	for _, c := range []struct {
		shows []string
		text  string
		ok    bool
	}{
		{nil, "anything", true},
		{[]string{"b", "d"}, "a\nb\nc\nd\n", true},
		{[]string{"d", "b"}, "a\nb\nc\nd\n", false},
		{[]string{"b"}, "ab\n", false},
		{[]string{"job_… took …s"}, "job_1 took 2.5s\n", true},
		{[]string{"job_… took …s"}, "job_1 took 2.5m\n", false},
		{[]string{"a.c"}, "abc\n", false},
		{[]string{"…", "a", "…", "b", "…"}, "a\nb\n", true},
		{[]string{"b\t1"}, "b\t1\n", true},
	} {
		if got := firstMissing(c.shows, c.text) == ""; got != c.ok {
			t.Errorf("%q shows %q: %v", c.text, c.shows, got)
		}
	}
}

type block struct{ language, text string }

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

func blocksOf(page string) (all []block) {
	for _, match := range fence.FindAllStringSubmatch(page, -1) {
		all = append(all, block{match[1], match[2]})
	}
	return all
}

// step is a command and the lines that it must print.
type step struct {
	command string
	shows   []string
}

var fileName = regexp.MustCompile(`^// ([\w./-]+\.go)\n`)

func stepsOf(page string) (steps []step) {
	for _, b := range blocksOf(page) {
		switch name := fileName.FindStringSubmatch(b.text); {
		case b.language == "go" && name != nil:
			steps = append(steps, step{command: "cat > " + name[1] + " <<'END OF FILE'\n" + b.text + "END OF FILE"})
		case b.language == "sh":
			for line := range strings.Lines(b.text) {
				steps = append(steps, step{command: strings.TrimSpace(line)})
			}
		case b.language == "console":
			steps = append(steps, session(b.text)...)
		}
	}
	return steps
}

func session(text string) (steps []step) {
	continued := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		command, ok := strings.CutPrefix(line, "$ ")
		switch last := len(steps) - 1; {
		case continued:
			steps[last].command += "\n" + line
		case ok:
			steps = append(steps, step{command: command})
		case last >= 0 && strings.TrimSpace(line) != "":
			steps[last].shows = append(steps[last].shows, line)
			continue
		}
		continued = strings.HasSuffix(line, `\`)
	}
	return steps
}

// firstMissing returns the first wanted line that a text lacks.
func firstMissing(shows []string, text string) string {
	lines := strings.Split(text, "\n")
	for _, want := range shows {
		if strings.TrimSpace(want) == "…" {
			continue
		}
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(want)), "…", ".*") + "$")
		for {
			if len(lines) == 0 {
				return want
			}
			line := strings.TrimSpace(lines[0])
			lines = lines[1:]
			if pattern.MatchString(line) {
				break
			}
		}
	}
	return ""
}

// sandbox has the directories and settings that the shells of all pages share.
type sandbox struct {
	root, home, tmp, bin string
	address              string // of daemons
	replacer             *strings.Replacer
	env                  []string
}

func newSandbox(t *testing.T) *sandbox {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	pid := os.Getpid()
	box := &sandbox{root: root, home: dir + "/home", tmp: dir + "/tmp", bin: dir + "/bin",
		// All of 127.0.0.0/8 is loopback; an address of its own avoids other daemons' ports.
		address: fmt.Sprintf("127.%d.%d.%d", 1+pid>>16%254, pid>>8&255, 1+pid&127)}
	box.replacer = strings.NewReplacer("/tmp/", box.tmp+"/", "127.0.0.1", box.address)
	for _, made := range []string{box.home, box.tmp, box.bin} {
		if err := os.Mkdir(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(root, box.home+"/quern"); err != nil {
		t.Fatal(err)
	}
	box.env = append(os.Environ(), "HOME="+box.home, "TMPDIR="+box.tmp, "GOBIN="+box.bin, "PATH="+box.home+":"+box.bin+":"+os.Getenv("PATH"), "QUERN_JOBTRACKER=", "XDG_STATE_HOME=",
		"GONOSUMDB=*") // the repository's go.sum has verified the modules in the cache
	// These depend on the home directory by default.
	names := []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOENV", "GOFLAGS"}
	values, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range strings.Split(strings.TrimSuffix(string(values), "\n"), "\n") {
		if names[i] == "GOFLAGS" {
			// Results do not depend on directories, so the build cache has them. Links take two thirds of the time.
			value += " -trimpath '-ldflags=-s -w'"
		}
		box.env = append(box.env, names[i]+"="+value)
	}
	// The daemons have the default ports, on this test's address.
	for daemon, flags := range map[string]string{
		"jobtracker":  "-listen 127.0.0.1:7400 -raft 127.0.0.1:7401 -gossip 127.0.0.1:7402",
		"tasktracker": "-listen 127.0.0.1:7410 -gossip 127.0.0.1:7412",
	} {
		script := fmt.Sprintf("#!/bin/sh\nexec %s/%s %s \"$@\"\n", box.bin, daemon, box.replacer.Replace(flags))
		if err := os.WriteFile(filepath.Join(box.home, daemon), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return box
}

// shell is a bash that runs one command after the other.
type shell struct {
	replacer *strings.Replacer
	stdin    io.Writer
	lines    chan string // of its standard output and standard error
}

func (box *sandbox) shell(t *testing.T) *shell {
	cmd := exec.Command("bash")
	cmd.Dir, cmd.Env = box.home+"/quern", append(box.env, "PWD="+box.home+"/quern")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	s := &shell{replacer: box.replacer, stdin: stdin, lines: make(chan string, 1<<16)}
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(s.lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			s.lines <- line
		}
	})
	t.Cleanup(func() {
		stdin.Close()
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil { // daemons that a failed page has left
			t.Error(err)
		}
		cmd.Wait()
		reading.Wait() // ends when all processes of the page have ended
		out.Close()
	})
	return s
}

// done is printed before a command's exit status.
const done = "--- the command has ended: "

// do runs a step and checks that its output has the lines on the page.
func (s *shell) do(t *testing.T, do step, mayFail bool) {
	t.Helper()
	shows := strings.Split(s.replacer.Replace(strings.Join(do.shows, "\n")), "\n")
	if len(do.shows) == 0 {
		shows = nil
	}
	timeout := time.After(deadline)
	for {
		status, printed := s.run(t, do, timeout)
		lacks := firstMissing(shows, printed)
		for lacks != "" && strings.HasSuffix(do.command, "&") {
			printed += s.line(t, do, timeout)
			lacks = firstMissing(shows, printed)
		}
		switch {
		case lacks != "" && strings.Contains(do.command, "# repeat until"):
			continue
		case status != "0" && !mayFail:
			t.Fatalf("$ %s\n%sexit status %s", do.command, printed, status)
		case lacks != "":
			t.Fatalf("$ %s\n%sThe page shows: %s", do.command, printed, lacks)
		}
		return
	}
}

// run runs a command to its end, or into the background.
func (s *shell) run(t *testing.T, do step, timeout <-chan time.Time) (status, printed string) {
	t.Helper()
	command := s.replacer.Replace(do.command)
	// Keep the status for "echo $?".
	if _, err := fmt.Fprintf(s.stdin, "{ %s\n} </dev/null; s=$?; echo '%s'$s; (exit $s)\n", command, done); err != nil {
		t.Fatalf("$ %s\n%v", do.command, err)
	}
	var all bytes.Buffer
	for {
		line := s.line(t, do, timeout)
		before, status, ended := strings.Cut(line, done)
		all.WriteString(before)
		if ended {
			return strings.TrimSpace(status), all.String()
		}
	}
}

// line returns the next line of the shell's output.
func (s *shell) line(t *testing.T, do step, timeout <-chan time.Time) string {
	t.Helper()
	select {
	case line, ok := <-s.lines:
		if !ok {
			t.Fatalf("$ %s\nthe shell has ended", do.command)
		}
		return line
	case <-timeout:
		t.Fatalf("$ %s\nis not done after %v", do.command, deadline)
	}
	return ""
}
