package attemptlog

import (
	"bytes"
	"io"
)

// What is kept of an attempt's stderr in its report.
const (
	lastLines = 20
	lastBytes = 4 << 10
)

// LastLines is the end of the last of the files that has anything in it.
func LastLines(files []string) string {
	for i := len(files) - 1; i >= 0; i-- {
		if text := tail(files[i]); len(text) > 0 {
			return string(text)
		}
	}
	return ""
}

// tail reads the last lines of a file, as far as they can be read. A line that is
// cut at its beginning counts, unless a whole one follows.
func tail(file string) []byte {
	log, err := Open(file)
	if err != nil {
		return nil
	}
	defer log.Close()
	// One byte more tells whether the first line is whole.
	from := max(log.size-lastBytes-1, 0)
	text, err := io.ReadAll(io.NewSectionReader(log, from, lastBytes+1))
	if err != nil {
		return nil
	}
	text = bytes.TrimRight(text, "\n")
	if from > 0 {
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
