package attemptlog

import (
	"bytes"
	"io"
)

// Limits of an attempt's stderr in its report.
const (
	lastLines = 20
	lastBytes = 4 << 10
)

// LastLines returns the end of the last file that is not empty.
func LastLines(files []string) string {
	for i := len(files) - 1; i >= 0; i-- {
		if text := tail(files[i]); len(text) > 0 {
			return string(text)
		}
	}
	return ""
}

// tail returns the last lines of a file. It drops a cut first line if a complete line
// follows.
func tail(file string) []byte {
	log, err := Open(file)
	if err != nil {
		return nil
	}
	defer log.Close()
	// One more byte shows whether the first line is complete.
	start := max(log.size-lastBytes-1, 0)
	text, err := io.ReadAll(io.NewSectionReader(log, start, lastBytes+1))
	if err != nil {
		return nil
	}
	text = bytes.TrimRight(text, "\n")
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
