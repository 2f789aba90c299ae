package attemptlog

import (
	"bufio"
	"io"
	"slices"
	"strings"
)

// What is kept of the end of a Go program that the runtime has ended.
const (
	crashLines = 20 // of its text
	causeBytes = 1000
)

// crash is how a Go program ended, as its runtime tells on stderr: by a panic that
// nothing recovered, or an error after which it could not go on.
type crash struct {
	cause string // first lines, in one: "fatal error: runtime: out of memory"
	text  string // the same, then where it was: frames of the first goroutine, but for the runtime's
}

// FindCrash finds how the program ended that wrote the last of some logs in which a
// crash is: its cause in a line, and more of what its runtime says. Both are empty if
// there is none.
func FindCrash(files []string) (cause, text string) {
	for _, file := range slices.Backward(files) {
		log, err := Open(file)
		if err != nil {
			continue
		}
		found := findCrash(io.NewSectionReader(log, 0, log.size))
		log.Close()
		if found.cause != "" {
			return found.cause, found.text
		}
	}
	return "", ""
}

// beginsCrash says whether a line is the first of a crash.
func beginsCrash(line string) bool {
	what, _, ok := strings.Cut(line, ": ")
	return ok && (what == "panic" || what == "fatal error" || strings.HasPrefix(what, "SIG") && !strings.Contains(what, " "))
}

// mayPrecedeCrash says whether a line may come before the first of a crash.
func mayPrecedeCrash(line string) bool {
	return strings.HasPrefix(line, "runtime: ") || strings.HasPrefix(line, "runtime/cgo: ") || strings.HasPrefix(line, "unexpected fault address ")
}

// tellsWhere says whether a line is followed by where a crash was.
func beginsTrace(line string) bool {
	return strings.HasPrefix(line, "runtime stack:") || strings.HasPrefix(line, "goroutine ") && strings.Contains(line, "[")
}

// maxPrelude bounds the lines from the first of a crash to where it was.
const maxPrelude = 40

// findCrash finds the last crash in a log. Programs may say what looks like the first
// lines of one; where it was makes it one. Its cause is empty if there is none.
func findCrash(log io.Reader) (last crash) {
	var lines []string  // of a crash that may be one, up to where it was
	var frames []string // of its first goroutine, once that has come
	begun, traced, skip := false, false, false
	keep := func() {
		if traced {
			text := append(lines, frames...)
			last = crash{cause: causeOf(lines), text: cut(strings.Join(text[:min(len(text), crashLines)], "\n"), lastBytes)}
		}
	}
	const before, within, after = 0, 1, 2
	state := before // of the first goroutine's frames
	for line := range linesOf(log) {
		begins := beginsCrash(line)
		switch {
		case begins && (begun || len(lines) == 0), len(lines) == 0 && mayPrecedeCrash(line):
			keep()
			lines, frames, begun, traced, state = []string{line}, nil, begins, false, before
		case len(lines) == 0:
		case begins && !traced:
			lines, begun = append(lines, line), true
		case beginsTrace(line):
			traced = true
			switch {
			case state == within:
				state = after
			case state == before && strings.HasPrefix(line, "goroutine "):
				state = within
				frames = append(frames, line)
			}
		case !traced && len(lines) < maxPrelude:
			lines = append(lines, line)
		case !traced:
			lines, begun = nil, false
		case state == within && line == "":
			state = after
		case state == within && !strings.HasPrefix(line, "\t"):
			if skip = strings.HasPrefix(line, "runtime.") || strings.HasPrefix(line, "panic("); !skip {
				frames = append(frames, line)
			}
		case state == within && !skip && len(frames) < crashLines:
			frames = append(frames, line)
		}
	}
	keep()
	return last
}

// causeOf is what the first lines of a crash say, up to an empty one.
func causeOf(lines []string) string {
	var parts []string
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return cut(strings.Join(parts, "; "), causeBytes)
}

// cut cuts a text to at most n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// longLine bounds what is looked at of a line.
const maxLine = 1 << 10

// linesOf yields the lines of a text, without their ends, each cut to longLine.
func linesOf(text io.Reader) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		in := bufio.NewReaderSize(text, maxLine)
		for {
			line, cut, err := in.ReadLine()
			if err != nil || !yield(string(line)) {
				return
			}
			for cut && err == nil {
				_, cut, err = in.ReadLine()
			}
		}
	}
}
