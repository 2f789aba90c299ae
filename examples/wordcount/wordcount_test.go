package main

import (
	"testing"

	"github.com/quernmr/quern/mapreduce/mrtest"
)

func TestWordcount(t *testing.T) {
	if got, want := mrtest.Run(t, mrtest.Program(wordcount), "to be or\nnot  to be\r\n"), "be\t2\nnot\t1\nor\t1\nto\t2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
