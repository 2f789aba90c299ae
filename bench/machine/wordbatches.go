package machine

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"os"
	"slices"
	"sync"
)

// WordBatches is the argument that makes the benchmark program run [CountWordsInBatches]:
// word-batches INPUT OUTPUT CORES.
const WordBatches = "word-batches"

// CountWordsInBatches is the fastest word count that we know: it can do nothing else. Each of
// its goroutines counts one part of the file in a table of its own.
//
// A table takes words in batches: it computes the hashes of all, then touches all their slots, so
// that their cache misses overlap, and only then looks for the words. A slot has the whole word
// and its count.
func CountWordsInBatches(input, output string, goroutines int) error {
	in, err := os.Open(input)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	counters := make([]*wordCounter, goroutines)
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for i := range counters {
		begin, end := info.Size()*int64(i)/int64(goroutines), info.Size()*int64(i+1)/int64(goroutines)
		counters[i] = &wordCounter{others: make(map[string]int64)}
		counters[i].resize(1 << 16)
		all.Go(func() { errs[i] = counters[i].read(in, begin, end) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return writeCounts(output, counters)
}

// slotWord is the longest word that fits into a slot.
const slotWord = 16

// wordSlot has a word, padded with zeros; without a count it is free.
type wordSlot struct {
	low, high uint64
	count     int64
	_         int64 // 32 bytes: no slot is in two cache lines
}

type wordCounter struct {
	slots []wordSlot // their number is a power of two
	shift int        // from hashes to slots
	used  int

	batch   [128]struct{ low, high, hash uint64 }
	n       int
	touched int64 // keeps the compiler from removing the loads

	others map[string]int64 // words that fit no slot
}

func (c *wordCounter) resize(n int) {
	old := c.slots
	c.slots, c.shift = make([]wordSlot, n), 64-bits.TrailingZeros(uint(n))
	for _, s := range old {
		if s.count != 0 {
			*c.find(s.low, s.high, hashWord(s.low, s.high)) = s
		}
	}
}

func hashWord(low, high uint64) uint64 {
	a, b := bits.Mul64(low^0x9e3779b97f4a7c15, high^0xd6e8feb86659fd93)
	return a ^ b
}

func (c *wordCounter) find(low, high, hash uint64) *wordSlot {
	for i := hash >> c.shift; ; i++ {
		s := &c.slots[i&uint64(len(c.slots)-1)]
		if s.low == low && s.high == high || s.count == 0 {
			return s
		}
	}
}

// flush counts the words of the batch.
func (c *wordCounter) flush() {
	batch := c.batch[:c.n]
	for i := range batch {
		batch[i].hash = hashWord(batch[i].low, batch[i].high)
	}
	for i := range batch {
		c.touched += c.slots[batch[i].hash>>c.shift].count
	}
	for i := range batch {
		w := &batch[i]
		s := c.find(w.low, w.high, w.hash)
		s.count++
		if s.count == 1 {
			s.low, s.high = w.low, w.high
			c.used++
		}
	}
	c.n = 0
	if 2*(c.used+len(c.batch)) > len(c.slots) {
		c.resize(2 * len(c.slots))
	}
}

// read counts the words of the lines that begin from begin up to end.
func (c *wordCounter) read(in io.ReaderAt, begin, end int64) error {
	skip := begin > 0
	if skip {
		begin-- // the line that begins before belongs to the previous part
	}
	buf := make([]byte, 1<<20+slotWord)
	rest := 0
	for at := begin; ; {
		n, err := in.ReadAt(buf[rest:len(buf)-slotWord], at)
		at += int64(n)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		text, last := buf[:rest+n], err != nil
		used := len(text)
		if !last {
			used = bytes.LastIndexByte(text, '\n') + 1
		}
		if used == 0 && rest+n == len(buf)-slotWord {
			return fmt.Errorf("a line is longer than %d bytes", rest+n)
		}
		// The part's last line is the one with the byte end-1.
		if left := int(end - 1 - (at - int64(len(text)))); left < used {
			last = true
			used = lineEnd(text[:used], max(left, 0))
		}
		from := 0
		if skip && used > 0 {
			from, skip = lineEnd(text[:used], 0), false
		}
		c.words(buf, from, used)
		if last {
			c.flush()
			return nil
		}
		rest = copy(buf, text[used:])
	}
}

// lineEnd returns the end of the line with the byte at i.
func lineEnd(text []byte, i int) int {
	if n := bytes.IndexByte(text[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(text)
}

// Kinds of bytes.
const (
	letter = iota
	space
	unicode
)

var kinds = func() (k [256]byte) {
	for _, b := range []byte("\t\n\v\f\r ") {
		k[b] = space
	}
	for b := 0x80; b < 0x100; b++ {
		k[b] = unicode
	}
	return k
}()

// words counts the words of buf[from:to]. buf goes on for slotWord bytes at least.
func (c *wordCounter) words(buf []byte, from, to int) {
	for i := from; i < to; {
		start := i
		for i < to && kinds[buf[i]] == letter {
			i++
		}
		switch n := i - start; {
		case i < to && kinds[buf[i]] == unicode: // the rest of the line may have other spaces
			i = lineEnd(buf[:to], start)
			for w := range bytes.FieldsSeq(buf[start:i]) {
				c.others[string(w)]++
			}
			continue
		case n > slotWord || n > 0 && buf[i-1] == 0:
			c.others[string(buf[start:i])]++
		case n > 0:
			w := &c.batch[c.n]
			w.low = binary.LittleEndian.Uint64(buf[start:]) & wordMasks[n].low
			w.high = binary.LittleEndian.Uint64(buf[start+8:]) & wordMasks[n].high
			if c.n++; c.n == len(c.batch) {
				c.flush()
			}
		}
		i++
	}
}

// wordMasks keep the first n bytes of 16.
var wordMasks = func() (m [slotWord + 1]struct{ low, high uint64 }) {
	for n := range m {
		m[n].low, m[n].high = 1<<(8*n)-1, 1<<(8*max(n-8, 0))-1
	}
	return m
}()

// writeCounts adds the counts up and writes them in the order of words.
func writeCounts(output string, counters []*wordCounter) (err error) {
	total := counters[0]
	for _, c := range counters[1:] {
		for _, s := range c.slots {
			if s.count == 0 {
				continue
			}
			if 2*(total.used+1) > len(total.slots) {
				total.resize(2 * len(total.slots))
			}
			sum := total.find(s.low, s.high, hashWord(s.low, s.high))
			if sum.count == 0 {
				total.used++
			}
			sum.low, sum.high, sum.count = s.low, s.high, sum.count+s.count
		}
		for w, n := range c.others {
			total.others[w] += n
		}
	}
	for _, s := range total.slots {
		if s.count != 0 {
			b := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, s.low), s.high)
			total.others[string(bytes.TrimRight(b, "\x00"))] += s.count
		}
	}
	out, err := os.Create(output)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := bufio.NewWriterSize(out, 1<<20)
	for _, word := range slices.Sorted(maps.Keys(total.others)) {
		fmt.Fprintf(w, "%s\t%d\n", word, total.others[word])
	}
	return w.Flush()
}
