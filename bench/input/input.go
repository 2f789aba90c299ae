// Package input writes the benchmarks' input, the same for every run: text of Zipf-distributed
// words and lines of random characters, of any size.
package input

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

// Seed is the seed of all input.
const Seed = 20261121

// The text is Zipf-distributed words, s = 1.1, v = 2.7 over 500,000 words of
// 2–10 letters, 6–15 words a line.
const (
	words = 500_000
	zipfS = 1.1
	zipfV = 2.7
)

// Needle is a pattern for grep that occurs in a few lines of each megabyte of text.
const Needle = "que"

// LineBytes is the length of the lines to be sorted, newline included.
const LineBytes = 100

// Text writes about n bytes of Zipf text, unless the file exists.
func Text(file string, n int64) error {
	return once(file, func(w *bufio.Writer, r *rand.Rand) {
		vocabulary := makeVocabulary(r)
		zipf := rand.NewZipf(r, zipfS, zipfV, words-1)
		for written := int64(0); written < n; {
			for i, count := 0, 6+r.IntN(10); i < count; i++ {
				if i > 0 {
					w.WriteByte(' ')
					written++
				}
				word := vocabulary[zipf.Uint64()]
				w.WriteString(word)
				written += int64(len(word))
			}
			w.WriteByte('\n')
			written++
		}
	})
}

func makeVocabulary(r *rand.Rand) []string {
	seen := make(map[string]bool, words)
	vocabulary := make([]string, 0, words)
	for len(vocabulary) < words {
		b := make([]byte, 2+r.IntN(9))
		for i := range b {
			b[i] = byte('a' + r.IntN(26))
		}
		if w := string(b); !seen[w] {
			seen[w] = true
			vocabulary = append(vocabulary, w)
		}
	}
	return vocabulary
}

// Lines writes n bytes of 100-byte lines of random printable characters.
func Lines(file string, n int64) error {
	return once(file, func(w *bufio.Writer, r *rand.Rand) {
		line := make([]byte, LineBytes)
		line[LineBytes-1] = '\n'
		for written := int64(0); written+LineBytes <= n; written += LineBytes {
			for i := 0; i < LineBytes-1; i += 9 {
				bits := r.Uint64()
				for j := i; j < min(i+9, LineBytes-1); j++ {
					line[j] = byte('!' + bits&0x3f)
					bits >>= 7
				}
			}
			w.Write(line)
		}
	})
}

// names is the number of keys of Names.
const names = 100_000

// Keyed writes n bytes of 100-byte lines. They begin with one of the keys of Names. If hot is set, half of them begin
// with the same one.
func Keyed(file string, n int64, hot bool) error {
	return once(file, func(w *bufio.Writer, r *rand.Rand) {
		for written := int64(0); written+LineBytes <= n; written += LineBytes {
			key := r.IntN(names)
			if bits := r.Uint64(); hot && bits%2 == 0 {
				key = names / 2
			}
			fmt.Fprintf(w, "%010d %088x\n", key, r.Uint64())
		}
	})
}

// Names writes a line with ten bytes of key and a name, for each key of Keyed.
func Names(file string) error {
	return once(file, func(w *bufio.Writer, _ *rand.Rand) {
		for key := range names {
			fmt.Fprintf(w, "%010d name of %d\n", key, key)
		}
	})
}

func once(file string, fill func(w *bufio.Writer, r *rand.Rand)) (err error) {
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	fill(w, rand.New(rand.NewPCG(Seed, 0)))
	return w.Flush()
}

// Size reads a number of bytes with K, M or G.
func Size(s string) (int64, error) {
	factor := int64(1)
	number := s
	if i := strings.IndexAny(s, "KMG"); i == len(s)-1 && i > 0 {
		factor = map[byte]int64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}[s[i]]
		number = s[:i]
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("size %q: want a number with K, M or G", s)
	}
	return n * factor, nil
}
