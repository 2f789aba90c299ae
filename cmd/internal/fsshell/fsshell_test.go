package fsshell

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs/builtin"
)

// TestCommandsOfHadoop runs the commands of testdata/commands.txt over local files, and compares output, messages
// and exit codes with Hadoop's.
func TestCommandsOfHadoop(t *testing.T) {
	table, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	repository, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Umask(syscall.Umask(0o022))
	t.Chdir(t.TempDir())
	w := &world{t: t, repository: repository, shell: Shell{Program: "hadoop fs", Files: builtin.FileSystems(), Location: time.UTC}}
	if w.top, err = os.Getwd(); err != nil {
		t.Fatal(err)
	}
	commands, line := 0, 0
	lines := strings.Split(string(table), "\n")
	for line < len(lines) {
		text := lines[line]
		line++
		command, ok := strings.CutPrefix(text, "$ ")
		if !ok {
			w.setUp(text)
			continue
		}
		var want []string
		for line < len(lines) && len(lines[line]) > 1 && strings.Contains(">!=", lines[line][:1]) {
			want = append(want, lines[line])
			line++
		}
		commands++
		if got := w.run(command); got != strings.Join(want, "\n") {
			t.Errorf("line %d: %s\n%s\nHadoop:\n%s", line, command, got, strings.Join(want, "\n"))
		}
	}
	if commands < 200 {
		t.Errorf("%d commands: the table is cut short", commands)
	}
}

// world is the state of the table's commands.
type world struct {
	t               *testing.T
	repository, top string
	shell           Shell
	input           string
	setups          int
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
	var stdout, stderr bytes.Buffer
	s := w.shell
	s.Stdin, s.Stdout, s.Stderr = strings.NewReader(w.input), &stdout, &stderr
	w.input = ""
	code, err := s.Run(context.Background(), strings.Split(strings.ReplaceAll(command, "/top", w.top), " "))
	w.must(err)
	return w.marked("> ", stdout.String()) + w.marked("! ", stderr.String()) + fmt.Sprintf("= %d", code)
}

var (
	owners  = regexp.MustCompile(`^([d-][rwxtT-]{9}[+ ] +\S+) \S+ +\S+ `)
	dirSize = regexp.MustCompile(`^(d.*OWNER GROUP) {5} *[0-9.]+( [KMG])? `)
	present = regexp.MustCompile(`20(?:0[02-9]|[1-9]\d)-\d\d-\d\d \d\d:\d\d(:\d\d)?`)
)

// marked replaces what differs from machine to machine, as Shell.java does.
func (w *world) marked(mark, text string) string {
	if text == "" {
		return ""
	}
	whole := strings.HasSuffix(text, "\n")
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, w.top, "/top"), "\n"), "\n")
	if len(lines) > 60 {
		return fmt.Sprintf("%s%d lines, SHA-256 %x\n", mark, len(lines), sha256.Sum256([]byte(text)))
	}
	var b strings.Builder
	for i, line := range lines {
		if strings.HasPrefix(line, "Usage: ") {
			break
		}
		line = dirSize.ReplaceAllString(owners.ReplaceAllString(line, "$1 OWNER GROUP "), "$1 SIZE ")
		b.WriteString(mark + present.ReplaceAllString(line, "NOW"))
		if i == len(lines)-1 && !whole {
			b.WriteString(`\`)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
