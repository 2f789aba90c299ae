package attemptlog

import (
	"bufio"
	"io"
	"slices"
	"strings"
)

// Limits of a crash message in a report.
const (
	crashLines = 20 // lines of its text
	causeBytes = 1000
)

// Dump begins the goroutines that a Go program writes after SIGQUIT.
const Dump = "SIGQUIT: "

// crash is the crash message of a Go program on stderr: an unrecovered panic or a fatal
// error.
type crash struct {
	cause string // first lines, joined, as "fatal error: runtime: out of memory"
	text  string // first lines and the trace of the first goroutine, without frames of package runtime
}

// FindCrash returns the last crash in the last log with a crash: its cause in a line, and
// a longer text. Without a crash, both are empty.
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

// beginsCrash reports whether a line can be the first line of a crash.
func beginsCrash(line string) bool {
	word, _, ok := strings.Cut(line, ": ")
	return ok && (word == "panic" || word == "fatal error" || strings.HasPrefix(word, "SIG") && !strings.Contains(word, " "))
}

// mayPrecedeCrash reports whether the Go runtime prints such a line before a crash.
func mayPrecedeCrash(line string) bool {
	return strings.HasPrefix(line, "runtime: ") || strings.HasPrefix(line, "runtime/cgo: ") || strings.HasPrefix(line, "unexpected fault address ")
}

// beginsTrace reports whether a line begins a stack trace.
func beginsTrace(line string) bool {
	return strings.HasPrefix(line, "runtime stack:") || strings.HasPrefix(line, "goroutine ") && strings.Contains(line, "[")
}

// maxPrelude limits the lines from the first line of a crash to its trace.
const maxPrelude = 40

// findCrash returns the last crash in a log. A job may print a line like a crash's first
// line, so only lines with a stack trace are a crash.
func findCrash(log io.Reader) (last crash) {
	var lines []string                                  // of a possible crash, up to its trace
	var frames []string                                 // of the first goroutine
	hasFirstLine, hasTrace, skip := false, false, false // skip: the next line belongs to a frame of the runtime
	finish := func() {
		if hasTrace {
			text := append(lines, frames...)
			last = crash{cause: causeOf(lines), text: cut(strings.Join(text[:min(len(text), crashLines)], "\n"), lastBytes)}
		}
	}
	const before, within, after = 0, 1, 2
	state := before // of the current line, relative to the first goroutine's frames
	for line := range linesOf(log) {
		begins := beginsCrash(line)
		switch {
		case begins && (hasFirstLine || len(lines) == 0), len(lines) == 0 && mayPrecedeCrash(line):
			finish()
			lines, frames, hasFirstLine, hasTrace, state = []string{line}, nil, begins, false, before
		case len(lines) == 0:
		case begins && !hasTrace:
			lines, hasFirstLine = append(lines, line), true
		case beginsTrace(line):
			hasTrace = true
			switch {
			case state == within:
				state = after
			case state == before && strings.HasPrefix(line, "goroutine "):
				state = within
				frames = append(frames, line)
			}
		case !hasTrace && len(lines) < maxPrelude:
			lines = append(lines, line)
		case !hasTrace:
			lines, hasFirstLine = nil, false
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
	finish()
	return last
}

// causeOf joins the first lines of a crash, up to an empty one.
func causeOf(lines []string) string {
	var parts []string
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return cut(strings.Join(parts, "; "), causeBytes)
}

// cut shortens a text to at most n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// maxLine is the number of bytes that are used of a line.
const maxLine = 1 << 10

// linesOf yields the lines of a text, each cut to maxLine.
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
