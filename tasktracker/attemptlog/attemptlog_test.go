package attemptlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func readWholeLog(t *testing.T, name string) string {
	t.Helper()
	log, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	text, err := io.ReadAll(io.NewSectionReader(log, 0, log.size))
	if err != nil || int64(len(text)) != log.size {
		t.Fatalf("%d bytes of %d: %v", len(text), log.size, err)
	}
	return string(text)
}

var missingBytes = regexp.MustCompile(`\n\[(\d+) bytes were left out here: [^\n]*\]\n`)

// checkLog compares a log with all bytes written to it.
func checkLog(t *testing.T, got, all string, limit int) {
	t.Helper()
	at := missingBytes.FindStringSubmatchIndex(got)
	if at == nil {
		if got != all {
			t.Errorf("%d bytes, want all %d", len(got), len(all))
		}
		return
	}
	missing, _ := strconv.Atoi(got[at[2]:at[3]])
	first, last := got[:at[0]], got[at[1]:]
	switch {
	case len(first)+missing+len(last) != len(all):
		t.Errorf("a first part of %d bytes, %d missing, a last part of %d, of %d written", len(first), missing, len(last), len(all))
	case !strings.HasPrefix(all, first) || !strings.HasSuffix(all, last):
		t.Error("the parts have wrong bytes")
	case len(first) < limit/2 || len(last) < limit/4 || len(first)+len(last) > limit:
		t.Errorf("parts of %d and %d bytes, the limit is %d", len(first), len(last), limit)
	}
}

// TestLogWriter: for all sizes and pieces, the first and the last part are kept.
func TestLogWriter(t *testing.T) {
	const limit = 400
	var all bytes.Buffer
	for n := range 400 {
		fmt.Fprintln(&all, n)
	}
	for _, total := range []int{0, 1, 199, 200, 201, 299, 300, 301, 399, 400, 401, 500, 501, 777, 1000, all.Len()} {
		for _, piece := range []int{1, 7, 100, 1000} {
			name := filepath.Join(t.TempDir(), "stderr")
			log, err := newWriter(name, limit)
			if err != nil {
				t.Fatal(err)
			}
			for rest := all.Bytes()[:total]; len(rest) > 0; {
				n, err := log.Write(rest[:min(piece, len(rest))])
				if err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			checkLog(t, readWholeLog(t, name), all.String()[:total], limit)
			text := readWholeLog(t, name)
			whole, err := Open(name)
			if err != nil {
				t.Fatal(err)
			}
			for off := range len(text) + 1 { // every range
				p := make([]byte, 130)
				n, err := whole.ReadAt(p, int64(off))
				if want := text[off:min(off+130, len(text))]; string(p[:n]) != want || (n < 130) != (err == io.EOF) {
					t.Fatalf("%d bytes at %d: %q, %v, want %q", total, off, p[:n], err, want)
				}
			}
			whole.Close()
		}
	}
}

// TestLeftoverWriters: a leftover process can still write to the log of an ended attempt.
// The log stays within its limit.
func TestLeftoverWriters(t *testing.T) {
	const limit = 4000
	dir := t.TempDir()
	logs, err := newPipes(filepath.Join(dir, "pipes"))
	if err == nil {
		err = logs.switchTo(dir, 2*limit, func(err error) { t.Error(err) })
	}
	if err != nil {
		t.Fatal(err)
	}
	var all Captures
	all.add(logs.captures...)
	leftover, err := os.OpenFile(filepath.Join(logs.dir, "stderr"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	logs.drain()
	logs.release()
	text := strings.Repeat("much ado about nothing\n", 100_000)
	if _, err := io.WriteString(leftover, text); err != nil {
		t.Fatal(err)
	}
	logs.drain()
	checkLog(t, readWholeLog(t, filepath.Join(dir, "stderr")), text, limit)
	all.Stop()
	leftover.Close()
}

// TestLogOnFullDisk: a failed write of a log is reported once, and the process that writes
// to the pipe does not wait.
func TestLogOnFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reported := make(chan error, 100)
	c, err := captureTo(from, "/dev/full", 1000, func(err error) { reported <- err })
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { c.run(); close(ended) }()
	if _, err := io.WriteString(to, strings.Repeat("x", 1<<20)); err != nil {
		t.Fatal(err)
	}
	to.Close()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("waited too long for the end of the pipe")
	}
	if err := <-reported; !errors.Is(err, syscall.ENOSPC) || len(reported) > 0 {
		t.Errorf("reported %v and %d more", err, len(reported))
	}
}

// TestWorkerOutput: the output of a worker outside of attempts has half the limit of an attempt's
// logs.
func TestWorkerOutput(t *testing.T) {
	const limit = 4000
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	logs, err := new(Captures).Start(from, dir, 2*limit)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("much ado about nothing\n", 10_000)
	if _, err := io.WriteString(to, text); err != nil {
		t.Fatal(err)
	}
	to.Close()
	logs.End()
	checkLog(t, readWholeLog(t, filepath.Join(dir, "stderr")), text, limit)
}

// TestFailedLogs: if a log of an attempt cannot be written, both its logs free their space.
func TestFailedLogs(t *testing.T) {
	const limit = 400_000 // of both; a log's first part is a quarter of it
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "stderr+100000"), 0o777); err != nil { // instead of its second part
		t.Fatal(err)
	}
	logs, err := newPipes(filepath.Join(dir, "pipes"))
	reported := make(chan error, 100)
	if err == nil {
		err = logs.switchTo(dir, limit, func(err error) { reported <- err })
	}
	if err != nil {
		t.Fatal(err)
	}
	var all Captures
	all.add(logs.captures...)
	defer all.Stop()
	for name, size := range map[string]int{"stdout": 90_000, "stderr": 200_000} {
		pipe, err := os.OpenFile(filepath.Join(logs.dir, name), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer pipe.Close()
		if _, err := io.WriteString(pipe, strings.Repeat("x", size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-reported; !errors.Is(err, syscall.EISDIR) {
		t.Errorf("reported %v", err)
	}
	check := func(name string) {
		t.Helper()
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() != minLog {
			t.Errorf("%s has %d bytes, want %d; %v", name, info.Size(), minLog, err)
		}
	}
	if !logs.captures[1].hasWriteFailed() { // this waits until the capture has handled the error
		t.Error("the write of stderr has not failed")
	}
	check("stderr")
	logs.drain()
	check("stdout")
	check("stderr")
	if len(reported) > 0 {
		t.Errorf("reported once more: %v", <-reported)
	}
}
