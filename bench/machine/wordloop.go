package machine

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// WordLoop is the argument that makes the benchmark program run [CountWords]: word-loop INPUT
// OUTPUT CORES.
const WordLoop = "word-loop"

// CountWords counts words without a framework, as the peer of Quern's word count: one thread,
// 1 MiB reads, map lookups without allocation, sorted output.
func CountWords(input, output string, _ int) (err error) {
	in, err := os.Open(input)
	if err != nil {
		return err
	}
	defer in.Close()
	counts := make(map[string]*int64)
	buf := make([]byte, 1<<20)
	rest := 0
	for {
		n, err := in.Read(buf[rest:])
		text := buf[:rest+n]
		end := len(text)
		if err == nil {
			end = bytes.LastIndexByte(text, '\n') + 1
		}
		for w := range bytes.FieldsSeq(text[:end]) {
			if c := counts[string(w)]; c != nil {
				*c++
			} else {
				one := int64(1)
				counts[string(w)] = &one
			}
		}
		rest = copy(buf, text[end:])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	out, err := os.Create(output)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	w := bufio.NewWriterSize(out, 1<<20)
	sorted := make([]string, 0, len(counts))
	for word := range counts {
		sorted = append(sorted, word)
	}
	slices.Sort(sorted)
	for _, word := range sorted {
		fmt.Fprintf(w, "%s\t%d\n", word, *counts[word])
	}
	return w.Flush()
}
