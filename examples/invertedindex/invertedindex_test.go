package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quernmr/quern/integration/examples"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

func TestInvertedIndex(t *testing.T) {
	got := mrtest.RunFiles(t, mrtest.Program(invertedIndex), map[string]string{"1": "a b\na", "2": "b\tb", "3": "b"}).Text()
	if want := "a\t1:2\nb\t2:2 1:1 3:1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPlainIndex: the index is the one of a plain computation.
func TestPlainIndex(t *testing.T) {
	files, counts := make(map[string]string), make(map[string]map[string]int)
	for i, line := range strings.Split(examples.Text(20), "\n") {
		name := fmt.Sprintf("file%02d", i)
		files[name] = line
		for _, w := range strings.Fields(line) {
			if counts[w] == nil {
				counts[w] = make(map[string]int)
			}
			counts[w][name]++
		}
	}
	var lines []string
	for w, of := range counts {
		var names []string
		for name := range of {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Or(of[b]-of[a], cmp.Compare(a, b)) })
		for i, name := range names {
			names[i] = fmt.Sprintf("%s:%d", name, of[name])
		}
		lines = append(lines, w+"\t"+strings.Join(names, " ")+"\n")
	}
	slices.Sort(lines)
	if got, want := mrtest.RunFiles(t, mrtest.Program(invertedIndex), files).Text(), strings.Join(lines, ""); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
