package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestFind: of outputs of go test, go vet and a shell, the failures and nothing else.
func TestFind(t *testing.T) {
	datadriven.RunTest(t, "testdata/find.txt", func(t *testing.T, d *datadriven.TestData) string {
		lines := 28
		d.MaybeScanArgs(t, "lines", &lines)
		return summary(find(d.Input), lines)
	})
}

// TestSummaryIsShort: no number of failures exceeds the limit, and each one left out is counted.
func TestSummaryIsShort(t *testing.T) {
	for n := range 60 {
		var all []failure
		for i := range n {
			all = append(all, failure{fmt.Sprint("failure ", i), [][]string{{"one", "two", "three"}, {strings.Repeat("long ", 200)}}})
		}
		text := summary(all, 28)
		left := 0
		if i := strings.Index(text, "and "); i >= 0 {
			fmt.Sscanf(text[i:], "and %d more failures", &left)
		}
		if lines := strings.Count(text, "\n"); lines > 28 || strings.Count(text, "failure ")+left != n {
			t.Errorf("%d failures: %d lines, and %d more:\n%s", n, lines, left, text)
		}
	}
}
