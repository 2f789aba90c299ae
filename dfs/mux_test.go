package dfs

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestNames checks that names are parsed as in Hadoop, except that a name without a scheme
// is always a local file. testdata/names.txt has the results of Hadoop's Path.
func TestNames(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	m, names := Mux{"file": Mux{}, "hdfs": Mux{}}, 0
	for line := range strings.Lines(string(table)) {
		quoted, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " = ")
		if !ok || quoted[0] != '"' {
			continue
		}
		names++
		name, err := strconv.Unquote(quoted)
		if err != nil {
			t.Fatalf("%s: %v", quoted, err)
		}
		want, words, refused := strings.Cut(want, " ! ")
		if _, own, ok := strings.Cut(want, " + "); ok {
			want = own
		}
		got, err := m.Clean(name)
		if refused {
			if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(words, "unknown") != errors.Is(err, ErrUnknownScheme) {
				t.Errorf("%q: %q, %v; want an error: %s", name, got, err, words)
			}
			continue
		}
		if rest, ok := strings.CutPrefix(want, "file:///here/"); ok {
			want = "file://" + here + "/" + rest
		}
		if cleanedTwice, _ := Clean(got); got != want || err != nil || cleanedTwice != want {
			t.Errorf("%q: %q, %v; want %q", name, got, err, want)
		}
	}
	if names < 35 {
		t.Errorf("%d names: testdata/names.txt is cut short", names)
	}
}
