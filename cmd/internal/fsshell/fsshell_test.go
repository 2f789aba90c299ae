package fsshell

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/dfs/builtin"
	"github.com/quernmr/quern/internal/shelltable"
)

// answer runs a command over the file systems of this process.
func answer(t *testing.T, args []string, stdin string) (stdout, stderr string, code int) {
	t.Helper()
	var out, messages bytes.Buffer
	s := Shell{Program: "hadoop fs", Files: builtin.FileSystems(), Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &messages, Location: time.UTC}
	code, err := s.Run(context.Background(), args)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), messages.String(), code
}

// TestCommandsOfHadoop runs the commands of testdata/commands.txt over local files, and compares the answers with
// Hadoop's.
func TestCommandsOfHadoop(t *testing.T) {
	n := shelltable.Run(t, "testdata/commands.txt", "../../..", "", func(args []string, stdin string) (string, string, int) {
		return answer(t, args, stdin)
	})
	if n < 200 {
		t.Errorf("%d commands: the table is cut short", n)
	}
}

// TestRefused: what differs from Hadoop is refused with a message that says why.
func TestRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{"words.bz2": "text\n", "a.xz": "x", "records": "Obj\x01", "table": "PAR1", "later.seq": "SEQ\x07"} {
		if _, messages, code := answer(t, []string{"-put", "-", name}, content); code != 0 {
			t.Fatal(messages)
		}
	}
	for _, c := range []struct {
		command, want string
		code          int
	}{
		{"-text words.bz2", "text: words.bz2: bzip2 data at offset 0: other data than the file's name says: it begins with \"text\"; rename the file by what it has", 1},
		{"-text a.xz", "text: a.xz: this is XZ data, which -text does not decode", 1},
		{"-text records", "text: records: Avro file at offset 0: header in the first 4 bytes: it ends too early", 1},
		{"-text table", "text: table: Parquet file at offset 0: not a Parquet file that can be read: it has 4 bytes", 1},
		{"-text later.seq", "text: later.seq: SequenceFile at offset 4: not a SequenceFile that can be read: its version is 7, not 4 to 6", 1},
		{"-rm -r /", "rm: `/': this is the root directory, which hadoop fs does not remove", 1},
		{"-rm -r file:///", "rm: `file:///': this is the root directory, which hadoop fs does not remove", 1},
		{"-put -l words.bz2 x", "-put: hadoop fs does not support option -l of Hadoop", 255},
		{"-get -crc words.bz2 x", "-get: hadoop fs does not support option -crc of Hadoop", 255},
		{"-cp -pax words.bz2 x", "-cp: hadoop fs does not copy ACLs and extended attributes, which the option -pax of Hadoop asks for: use -p", 255},
		{"-getfacl words.bz2", "-getfacl: hadoop fs does not have this command of Hadoop", 255},
		{"-appendToFile a.xz words.bz2", "-appendToFile: words.bz2: this file system does not change files, neither for Hadoop", 255},
		{"-truncate 1 words.bz2", "-truncate: words.bz2: this file system does not change files, neither for Hadoop", 255},
		{"-setrep -w 2 words.bz2", "setrep: `words.bz2': This file system has one replica of a file, so -w would never end", 1},
		{"-find . -name", "-find: -name needs a pattern", 255},
		{"-find . -name [", "-find: -name [: [ without ]", 255},
		{"-find . -a -name x", "-find: -a needs an expression on both sides", 255},
		{"-find . -name x -and", "-find: -and needs an expression on both sides", 255},
		{"-find . -name x -a -a -name y", "-find: -a needs an expression on both sides", 255},
		{"-put hdfs://n/x y", "put: hdfs://n/x is not a path of the local file system", 1},
		{"-tail -s x words.bz2", "-tail: -s needs a number of milliseconds, got \"x\"", 255},
	} {
		_, messages, code := answer(t, strings.Split(c.command, " "), "")
		if line, _, _ := strings.Cut(messages, "\n"); line != c.want || code != c.code {
			t.Errorf("%s: exit code %d, %q", c.command, code, line)
		}
	}
}

// TestOntoItself: a file that is its own target keeps its content.
func TestOntoItself(t *testing.T) {
	t.Chdir(t.TempDir())
	answer(t, []string{"-mkdir", "d"}, "")
	answer(t, []string{"-put", "-", "d/a"}, "text\n")
	for _, command := range []string{"-cp -f d/a d/a", "-cp -f -d d/a d/a", "-cp -f -d d/a d", "-put -f -d d/a d/a", "-get -f d/a d", "-getmerge d d/a"} {
		_, messages, code := answer(t, strings.Split(command, " "), "")
		if content, err := os.ReadFile("d/a"); string(content) != "text\n" || err != nil || code != exitFailed || !strings.Contains(messages, "d/a") {
			t.Errorf("%s: exit code %d, %q; the file has %q, %v", command, code, messages, content, err)
		}
	}
}

// TestUnknownState: a path that cannot be looked up gives one message, which does not say that it is missing.
func TestUnknownState(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Symlink("loop", "loop"); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"-rm loop", "-rm -f loop", "-ls loop", "-cat loop", "-mkdir loop"} {
		_, messages, code := answer(t, strings.Split(command, " "), "")
		if strings.Count(messages, "\n") != 1 || !strings.Contains(messages, "too many levels of symbolic links") || code != exitFailed {
			t.Errorf("%s: exit code %d, %q", command, code, messages)
		}
	}
}

// TestTailFollows prints what is appended, until it is interrupted.
func TestTailFollows(t *testing.T) {
	t.Chdir(t.TempDir())
	answer(t, []string{"-put", "-", "log"}, "one\n")
	ctx, cancel := context.WithCancel(context.Background())
	printed := make(chan string, 16)
	s := Shell{Program: "hadoop fs", Files: builtin.FileSystems(), Stdout: sender(printed), Stderr: sender(printed), Location: time.UTC}
	ended := make(chan error)
	go func() {
		_, err := s.Run(ctx, []string{"-tail", "-f", "-s", "1", "log"})
		ended <- err
	}()
	if got := <-printed; got != "one\n" {
		t.Fatalf("%q", got)
	}
	appended, err := os.OpenFile("log", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer appended.Close()
	if _, err := appended.WriteString("two\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-printed; got != "two\n" {
		t.Fatalf("%q", got)
	}
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
}

// sender sends what is written.
type sender chan string

func (s sender) Write(p []byte) (int, error) { s <- string(p); return len(p), nil }

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1023: "1023", 1024: "1 K", 1536: "1.5 K", 1025: "1.0 K", 1280: "1.3 K", 1 << 20: "1 M", 1<<20 - 1: "1.0 M",
		5 << 30: "5 G", 1<<63 - 1: "8.0 E", 1<<60 + 1<<59: "1.5 E"} {
		if got := size(n, true); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
