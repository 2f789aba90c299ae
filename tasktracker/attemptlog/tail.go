package attemptlog

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

// Limits of an attempt's stdout and stderr together in its report.
const (
	lastLines = 20
	lastBytes = 4 << 10
)

// LastLines returns the end of the last file that is not empty, without the attempt's error: a
// worker writes that of a panic.
func LastLines(files []string, reported string) string {
	for i := len(files) - 1; i >= 0; i-- {
		if text := tail(files[i], reported); len(text) > 0 {
			return string(text)
		}
	}
	return ""
}

// tail returns the last lines of a file, without a reported error. It drops a cut first line if a
// complete line follows.
func tail(file, reported string) []byte {
	log, err := Open(file)
	if err != nil {
		return nil
	}
	defer log.Close()
	// One more byte shows whether the first line is complete.
	start := max(log.size-lastBytes-int64(len(reported))-1, 0)
	text, err := io.ReadAll(io.NewSectionReader(log, start, log.size-start))
	if err != nil {
		return nil
	}
	text = bytes.TrimRight(without(text, reported), "\n")
	if more := len(text) - lastBytes - 1; more > 0 {
		text, start = text[more:], start+int64(more)
	}
	if start > 0 {
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			text = text[end+1:]
		}
	}
	return end(text, lastLines, lastBytes)
}

// end returns the last lines of a text, of at most so many bytes.
func end(text []byte, maxLines, maxBytes int) []byte {
	for at, lines := len(text), 0; ; lines++ {
		if at = bytes.LastIndexByte(text[:at], '\n'); at < 0 {
			break
		}
		if lines == maxLines-1 {
			text = text[at+1:]
			break
		}
	}
	return text[max(len(text)-maxBytes, 0):]
}

// Labels of the parts of a report with stdout.
const (
	outputLabel = "last lines of standard output:\n"
	errorsLabel = "\nlast lines of standard error:\n"
)

// WithOutput puts the last lines of stdout before a text, which is the last lines of stderr or, if first is set, a crash
// message that matters most at its beginning. Both together keep the limits of one, and each may use what the other
// leaves of them. Without stdout it returns the text alone.
func WithOutput(output, text string, first bool) string {
	switch {
	case output == "":
		return text
	case text == "":
		return outputLabel + string(end([]byte(output), lastLines, lastBytes-len(outputLabel)))
	}
	room := lastBytes - len(outputLabel) - len(errorsLabel)
	lines := func(s string) int { return strings.Count(s, "\n") + 1 }
	outputLines, outputBytes := share(lines(output), lines(text), lastLines), share(len(output), len(text), room)
	output = string(end([]byte(output), outputLines, outputBytes))
	if left := room - len(output); !first {
		text = string(end([]byte(text), lastLines-lines(output), left))
	} else if len(text) > left {
		text = cut(text, left-len("…"))
	}
	return outputLabel + output + errorsLabel + text
}

// share returns how much of a limit one of two gets: what it wants, if the other gets half or what it wants.
func share(want, other, limit int) int { return min(want, limit-min(other, limit/2)) }

// without removes the last copy of a reported error from a log. The report may have more text at its end.
func without(log []byte, reported string) []byte {
	first, _, more := strings.Cut(reported, "\n")
	at := bytes.LastIndex(log, []byte(first+"\n"))
	if !more || at < 0 || at > 0 && log[at-1] != '\n' {
		return log
	}
	n := 0
	for n < min(len(log)-at, len(reported)) && log[at+n] == reported[n] {
		n++
	}
	return slices.Delete(log, at, at+n)
}
