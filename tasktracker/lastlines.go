package tasktracker

import (
	"bytes"
	"io"
	"slices"

	"github.com/quernmr/quern/tasktracker/core"
)

// What is kept of an attempt's stderr in its report.
const (
	logLines = 20
	logBytes = 4 << 10
)

// readLog reads what is reported of the log of an attempt that failed: its end or, if its
// worker has crashed, what Go says of that.
func readLog(c core.ReadLog) core.LogRead {
	ev := core.LogRead{Attempt: c.Attempt, Text: lastLines(c.Files)}
	if !c.Crashed {
		return ev
	}
	ev.Limits = limitsInForce(c.Limit)
	for _, file := range slices.Backward(c.Files) {
		log, err := openLog(file)
		if err != nil {
			continue
		}
		found := findCrash(io.NewSectionReader(log, 0, log.size))
		log.Close()
		if found.cause != "" {
			ev.Cause, ev.Text = found.cause, found.text
			break
		}
	}
	return ev
}

// lastLines is the end of the last of the files that has anything in it.
func lastLines(files []string) string {
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
	log, err := openLog(file)
	if err != nil {
		return nil
	}
	defer log.Close()
	// One byte more tells whether the first line is whole.
	from := max(log.size-logBytes-1, 0)
	text, err := io.ReadAll(io.NewSectionReader(log, from, logBytes+1))
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
		if lines == logLines-1 {
			text = text[at+1:]
			break
		}
	}
	return text[max(len(text)-logBytes, 0):]
}
