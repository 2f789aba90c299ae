package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quernmr/quern/client"
	"github.com/quernmr/quern/mapreduce/streaming/streamtest"
)

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
	const testdata = "../../mapreduce/streaming/testdata/cases"
	names, err := filepath.Glob(testdata + "/*.txt")
	if err != nil || len(names) < 30 {
		t.Fatalf("%s: %d cases, %v", testdata, len(names), err)
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
			dir := t.TempDir()
			if err := c.Write(dir); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"-quiet", "-D", "mapreduce.map.maxattempts=1", "-D", "mapreduce.reduce.maxattempts=1"}, c.Args...)
			code, stderr := streamed(t, dir, args...)
			if code != c.Exit {
				t.Errorf("exit code %d, Hadoop's is %d: %s", code, c.Exit, stderr)
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
