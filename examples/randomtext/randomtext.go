// Command randomtext writes lines of random words: a key of 5 to 9 words, a tab, a value of 10 to 99 words.
// Each map writes -bytes of keys and values, or up to a line more, as Hadoop's randomtextwriter does.
package main

import (
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"

	"github.com/quernmr/quern/mapreduce"
)

func main() {
	maps := flag.Int("maps", 10, "`number` of maps")
	size := flag.Int64("bytes", 1<<30, "`bytes` that each map writes")
	seed := flag.Uint64("seed", 1, "`seed` of the random words")
	mapreduce.Main(func() (*mapreduce.Job, error) { return randomText(*maps, *size, *seed) })
}

type line = mapreduce.Pair[string, string]

func randomText(maps int, size int64, seed uint64) (*mapreduce.Job, error) {
	if size < 1 {
		return nil, fmt.Errorf("-bytes %d: want 1 or more", size)
	}
	words := vocabulary()
	lines := mapreduce.Generate(maps, func(n int) iter.Seq[line] {
		return func(yield func(line) bool) {
			random := rand.New(rand.NewPCG(seed, uint64(n))) // of the map, so that each attempt writes the same lines
			sentence := func(least, most int) (text string) {
				for range least + random.IntN(most-least+1) {
					text += words[random.IntN(len(words))] + " "
				}
				return text
			}
			for left := size; left > 0; {
				l := line{A: sentence(5, 9), B: sentence(10, 99)}
				if left -= int64(len(l.A) + len(l.B)); !yield(l) {
					return
				}
			}
		}
	})
	return mapreduce.MapOnly(mapreduce.Map(lines, func(_ *mapreduce.Task, l line, emit func(key, value string)) error {
		emit(l.A, l.B)
		return nil
	})).Job("random-text-writer"), nil
}

// vocabulary returns 1000 words, each of three syllables.
func vocabulary() (words []string) {
	syllables := []string{"ba", "chi", "do", "fer", "gu", "lin", "mo", "pra", "ste", "vy"}
	for _, a := range syllables {
		for _, b := range syllables {
			for _, c := range syllables {
				words = append(words, a+b+c)
			}
		}
	}
	return words
}
