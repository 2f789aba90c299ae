package attemptlog

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

// Limits of an attempt's stderr in its report.
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
	for at, lines := len(text), 0; ; lines++ {
		if at = bytes.LastIndexByte(text[:at], '\n'); at < 0 {
			break
		}
		if lines == lastLines-1 {
			text = text[at+1:]
			break
		}
	}
	return text[max(len(text)-lastBytes, 0):]
}

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
