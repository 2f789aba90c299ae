package hdfs_test

import (
	"bytes"
	"fmt"

	"github.com/quernmr/quern/integration/trial"
)

// same compares an output, the part files one after the other, with the right one.
func (p *platform) checkOutput(out string, want []byte) {
	p.t.Helper()
	trial.CheckEqual(p.t, out, trial.JoinParts(trial.ReadParts(p.t, p.fs, out)), want)
}

// counts compares a word count; each part file is sorted.
func (p *platform) checkCounts(out string, text []byte) {
	p.t.Helper()
	trial.CheckEqual(p.t, out, trial.SortLines(trial.JoinParts(trial.ReadParts(p.t, p.fs, out))), trial.SortLines(trial.CountWords(text)))
}

// text returns about size bytes of lines of words.
func text(size int) []byte { return trial.Words(uint64(size), size) }

// wide returns size bytes of lines of lineSize, which are long.
func longLines(size int) []byte {
	b := bytes.Repeat([]byte{'.'}, size)
	for at := 0; at < size; at += lineSize {
		copy(b[at:], fmt.Sprintf("%09d", at))
		b[min(at+lineSize, size)-1] = '\n'
	}
	return b
}

const lineSize = 1 << 10
