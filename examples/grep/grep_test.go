package main

import (
	"regexp"
	"testing"

	"github.com/quernmr/quern/mapreduce/mrtest"
)

func TestMatchingLines(t *testing.T) {
	for pattern, want := range map[string]string{"an": "banana\npecan\n", "^p.*n$": "pecan\n", "x": ""} {
		if got := mrtest.Run(t, matchingLines(regexp.MustCompile(pattern)), "banana\ncherry\npecan\n"); got != want {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
}

func TestCountMatches(t *testing.T) {
	got := mrtest.Run(t, countMatches(regexp.MustCompile("[a-c]")), "b a b\nc b a\n")
	if want := "3\tb\n2\ta\n1\tc\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
