// Package shelltable is for tests: it runs tables of commands of Hadoop's file system shell, and compares the answers
// with Hadoop's own, which integration/compat records with Shell.java. A table has lines:
//
//	dir NAME                        makes a directory
//	file NAME CONTENT               makes a file; \n and \t in CONTENT are a line feed and a tab
//	copy NAME SOURCE                copies a file of the repository
//	input TEXT                      standard input of the next command
//	$ COMMAND                       a command, its words separated by blanks
//	> LINE, ! LINE, = CODE          its output, messages and exit code; a \ follows a line without its end
//
// Each file is a minute newer than the one before. In commands and answers /top is the working directory, and
// hdfs://nn the default file system. In answers, owners, sizes of directories, and times of today are replaced, and
// more than 60 lines by a hash. In those of -df, numbers are N and blanks are single ones. A byte of zero is \0.
package shelltable

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Exec runs a command, and returns its output, messages and exit code.
type Exec func(args []string, stdin string) (stdout, stderr string, code int)

// Run runs the table of a file in a new directory. repository is the top of the repository, defaultFS the URL of the
// default file system, or empty. It returns the number of commands.
func Run(t *testing.T, file, repository, defaultFS string, exec Exec) (commands int) {
	t.Helper()
	table, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if repository, err = filepath.Abs(repository); err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0o022)) // the table has the modes of files
	t.Chdir(t.TempDir())
	w := &world{t: t, repository: repository, defaultFS: defaultFS, exec: exec}
	if w.top, err = os.Getwd(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(table), "\n")
	for at := 0; at < len(lines); {
		text := lines[at]
		at++
		command, ok := strings.CutPrefix(text, "$ ")
		if !ok {
			w.setUp(text)
			continue
		}
		begin := at
		for at < len(lines) && len(lines[at]) > 1 && strings.Contains(">!=", lines[at][:1]) {
			at++
		}
		commands++
		if got, want := w.run(command), strings.Join(lines[begin:at], "\n"); got != want {
			t.Errorf("line %d: %s\n%s\nHadoop:\n%s", begin, command, got, want)
		}
	}
	return commands
}

// world is the state of a table's commands.
type world struct {
	t                          *testing.T
	repository, top, defaultFS string
	exec                       Exec
	input                      string
	setups                     int
}

var unescape = strings.NewReplacer(`\n`, "\n", `\t`, "\t")

// setUp obeys a line of the table that is no command.
func (w *world) setUp(line string) {
	words := strings.SplitN(line, " ", 3)
	switch words[0] {
	case "dir":
		w.must(os.MkdirAll(words[1], 0o755))
		w.date(words[1])
	case "file":
		w.put(words[1], []byte(unescape.Replace(words[2])))
	case "copy":
		content, err := os.ReadFile(filepath.Join(w.repository, words[2]))
		w.must(err)
		w.put(words[1], content)
	case "input":
		w.input = unescape.Replace(strings.TrimPrefix(line, "input "))
	}
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
}

func (w *world) put(name string, content []byte) {
	w.must(os.MkdirAll(filepath.Dir(name), 0o755))
	w.must(os.WriteFile(name, content, 0o644))
	w.date(name)
}

func (w *world) date(name string) {
	at := time.Date(2001, 2, 3, 4, 5, 0, 0, time.UTC).Add(time.Duration(w.setups) * time.Minute)
	w.setups++
	w.must(os.Chtimes(name, at, at))
}

// run runs a command, and returns its answer in the form of the table.
func (w *world) run(command string) string {
	command = strings.ReplaceAll(command, "/top", w.top)
	if w.defaultFS != "" {
		command = strings.ReplaceAll(command, "hdfs://nn", w.defaultFS)
	}
	stdout, stderr, code := w.exec(strings.Split(command, " "), w.input)
	w.input = ""
	name, _, _ := strings.Cut(command, " ")
	return w.marked("> ", stdout, name) + w.marked("! ", stderr, name) + fmt.Sprintf("= %d", code)
}

var (
	owners  = regexp.MustCompile(`^([d-][rwxtT-]{9}[+ ] +\S+) \S+ +\S+ `)
	dirSize = regexp.MustCompile(`^(d.*OWNER GROUP) {5} *[0-9.]+( [KMG])? `)
	amount  = regexp.MustCompile(`\b\d+(\.\d+)?( [KMGTPE])?\b`)
	blanks  = regexp.MustCompile(` +`)
	present = regexp.MustCompile(`20(?:0[02-9]|[1-9]\d)-\d\d-\d\d \d\d:\d\d(:\d\d)?`)
)

// marked replaces what differs from machine to machine, as Shell.java does. A usage and what follows are left out.
func (w *world) marked(mark, text, command string) string {
	if text == "" {
		return ""
	}
	whole := strings.HasSuffix(text, "\n")
	text = strings.ReplaceAll(strings.ReplaceAll(text, w.top, "/top"), "\x00", `\0`)
	if w.defaultFS != "" {
		text = strings.ReplaceAll(text, w.defaultFS, "hdfs://nn")
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 60 {
		return fmt.Sprintf("%s%d lines, SHA-256 %x\n", mark, len(lines), sha256.Sum256([]byte(text)))
	}
	var b strings.Builder
	for i, line := range lines {
		if strings.HasPrefix(line, "Usage: ") {
			break
		}
		line = dirSize.ReplaceAllString(owners.ReplaceAllString(line, "$1 OWNER GROUP "), "$1 SIZE ")
		if command == "-df" {
			line = amount.ReplaceAllString(blanks.ReplaceAllString(line, " "), "N")
		}
		b.WriteString(mark + present.ReplaceAllString(line, "NOW"))
		if i == len(lines)-1 && !whole {
			b.WriteString(`\`)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
