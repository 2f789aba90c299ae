package main

import (
	"testing"

	"github.com/quernmr/quern/mapreduce"
	"github.com/quernmr/quern/mapreduce/mrtest"
)

func program(pattern string, count bool) mrtest.Runnable {
	return mrtest.Program(func() (*mapreduce.Flow, error) { return grep(pattern, count) })
}

func TestMatchingLines(t *testing.T) {
	for pattern, want := range map[string]string{"an": "banana\npecan\n", "^p.*n$": "pecan\n", "x": ""} {
		if got := mrtest.Run(t, program(pattern, false), "banana\ncherry\npecan\n"); got != want {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
}

func TestCountMatches(t *testing.T) {
	got := mrtest.Run(t, program("[a-c]", true), "b a b\nc b a\n")
	if want := "3\tb\n2\ta\n1\tc\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBadPattern(t *testing.T) {
	if _, err := grep("(", false); err == nil {
		t.Error("no error for the regular expression (")
	}
}
