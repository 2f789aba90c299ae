package hdfs_test

import (
	"bytes"
	"fmt"

	"github.com/quernmr/quern/integration/trial"
)

// checkOutput compares the joined part files of an output with the right output.
func (p *platform) checkOutput(out string, want []byte) {
	p.t.Helper()
	trial.CheckEqual(p.t, out, trial.JoinParts(trial.ReadParts(p.t, p.fs, out)), want)
}

// checkCounts compares a word count. It sorts all lines, because only each part file is sorted.
func (p *platform) checkCounts(out string, text []byte) {
	p.t.Helper()
	trial.CheckEqual(p.t, out, trial.SortLines(trial.JoinParts(trial.ReadParts(p.t, p.fs, out))), trial.SortLines(trial.CountWords(text)))
}

// text returns about size bytes of lines of words.
func text(size int) []byte { return trial.Words(uint64(size), size) }

// longLines returns size bytes of lines of lineSize bytes.
func longLines(size int) []byte {
	b := bytes.Repeat([]byte{'.'}, size)
	for at := 0; at < size; at += lineSize {
		copy(b[at:], fmt.Sprintf("%09d", at))
		b[min(at+lineSize, size)-1] = '\n'
	}
	return b
}

const lineSize = 1 << 10
