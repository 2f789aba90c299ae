package hdfs_test

import (
	"bytes"
	"fmt"

	"github.com/quernmr/quern/integration/trial"
)

// same compares an output, the part files one after the other, with the right one.
func (p *place) same(out string, want []byte) {
	p.t.Helper()
	trial.Same(p.t, out, trial.Joined(trial.Parts(p.t, p.fs, out)), want)
}

// counts compares a word count; each part file is sorted.
func (p *place) counts(out string, text []byte) {
	p.t.Helper()
	trial.Same(p.t, out, trial.Sorted(trial.Joined(trial.Parts(p.t, p.fs, out))), trial.Sorted(trial.Counted(text)))
}

// text returns about size bytes of lines of words.
func text(size int) []byte { return trial.Words(uint64(size), size) }

// wide returns size bytes of lines of lineSize, which are long.
func wide(size int) []byte {
	b := bytes.Repeat([]byte{'.'}, size)
	for at := 0; at < size; at += lineSize {
		copy(b[at:], fmt.Sprintf("%09d", at))
		b[min(at+lineSize, size)-1] = '\n'
	}
	return b
}

const lineSize = 1 << 10
