package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/quernmr/quern/mapreduce/mrtest"
)

// TestPagerank compares the ranks with those of a loop over a matrix.
func TestPagerank(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	links := make(map[string][]string)
	var input strings.Builder
	for i := range 40 {
		page := fmt.Sprint("p", i)
		for range random.IntN(5) {
			links[page] = append(links[page], fmt.Sprint("p", random.IntN(60)))
		}
		fmt.Fprintf(&input, "%s\t%s\n", page, strings.Join(links[page], " "))
	}
	out := mrtest.Drive(t, drive, input.String(), step)
	want := ranks(links, 40)
	got := 0
	for line := range strings.Lines(out.Text()) {
		columns := strings.Split(line, "\t")
		page := columns[0]
		rank, err := strconv.ParseFloat(columns[1], 64)
		if err != nil || math.Abs(rank-want[page]) > 1e-4 {
			t.Errorf("%s has rank %s, want %v", page, columns[1], want[page])
		}
		got++
	}
	if got != len(want) {
		t.Errorf("%d pages, want %d", got, len(want))
	}
}

// ranks computes the ranks of the first n pages and of the pages that they link to.
func ranks(links map[string][]string, n int) map[string]float64 {
	now := make(map[string]float64)
	for i := range n {
		now[fmt.Sprint("p", i)] = 1
	}
	for _, targets := range links {
		for _, to := range targets {
			now[to] = 1
		}
	}
	for range 200 {
		next := make(map[string]float64)
		lost := 0.0
		for page, rank := range now {
			for _, to := range links[page] {
				next[to] += damping * rank / float64(len(links[page]))
			}
			if len(links[page]) == 0 {
				lost += rank
			}
		}
		for page := range now {
			next[page] += 1 - damping + damping*lost/float64(len(now))
		}
		now = next
	}
	return now
}
